"""How many pages of real sites are copies of others, and how honest what pages say of their own address is.

    python -m benchmarks.copies report ARCHIVE...                 copies, claims, pages that are not there, cost
    python -m benchmarks.copies pairs ARCHIVE... [--pairs 300]    precision and recall on pairs, half of them close

Each site is taken as it was at the end of its archive. The hosts of archives are invented, so what a page says of its
address is read against the address that most pages of its site give themselves. `--pages` keeps what was read of the
pages, so that a second run need not parse them again; `--every N` takes each n-th archive.

A pair counts as one page if at least four fifths of the five-word runs outside the frame of either page are those of
the other, by their whole texts; `--list FILE` writes the pairs with this verdict and recrawl's, to be judged by eye.
Pairs of long pages are taken alone: those that recrawl takes for copies without the same text, and those that it does
not although they agree in a part of the sketch, or one claims to be the other. A border case agrees in 5 to 10 of 12
bytes.
"""

from __future__ import annotations

import argparse
import pickle
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import NamedTuple
from urllib.parse import urljoin, urlsplit
from zlib import crc32

import numpy as np

from benchmarks.report import Table
from recrawl.columns import Ints
from recrawl.compare.digest import of_text
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.unframed import page_texts
from recrawl.discover.page_headers import refresh_target
from recrawl.errors import Unreadable
from recrawl.lab.formats.archive import Archive, files_of
from recrawl.learn.copies.groups import CopyColumns, group_copies
from recrawl.learn.copies.missing import says_missing
from recrawl.learn.copies.sketch import NEAR, SKETCH_BYTES, shared, sketch_of, sketches

SAME = 0.8
"""The share of common runs of five words with which two pages count as one."""
_INDEX = re.compile(r"(?:index\.html?)?$")


class PageSeen(NamedTuple):
    """What a page shows and says."""

    url: str
    digest: bytes
    sketch: bytes
    words: int
    title: str
    missing: bool
    canonical: str
    og_url: str
    alternates: tuple[tuple[str, str], ...]
    refresh: tuple[float, str] | None
    seconds: float
    """CPU time of the sketch, beyond that of text and title."""
    reading: float
    """CPU time of parsing, text and title."""


def pages_of(archive: Archive) -> Iterator[PageSeen]:
    """The pages of a site at the end of its archive."""
    for page, url in enumerate(archive.urls):
        row = int(archive.first[page + 1]) - 1
        if not archive.removed[row]:
            try:
                yield read(url, archive.html(row))
            except Unreadable:
                continue


def read(url: str, body: bytes) -> PageSeen:
    """One page."""
    began = process_time()
    tree = parse(decode(body).text)
    said = dict.fromkeys(("canonical", "og:url"), "")
    alternates, refresh = [], None
    for node in tree.iter_elements(["link", "meta"]):
        rels, href = (node.attr("rel") or "").lower().split(), (node.attr("href") or "").strip()
        if "canonical" in rels:
            said["canonical"] = said["canonical"] or href
        elif "alternate" in rels and node.attr("hreflang"):
            alternates.append(((node.attr("hreflang") or "").lower(), href))
        elif (node.attr("property") or "").lower() == "og:url":
            said["og:url"] = said["og:url"] or (node.attr("content") or "").strip()
        elif (node.attr("http-equiv") or "").lower() == "refresh" and (content := node.attr("content")):
            delay = re.match(r"\s*(\d*)", content)
            refresh = (float(delay[1] or 0) if delay else 0.0, refresh_target(content)) if refresh is None else refresh
    title, before = text.title(tree), process_time()
    words = text.visible(tree)
    between = process_time()
    own = page_texts(tree).own
    sketch = sketch_of(own, title)
    seconds = process_time() - between - (between - before)
    count = len(own.split())
    heading = tree.find("h1") or tree.find("h2")
    missing = says_missing(title, heading.text if heading is not None else "", len(words.split()))
    return PageSeen(
        *(url, of_text(words), sketch, count, title, missing, said["canonical"], said["og:url"]),
        *(
            tuple(alternates),
            refresh,
            seconds,
            between - began,
        ),
    )


class Site(NamedTuple):
    """A site and its pages, with what they say of their addresses as the numbers of pages."""

    name: str
    pages: list[PageSeen]
    canonical: list[int]
    """Of each page: the page that it claims to be; -1 for none, -2 for one that is not in the archive."""
    og_url: list[int]


