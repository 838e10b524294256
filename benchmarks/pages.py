"""The text of the benchmark's site: deterministic pages that look like real ones.

Aimed at what pages of public site histories look like (documentation, news, universities, blogs): 5 to 60 KB
with a mean near 14 KB, some 60 links and 230 elements, half of the bytes text, a quarter left after gzip.
Words and phrases follow Zipf's law, so that compression and a full-text index see something like language.
The pages form a tree (four children each), so that all are reachable from `/`; every page also carries its
site's menu and links to neighbours and to pages drawn at random, written in several forms (absolute path,
relative, with a fragment), of which each crawler has to make one URL.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

SEED = 20240229
CHILDREN = 4
MENU = 18
LINKS = 60
SECTIONS = 50
VOCABULARY = 20_000
LEAST, MOST = 5_000, 60_000
CONSONANTS, VOWELS = "bcdfghklmnprst", "aeiou"
STYLE = "".join(
    f".{name}{{display:block;margin:{n}px auto;color:#{n * 7:03x}}}"
    for n, name in enumerate(["top", "menu", "crumbs", "main", "side", "note", "foot", "date"])
)


@dataclass(frozen=True, slots=True)
class Page:
    """One page: where it is, and its bytes before and after the paragraph that changes with its version."""

    path: str
    before: bytes
    after: bytes

    def body(self, version: int) -> bytes:
        return b"%b<p class=note>Revision %d of this page, checked and signed.</p>%b" % (
            self.before,
            version,
            self.after,
        )


class Text:
    """A seeded source of words, drawn once and walked through: quick enough for 100 MB of pages."""

    def __init__(self, rng: np.random.Generator, words: int = 2_000_000) -> None:
        vocabulary = sorted({_word(rng) for _ in range(2 * VOCABULARY)})[:VOCABULARY]
        rng.shuffle(vocabulary)
        phrases = [
            [vocabulary[n] for n in _zipf(rng, len(vocabulary), int(length))]
            for length in rng.integers(1, 6, size=4 * VOCABULARY)
        ]
        self._words: list[str] = []
        for n in _zipf(rng, len(phrases), words // 3):
            self._words += phrases[n]
        self._at = 0

    def take(self, count: int) -> str:
        if self._at + count > len(self._words):
            self._at = (self._at + 977) % 1000
        start = self._at
        self._at += count
        return " ".join(self._words[start : start + count])

    def paragraphs(self, size: int) -> str:
        """About `size` bytes of marked-up prose."""
        parts: list[str] = []
        while size > 0:
            head = f"<h2 id=part-{len(parts)}>{self.take(4).capitalize()}</h2>\n" if len(parts) % 4 == 0 else ""
            text = (
                f'{head}<div class="row"><p class="text">{self.take(9).capitalize()}, '
                f"<em>{self.take(3)}</em> {self.take(12)}.</p></div>\n"
            )
            parts.append(text)
            size -= len(text)
        return "".join(parts)


def _zipf(rng: np.random.Generator, kinds: int, size: int) -> list[int]:
    """`size` draws, of which number n comes about 1/n times as often as number 1 (by inversion)."""
    drawn: list[int] = np.exp(rng.random(size) * np.log(kinds)).astype(int).tolist()
    return drawn


def _word(rng: np.random.Generator) -> str:
    return "".join(
        CONSONANTS[n % len(CONSONANTS)] + VOWELS[n % len(VOWELS)] for n in rng.integers(0, 70, size=rng.integers(1, 5))
    )


def paths(count: int, rng: np.random.Generator) -> list[str]:
    """The path of every page; number 0 is `/`, the next ones are the sections."""
    sections = [f"{_word(rng)}-{n}" for n in range(SECTIONS)]
    slugs = [f"{_word(rng)}-{_word(rng)}" for _ in range(997)]
    result = ["/"] + [f"/{name}/" for name in sections]
    result += [f"/{sections[n % SECTIONS]}/{slugs[n % 997]}-{n}.html" for n in range(len(result), count)]
    return result[:count]


def _form(path: str, base: str, style: int) -> str:
    """`path` as an author might write it on the page `base`."""
    folder = base.rsplit("/", 1)[0] + "/"
    if style == 0 and path.startswith(folder) and path != folder:
        return path[len(folder) :]
    if style == 1 and base.count("/") == 2:
        return ".." + path
    if style == 2:
        return f"{path}#part-3"
    return path


def _links(page: int, every: list[str], rng: np.random.Generator) -> list[int]:
    """The pages a page points to, besides the menu: children, neighbours in the section, any others."""
    count = len(every)
    children = [n for n in range(CHILDREN * page + 1, CHILDREN * page + CHILDREN + 1) if n < count]
    neighbours = [n % count for n in range(page + SECTIONS, page + 11 * SECTIONS, SECTIONS)]
    others = rng.integers(0, count, size=LINKS - MENU - len(children) - len(neighbours))
    return [*children, *neighbours, *others.tolist()]


def site(count: int) -> list[Page]:
    """The whole site; the same for the same count, on every machine."""
    rng = np.random.default_rng(SEED)
    every = paths(count, rng)
    text = Text(rng)
    sizes = np.clip(rng.lognormal(np.log(11_300), 0.62, size=count), LEAST + 900, MOST - 600).astype(int)
    menu = [(text.take(1), every[n]) for n in range(1, MENU + 1)]
    return [_page(n, every, menu, int(sizes[n]), text, rng) for n in range(count)]


def _page(
    number: int,
    every: list[str],
    menu: list[tuple[str, str]],
    size: int,
    text: Text,
    rng: np.random.Generator,
) -> Page:
    path = every[number]
    title = f"{text.take(4).capitalize()} {number}"
    styles = rng.integers(0, 12, size=LINKS)
    targets = [_form(every[n], path, int(styles[at])) for at, n in enumerate(_links(number, every, rng))]
    inline, listed = targets[:14], targets[14:]
    navigation = "".join(f'<li class="item"><a href="{href}">{name}</a></li>\n' for name, href in menu)
    listing = "".join(f'<li class="entry"><a class="more" href="{href}">{text.take(2)}</a></li>\n' for href in listed)
    prose = "".join(
        f'<p>{text.take(6).capitalize()} <a href="{href}">{text.take(2)}</a> {text.take(3)}.</p>\n' for href in inline
    )
    before = (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="description" content="{text.take(9)}"><style>{STYLE}</style>\n'
        f"<script>window.page = {{number: {number}, kind: 'article'}};</script></head>\n"
        f'<body><div class="top"><nav class="menu"><ul>\n{navigation}</ul></nav></div>\n'
        f'<div class="main"><h1>{title}</h1>\n'
    )
    after = f'{prose}\n<div class="side"><ul>\n{listing}</ul></div>\n'
    foot = '</div><div class="foot"><p>All rights reserved.</p></div></body></html>\n'
    room = size - len(before) - len(after) - len(foot) - 70
    return Page(path, before.encode(), (text.paragraphs(room) + after + foot).encode())