def site_of(name: str, pages: list[PageSeen]) -> Site:
    """A site, with its claims resolved."""
    known = {_plain(urlsplit(page.url).path): number for number, page in enumerate(pages)}
    claims = []
    for kind in ("canonical", "og_url"):
        full = [_absolute(page.url, getattr(page, kind)) for page in pages]
        bases = Counter(
            claim[: -len(path)] if path else claim
            for claim, page in zip(full, pages, strict=True)
            if claim and claim.endswith(path := _plain(urlsplit(page.url).path))
        )
        base = bases.most_common(1)[0][0] if bases else None
        claims.append([_resolved(claim, base, known) for claim in full])
    return Site(name, pages, *claims)


def _absolute(url: str, claim: str) -> str:
    parts = urlsplit(urljoin(url, claim)) if claim else None
    return f"{parts.netloc.removeprefix('www.')}{_plain(parts.path)}" if parts else ""


def _plain(path: str) -> str:
    return _INDEX.sub("", path).rstrip("/").removesuffix(".html").removesuffix(".htm")


def _resolved(claim: str, base: str | None, known: dict[str, int]) -> int:
    if not claim:
        return -1
    if base is None or not claim.startswith(base):
        return -2
    return known.get(claim[len(base) :], -2)


def columns(site: Site) -> CopyColumns:
    """The site as `group_copies` takes it."""
    pages, count = site.pages, len(site.pages)
    numbers = np.arange(1, count + 1)
    claim = np.array(site.canonical)
    return CopyColumns(
        key=numbers,
        site=np.zeros(count, np.int32),
        stored=np.ones(count, bool),
        digest=np.frombuffer(b"".join(page.digest for page in pages), np.uint64).reshape(-1, 2),
        sketch=sketches([page.sketch for page in pages]),
        claim=np.where(claim >= 0, claim + 1, 0),
        same_as=np.zeros(count, np.int64),
        listed=np.zeros(count, bool),
        secure=np.ones(count, bool),
        length=np.array([len(page.url) for page in pages], np.int32),
        last_visit=np.zeros(count),
        last_change=np.zeros(count),
    )


def grouped(site: Site) -> Ints:
    """The representative of each page, by number; -1 for a page that stands for itself."""
    found = group_copies(columns(site), lambda wanted: {page: site.pages[page].url for page in wanted})
    return found.same_as - 1


def report(sites: Sequence[Site]) -> list[Table]:
    """All tables."""
    return [copies_table(sites), claims_table(sites), odd_table(sites), cost_table(sites)]


def copies_table(sites: Sequence[Site]) -> Table:
    """How many pages say what another page of their site says."""
    total, rows = sum(len(site.pages) for site in sites), []
    counts: Counter[str] = Counter()
    having: Counter[str] = Counter()
    for site in sites:
        own = {
            "the same text": _extra([page.digest for page in site.pages]),
            "the same title and the same texts outside the frame": _extra(
                [page.sketch for page in site.pages if page.sketch]
            ),
            "a copy, as recrawl has it": int((grouped(site) >= 0).sum()),
        }
        counts.update(own)
        having.update({name: 1 for name, number in own.items() if number})
        rows.append((own["a copy, as recrawl has it"] / max(1, len(site.pages)), site))
    rows.sort(key=lambda row: row[0], reverse=True)
    return Table(
        f"Pages of {len(sites)} sites ({total:,} pages) that another page of their site makes superfluous",
        ["of the page that stands for it they have", "pages", "share", "sites with any"],
        [
            *([name, f"{counts[name]:,}", f"{counts[name] / total:.1%}", f"{having[name]}"] for name in counts),
            *([f"most: {site.name}", f"{share * len(site.pages):.0f}", f"{share:.0%}", ""] for share, site in rows[:5]),
        ],
    )


def _extra(values: Sequence[bytes]) -> int:
    return len(values) - len(set(values))


def claims_table(sites: Sequence[Site]) -> Table:
    """What pages say of their address, and whether it is so."""
    rows = []
    for name, field in (("rel=canonical", "canonical"), ("og:url", "og_url")):
        counts: Counter[str] = Counter()
        honest: dict[str, list[bool]] = defaultdict(list)
        for site in sites:
            looks = sketches([page.sketch for page in site.pages])
            for number, claimed in enumerate(getattr(site, field)):
                counts["pages"] += 1
                counts["says"] += claimed != -1
                counts["self"] += claimed == number
                counts["away"] += claimed == -2
                if claimed >= 0 and claimed != number:
                    same = site.pages[number].digest == site.pages[claimed].digest
                    close = int(shared(looks[[number]], looks[[claimed]])[0]) >= NEAR
                    has = bool(site.pages[number].sketch and site.pages[claimed].sketch)
                    counts["other"] += 1
                    kind = "same" if same else "near" if close else "differs" if has else "short"
                    counts[kind] += 1
                    if kind != "short":
                        honest[site.name].append(same or close)
        liars = sum(1 for said in honest.values() if 2 * sum(said) < len(said))
        rows.append(
            [
                *(name, f"{counts['says']:,}", f"{counts['self']:,}", f"{counts['away']:,}", f"{counts['other']:,}"),
                *(f"{counts[kind]:,}" for kind in ("same", "near", "differs", "short")),
                f"{liars} of {len(honest)}",
            ]
        )
    languages = [
        (site.pages[number], alternates)
        for site in sites
        for number, page in enumerate(site.pages)
        if (alternates := page.alternates)
    ]
    rows.append(["hreflang", f"{len(languages):,}", *[""] * 8])
    heads = ["what it says", "pages", "itself", "not in the archive", "another page", "the same text", "near"]
    return Table("What pages say of their own address", [*heads, "differs", "too short", "sites mostly wrong"], rows)


def odd_table(sites: Sequence[Site]) -> Table:
    """Pages that are none."""
    pages = [page for site in sites for page in site.pages]
    quick = [page for page in pages if page.refresh and page.refresh[1] and page.refresh[0] <= 5]
    missing = [page for page in pages if page.missing]
    return Table(
        "Pages that are none, although the server sends them with status 200",
        ["kind", "pages", "sites", "for example"],
        [
            ["meta refresh to another address within 5 s", f"{len(quick):,}", _hosts(quick), _example(quick)],
            ["says that it was not found", f"{len(missing):,}", _hosts(missing), _example(missing)],
        ],
    )


def _hosts(pages: Sequence[PageSeen]) -> str:
    return str(len({urlsplit(page.url).netloc for page in pages}))


def _example(pages: Sequence[PageSeen]) -> str:
    return pages[len(pages) // 2].url if pages else ""


def cost_table(sites: Sequence[Site]) -> Table:
    """CPU time and bytes of a page."""
    pages = [page for site in sites for page in site.pages]
    sketch, reading = (1e6 * sum(getattr(page, name) for page in pages) / len(pages) for name in ("seconds", "reading"))
    return Table(
        f"Cost of a page, mean of {len(pages):,}",
        ["step", "µs of CPU", "bytes stored"],
        [
            ["parse, visible text, title", f"{reading:.0f}", ""],
            ["texts outside the frame, and sketch", f"{sketch:.0f}", "16"],
        ],
    )


class Pair(NamedTuple):
    """Two pages of a site."""

    site: int
    one: int
    other: int
    agree: int
    """Of the twelve bytes of their sketches."""
    copies: bool
    """Whether recrawl takes them for copies."""


def all_pairs(sites: Sequence[Site]) -> Iterator[Pair]:
    """The pairs that are hard to tell, with recrawl's verdict."""
    for number, site in enumerate(sites):
        looks, leaders = sketches([page.sketch for page in site.pages]), grouped(site)
        group = np.where(leaders >= 0, leaders, np.arange(len(leaders)))
        known = {(page, int(leader)) for page, leader in enumerate(leaders.tolist()) if leader >= 0}
        known |= {(page, claim) for page, claim in enumerate(site.canonical) if claim >= 0 and claim != page}
        for band in range(4, SKETCH_BYTES, 4):
            order = np.lexsort(looks[:, band : band + 4].T)
            same = (looks[order[1:], band : band + 4] == looks[order[:-1], band : band + 4]).all(axis=1)
            known |= set(zip(order[1:][same].tolist(), order[:-1][same].tolist(), strict=True))
        for one, other in sorted({(min(pair), max(pair)) for pair in known}):
            pages = site.pages[one], site.pages[other]
            if all(page.sketch for page in pages) and pages[0].digest != pages[1].digest:
                agree = int(shared(looks[[one]], looks[[other]])[0])
                yield Pair(number, one, other, agree, bool(group[one] == group[other]))


def judged(archives: Sequence[Path], sites: Sequence[Site], count: int, listed: Path | None) -> Table:
    """Precision and recall on chosen pairs."""
    rng = np.random.default_rng(39)
    pairs = list(all_pairs(sites))
    border = [pair for pair in pairs if 5 <= pair.agree <= 10]
    clear = [pair for pair in pairs if not 5 <= pair.agree <= 10]
    chosen = [part[place] for part in (border, clear) for place in _spread(part, count // 2, rng)]
    files = {file.stem: file for path in archives for file in files_of(path)}
    texts: dict[str, frozenset[int]] = {}
    for name in {sites[pair.site].name for pair in chosen}:
        archive = Archive.open([files[name]])
        urls = {
            sites[pair.site].pages[page].url
            for pair in chosen
            if sites[pair.site].name == name
            for page in (pair.one, pair.other)
        }
        for url in urls:
            page = archive.find(url)
            assert page is not None
            texts[url] = _runs(archive.html(int(archive.first[page + 1]) - 1))
    rows = []
    for pair in chosen:
        one, other = (sites[pair.site].pages[page].url for page in (pair.one, pair.other))
        both = len(texts[one] & texts[other])
        rows.append((pair, one, other, both / max(1, len(texts[one]), len(texts[other]))))
    if listed is not None:
        lines = (f"{pair.agree}\t{int(pair.copies)}\t{share:.2f}\t{one}\t{other}" for pair, one, other, share in rows)
        listed.write_text("agree\tcopies\tshare\tone\tother\n" + "\n".join(lines) + "\n")
    shown = []
    for name, part in (
        ("border cases", [row for row in rows if 5 <= row[0].agree <= 10]),
        ("others", [row for row in rows if not 5 <= row[0].agree <= 10]),
        ("all", rows),
    ):
        found = [row for row in part if row[0].copies]
        true = [row for row in part if row[3] >= SAME]
        right = [row for row in found if row[3] >= SAME]
        shown.append(
            [
                *(name, str(len(part)), str(len(true)), str(len(found))),
                f"{len(right) / max(1, len(found)):.0%}",
                f"{len(right) / max(1, len(true)):.0%}",
            ]
        )
    heads = ["pairs", "number", "one page", "copies for recrawl", "precision", "recall"]
    return Table(f"recrawl's verdict on {len(rows)} pairs of pages whose texts differ", heads, shown)


def _spread(pairs: Sequence[Pair], count: int, rng: np.random.Generator) -> list[int]:
    """Places of as many pairs, site by site in turn: no site may fill the sample."""
    by_site: dict[int, list[int]] = defaultdict(list)
    for place in rng.permutation(len(pairs)).tolist():
        by_site[pairs[place].site].append(place)
    found: list[int] = []
    while len(found) < count and any(by_site.values()):
        for places in by_site.values():
            if places and len(found) < count:
                found.append(places.pop())
    return found


def _runs(body: bytes) -> frozenset[int]:
    """Hashes of the runs of five words of a page outside its frame."""
    tree = parse(decode(body).text)
    words = page_texts(tree).own.casefold().split()
    return frozenset(crc32(" ".join(words[place : place + 5]).encode()) for place in range(max(1, len(words) - 4)))


def opened(paths: Sequence[Path], kept: Path | None, every: int) -> list[Site]:
    """The sites of each n-th archive; their pages from the file if there is one."""
    if kept is not None and kept.exists():
        found: list[tuple[str, list[PageSeen]]] = pickle.loads(kept.read_bytes())
    else:
        files = [file for path in paths for file in files_of(path)][::every]
        found = [(file.stem, list(pages_of(Archive.open([file])))) for file in files]
        if kept is not None:
            kept.write_bytes(pickle.dumps(found))
    return [site_of(name, pages) for name, pages in found if pages]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.copies", description=__doc__)
    parser.add_argument("what", choices=["report", "pairs"])
    parser.add_argument("archives", nargs="+", type=Path, metavar="ARCHIVE")
    parser.add_argument("--pages", type=Path, metavar="FILE", help="keep what was read of the pages there")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="take each n-th archive alone (1: all)")
    parser.add_argument("--pairs", type=int, default=300, help="pairs that are judged (300)")
    parser.add_argument("--list", type=Path, metavar="FILE", help="write the pairs and their verdicts there")
    chosen = parser.parse_args()
    sites = opened(chosen.archives, chosen.pages, chosen.every)
    tables = report(sites) if chosen.what == "report" else []
    if chosen.what == "pairs":
        tables = [judged(chosen.archives, sites, chosen.pairs, chosen.list)]
    for table in tables:
        table.show()


if __name__ == "__main__":
    main()
