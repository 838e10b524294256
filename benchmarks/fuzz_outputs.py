"""Fuzz the whole way, from a web server to every output: `python -m benchmarks.fuzz_outputs --pages 200000`.

A server on loopback gives pages that hurt: half characters in JSON and JSON-LD, zero bytes, bidi controls, titles of
megabytes, invalid UTF-8 in headers, numbers out of range, deep JSON, huge attributes. Beside it is an innocent site. A
round crawls both, refreshes them, and asks for every output: search, tables, exports, chunks, sinks, dashboard, API,
alerts, feeds, the verification of the repository, and an import of what was exported.

A round fails if a command or the service fails, if an output is not what its format says, if a page of the innocent
site is not recorded and found, or if a page of the other one was not visited or failed in a way that no page should.
A page depends on the seed, the round and its number alone: `--seed 7 --first 12 --pages 1` repeats round 12 of seed 7.
The exit code is 1 if a round failed.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
import traceback
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pyarrow.parquet as pq
from fastwarc.warc import ArchiveIterator
from tests.serving import Asker
from tests.world import Asked, Reply, Repo, Site, page

from recrawl.model import Failure
from recrawl.serve.service import Service, ServiceConfig

SEED = 20260101
EACH = 1_000
"""Bad pages of a round."""
REFRESHES = 3
INNOCENT = 40
_SHOWN = 12
"""Bad pages of a round that are looked at one by one."""
_OF_THE_PAGE = {
    Failure.TOO_DEEP, Failure.PARSE_TIMEOUT, Failure.PARSE_MEMORY, Failure.TOO_LARGE, Failure.CONTENT_TYPE,
}  # fmt: skip
"""What a bad page may fail with."""
HALVES = ("\ud83d", "\udfff", "a\ud83db\udc00", "\ude00\ud83d")
"""Halves of astral characters; JSON and JavaScript write them as escapes."""
HURTS = (
    *HALVES,
    *("\0", "a\0b", "\x1b[2J\x9b31m", "\u202egpj.exe\u2066", "\ufeff", "\ufffe\uffff", "\u2028\u2029\x85\x0b\x0c"),
    *("\U0001f600", "\U0010ffff", "\ud83d\ude00", "e" + "\u0301" * 2_000, "\ufdfa" * 300, "\u0130" * 300, "\xdf" * 300),
    *("'\"><script>alert(1)</script>", "]]>", "--><!--", "</script></title></textarea>", '=HYPERLINK("a")', "{{7*7}}"),
    *(
        "%00%ff%ed%a0%80",
        "\r\nSet-Cookie: a=b",
        "../../../etc/passwd",
        "\\\\.\\x",
        "$(id)",
        "% b %",
        "\x01\x02\x05\x1e",
    ),
    *("9" * 400, "1e999", "-1e999", "NaN", "Infinity", "-0", "0x1p-1074", "1" + "0" * 308, "9999999999999-99-99"),
    *("0000-00-00", "2026-13-45T99:99:99Z", "253402300800", "-62135596801", "1970-01-01T00:00:00+99:99"),
    *("x" * 20_000, "x " * 5_000, "\n" * 5_000, "&#0;&#xD83D;&#x110000;&#xFFFE;", "&" * 2_000, "<" * 2_000),
    *("http://[", "//[::1", "http://\ud83d.example/", "javascript:alert(1)", "data:text/html,x", "http://a@b:99999/"),
)
_NUMBERS = (
    "1e999",
    "-1e999",
    "NaN",
    "-Infinity",
    "9" * 4_000,
    "1e-999",
    "-0",
    "0." + "3" * 500,
    "1e308",
    "true",
    "null",
)
_RAW = ("\xff\xfe", "\xed\xa0\xbd", "\xc3", "\x01\x1b[31m", "\x7f", "9" * 30, "-1", "NaN", "\xa0", "a" * 900)
_HEADERS = (
    *("ETag", "Last-Modified", "Content-Language", "Link", "X-Robots-Tag", "Expires", "Age", "Date", "Server", "X-A"),
    *("Cache-Control", "Vary", "Refresh", "Content-Location", "Memento-Datetime"),
)
_LD = ("headline", "description", "image", "datePublished", "dateModified", "inLanguage", "@graph", "author", "name")
_SHARED = "quokka"
"""A word of every innocent page."""


# -- pages ----------------------------------------------------------------------------------------------------


def bad_page(seed: int, turn: int, number: int, version: int) -> Reply:
    """What page `number` of a round answers at its visit `version`."""
    chance = random.Random(f"{seed}:{turn}:{number}:{version}")
    make = chance.choice((_html, _html, _html, _json, _json, _feed, _rss, _text, _torn))
    reply = make(chance, f"m{number}v{version}")
    if chance.random() < 0.3:
        reply = Reply(reply.body, 200, _headers(chance), reply.kind)
    return reply


def _hurt(chance: random.Random) -> str:
    return "".join(chance.choice(HURTS) for _ in range(chance.choice((1, 1, 2, 3))))


def _bytes(text: str) -> bytes:
    """The text with half characters as the bytes of a careless encoder."""
    return text.encode("utf-8", "surrogatepass")


def _headers(chance: random.Random) -> dict[str, str]:
    """Headers with bytes that are no UTF-8 and with values that are no values."""
    raw = chance.choice(_RAW)
    if chance.random() < 0.1:
        return {f"X-{number}": "a" * 60 for number in range(900)} | {"X-A": "\xe9" * 30_000}
    return {name: raw if name != "Link" else f"<{raw}>; rel=next" for name in chance.sample(_HEADERS, 3)}


def _value(chance: random.Random, depth: int = 3) -> str:
    """A JSON value; half characters are escapes, as `json.dumps` writes them."""
    kind = chance.randrange(5 if depth else 3)
    if kind == 0:
        return chance.choice(_NUMBERS)
    if kind < 3:
        return json.dumps(_hurt(chance), ensure_ascii=chance.random() < 0.8)
    inside = [_value(chance, depth - 1) for _ in range(chance.randrange(4))]
    if kind == 3:
        return f"[{', '.join(inside)}]"
    return "{" + ", ".join(f"{json.dumps(_hurt(chance))}: {value}" for value in inside) + "}"


def _ld(chance: random.Random) -> str:
    names = (
        "headline",
        "description",
        "image",
        "datePublished",
        "dateModified",
        "inLanguage",
        "@graph",
        "author",
        "name",
    )
    said = [f'"{name}": {_value(chance, 2)}' for name in chance.sample(names, 5)]
    return "{" + ", ".join(said) + "}"


def _html(chance: random.Random, word: str) -> Reply:
    def it() -> str:
        return _hurt(chance)

    title = it() if chance.random() > 0.002 else "t" * 9_000_000
    parts = [
        f'<html lang="{it()}"><head><title>{title}</title><meta name=description content="{it()}"><base href="{it()}">',
        f'<meta property="og:title" content="{it()}"><meta property="og:image" content="{it()}">',
        f'<meta property="article:published_time" content="{it()}"><link rel=canonical href="{it()}">',
        f'<meta name="change-frequency-based" content="PERIODIC={it()}"><link rel=next href="{it()}">',
        f'<link rel=alternate type="application/rss+xml" href="{it()}"><meta name=robots content="{it()}">',
        f'<script type="application/ld+json">{_ld(chance)}</script>',
        f'<h1>{it()}</h1><nav class="{it()}">{it()}</nav><p {it()}="{it()}" id="{it()}">{word} {it()}</p>',
        f'<table><tr><td>{it()}<th>{it()}</table><pre>{it()}</pre><a href="{it()}">{it()}</a><img srcset="{it()}">',
        f'<time datetime="{it()}">{it()}</time><template>{it()}</template><svg><style>{it()}</style></svg>',
        "<div>" * chance.choice((1, 1, 1, 5_000)),
    ]
    kept = [part for part in parts[1:] if chance.random() < 0.7]
    body = _bytes("<!doctype html>" + parts[0] * (chance.random() < 0.7) + "".join(kept) + f"<p>{word}")
    return Reply(body, kind=chance.choice(("text/html; charset=utf-8",) * 4 + ("text/html", "text/html; charset=\xff")))


def _json(chance: random.Random, word: str) -> Reply:
    value = _value(chance) if chance.random() < 0.9 else "[" * 3_000 + "]" * chance.choice((0, 3_000))
    return Reply(
        _bytes(f'{{"title": {json.dumps(_hurt(chance))}, "text": "{word}", "v": {value}}}'), kind="application/json"
    )


def _feed(chance: random.Random, word: str) -> Reply:
    items = ", ".join(
        f'{{"id": {_value(chance, 0)}, "url": {_value(chance, 0)}, "title": {_value(chance, 0)},'
        f' "date_published": {_value(chance, 0)}}}'
        for _ in range(3)
    )
    version = '"version": "https://jsonfeed.org/version/1.1"'
    return Reply(_bytes(f'{{{version}, "title": "{word}", "items": [{items}]}}'), kind="application/feed+json")


def _rss(chance: random.Random, word: str) -> Reply:
    items = "".join(
        f"<item><title>{_hurt(chance)}</title><link>{_hurt(chance)}</link><pubDate>{_hurt(chance)}</pubDate></item>"
        for _ in range(3)
    )
    return Reply(_bytes(f"<rss><channel><title>{word}</title>{items}</channel></rss>"), kind="application/rss+xml")


def _text(chance: random.Random, word: str) -> Reply:
    kind = chance.choice(("text/plain", "text/markdown", "text/csv", "text/plain; charset=utf-16", "application/xml"))
    return Reply(_bytes(f"# {word} {_hurt(chance)}\n\n[{_hurt(chance)}]({_hurt(chance)})\n{_hurt(chance)}"), kind=kind)


def _torn(chance: random.Random, word: str) -> Reply:
    """A page whose bytes are cut, turned or in another encoding than it says."""
    body = bytearray(_html(chance, word).body[:50_000])
    for _ in range(chance.randrange(20)):
        body[chance.randrange(len(body))] = chance.choice((0, 0x80, 0xED, 0xF0, 0xFF, 0x3C, 0x26))
    del body[chance.randrange(len(body)) :]
    kinds = ("text/html", "text/html; charset=utf-16le", "text/html; charset=iso-2022-jp", "text/html; charset=gb18030")
    return Reply(bytes(body) + f"<p>{word}".encode(), kind=chance.choice(kinds))


# -- rounds ---------------------------------------------------------------------------------------------------


@dataclass
class Round:
    """What a round came to."""

    pages: int = 0
    """Bad pages that were read, each at each of its visits."""
    outputs: int = 0
    """Outputs that were asked for and checked."""
    failures: Counter[str] = field(default_factory=Counter)
    """Why bad pages failed, with how many did."""
    problems: list[str] = field(default_factory=list)

    @contextmanager
    def output(self, name: str) -> Iterator[None]:
        """Ask for an output; what goes wrong is a problem."""
        self.outputs += 1
        try:
            yield
        except Exception as error:  # noqa: BLE001
            place = traceback.extract_tb(error.__traceback__)[-1]
            said = " ".join(str(error).split())[:1_500]
            self.problems.append(f"{name}: {type(error).__name__}: {said} ({Path(place.filename).name}:{place.lineno})")


class Stage:
    """Both sites and the repository of a round."""

    def __init__(self, folder: Path, seed: int, turn: int, pages: int) -> None:
        self.folder, self.pages, self.version = folder, pages, 0
        self._seed, self._turn = seed, turn
        self.repo = Repo.create(folder / "repo", readers=2)
        self.bad, self.good = Site(), Site()
        self.bad.every = self._answer
        self.good.pages = {f"/{n}": page(f"{_SHARED} innocent{n}", f"/{(n + 1) % INNOCENT}") for n in range(INNOCENT)}
        self.good["/"] = page(f"{_SHARED} home", *self.good.pages)

    def _answer(self, asked: Asked) -> Reply | None:
        number = asked.path.removeprefix("/p/")
        if asked.path == "/":
            return Reply(page("bad", *(f"/p/{n}" for n in range(self.pages))))
        if asked.path in ("/hook", "/alert"):
            json.loads(asked.body)
            return Reply(b"")
        if number.isdigit() and int(number) < self.pages:
            return bad_page(self._seed, self._turn, int(number), self.version)
        return Reply(page("not here"), 404)

    def urls(self, chance: random.Random) -> list[str]:
        """Some of the bad pages."""
        return [self.bad.url(f"/p/{n}") for n in sorted(chance.sample(range(self.pages), min(_SHOWN, self.pages)))]


def run_round(seed: int, turn: int, pages: int, refreshes: int = REFRESHES) -> Round:
    """Crawl, refresh, and check every output."""
    found = Round()
    with tempfile.TemporaryDirectory() as scratch:
        stage = Stage(Path(scratch), seed, turn, pages)
        with stage.bad, stage.good:
            repo, bad, good = stage.repo, stage.bad, stage.good
            repo.config(private_targets=bad.url("/"))
            repo.run("sink", "add", "notes", "markdown", stage.folder / "notes")
            repo.run("sink", "add", "corpus", "chunks", stage.folder / "corpus.jsonl")
            repo.run("sink", "add", "hook", "webhook", bad.url("/hook"))
            with (repo.folder / "recrawl.toml").open("a", encoding="utf-8") as settings:
                for name, target in (("all", "feed"), ("hook", bad.url("/alert"))):
                    settings.write(f'\n[[alert]]\nname = "{name}"\ntarget = "{target}"\n')
            with found.output("crawl"):
                _visited(found, repo, repo.crawl(bad.url(), good.url()))
            for _ in range(refreshes):
                stage.version += 1
                repo.later(hours=30)
                with found.output("cycle"):
                    _visited(found, repo, repo.cycle(20 * pages + 1_000, "--policy", "round-robin"))
            _check(found, stage, random.Random(f"{seed}:{turn}"))
    return found


def _visited(found: Round, repo: Repo, summary: dict[str, Any]) -> None:
    """Take the result of a crawl or a cycle."""
    failures = Counter(summary["failures"])
    del failures[Failure.MISSING.value]  # pages that the bad ones link to
    found.failures.update(failures)
    found.pages += summary["new"] + summary["changed"] + summary["unchanged"] + sum(failures.values()) - INNOCENT - 2
    known = {failure.value for failure in _OF_THE_PAGE}
    wrong = {name: count for name, count in failures.items() if name not in known}
    if wrong:
        query = "SELECT DISTINCT failure, detail FROM visits WHERE failure IS NOT NULL"
        said = {detail for failure, detail in repo.sql(query) if failure in wrong}
        found.problems.append(f"visits failed as no page should: {wrong}: {sorted(said)[:9]}")


def _check(found: Round, stage: Stage, chance: random.Random) -> None:
    repo, good, shown = stage.repo, stage.good, stage.urls(chance)
    with found.output("innocent pages"):
        states = {url: state for url, state in repo.states().items() if url.startswith(good.url())}
        assert len(states) == INNOCENT + 1, f"{len(states)} innocent pages are known"
        assert set(states.values()) == {"live"}, Counter(states.values())
        assert repo.found(_SHARED) == set(states), "search finds other pages than the innocent ones"
        assert all(repo.found(f"innocent{n}") == {good.url(f"/{n}")} for n in range(0, INNOCENT, 7))
    with found.output("bad pages"):
        seen = {
            url for url, row in repo.pages().items() if url.startswith(stage.bad.url("/p/")) and row["state"] != "known"
        }
        missing = {stage.bad.url(f"/p/{n}") for n in range(stage.pages)} - seen
        assert not missing, f"never visited: {sorted(missing)[:5]}"
    _commands(found, stage, shown)
    _exports(found, stage)
    _sinks(found, stage)
    with Service(repo.folder, ServiceConfig(schedule=False, clock=repo.now)) as service:
        _service(found, Asker(service), stage, shown)
    with found.output("check"):
        assert repo.run("check").out.splitlines()[-1].startswith("no problem in")
    with found.output("status"):
        assert repo.json("status")["problems"] == []


def _commands(found: Round, stage: Stage, shown: list[str]) -> None:
    repo = stage.repo
    plain = [
        *(("changes",), ("changes", "--since", "9999d"), ("sites",), ("pages", "--limit", 50), ("rates",)),
        *(("search", "m1v1"), ("search", "alert script"), ("search", '"\\" OR (')),
        *(("noise", stage.bad.url()), ("anchor", stage.bad.url())),
    ]
    for words in plain:
        with found.output(" ".join(map(str, words[:1]))):
            code = None if words[0] in ("search", "rates", "noise", "anchor") else 0
            ended = repo.run(*words, code=code)
            assert ended.code in (0, 1, 2), ended
            assert "Traceback" not in ended.err, ended.err[-800:]
    for url in shown:
        for command in ("log", "show", "diff", "why", "predict"):
            with found.output(command):
                ended = repo.run(command, url, code=None)
                assert ended.code in (0, 1, 2), ended
                assert "Traceback" not in ended.err, ended.err[-800:]
                assert not {"\x1b", "\x9b", "\u202e", "\0"} & set(ended.out) or command == "show", "control characters"
        with found.output("log --json"):
            assert len(repo.json("log", url, "--visits")) > 0


def _exports(found: Round, stage: Stage) -> None:
    repo, folder = stage.repo, stage.folder
    versions = repo.sql("SELECT count(*) FROM versions")[0][0]
    with found.output("export Parquet"):
        repo.run("export", folder / "all.parquet")
        assert pq.read_table(folder / "all.parquet").num_rows >= versions
    for table in ("pages", "visits", "versions", "changes"):
        with found.output(f"export {table}"):
            repo.run("export", folder / f"{table}.parquet", "--table", table)
            pq.read_table(folder / f"{table}.parquet").to_pylist()
    with found.output("export WARC"):
        repo.run("export", folder / "all.warc.gz")
        with (folder / "all.warc.gz").open("rb") as file:
            assert sum(1 for record in ArchiveIterator(file) if record.reader.read() is not None) >= versions
    with found.output("export WACZ"):
        repo.run("export", folder / "all.wacz")
        with zipfile.ZipFile(folder / "all.wacz") as wacz:
            assert wacz.testzip() is None
            for line in wacz.read("pages/pages.jsonl").decode().splitlines():
                json.loads(line)
    with found.output("export CDXJ"):
        repo.run("export", folder / "all.cdxj")
        for line in (folder / "all.cdxj").read_text(encoding="utf-8").splitlines():
            json.loads(line.split(" ", 2)[2]) if "{" in line else None
    with found.output("export URLs"):
        repo.run("export", folder / "urls.txt")
        assert (folder / "urls.txt").read_text(encoding="utf-8").count("\n") >= stage.pages
    with found.output("chunks"):
        for line in repo.run("chunks").out.split("\n")[:-1]:
            json.loads(line)
    for name in ("all.parquet", "all.warc.gz"):
        with found.output(f"import {name}"):
            other = Repo.create(folder / f"other-{name}", readers=1)
            other.run("import", folder / name)
            assert other.found("innocent3"), "an innocent page is not found after an import"
            assert other.json("status")["problems"] == []


def _sinks(found: Round, stage: Stage) -> None:
    repo = stage.repo
    with found.output("sinks"):
        ended = repo.run("sink", "run", code=None)
        assert ended.code == 0, ended
        assert repo.json("sink", "parked") == [], "changes are parked"
        for path in (stage.folder / "notes").rglob("*.md"):
            path.read_bytes().decode("utf-8")
        with (stage.folder / "corpus.jsonl").open(encoding="utf-8") as lines:
            assert sum(1 for line in lines if json.loads(line)) > 0
        posted = [asked for asked in stage.bad.log if asked.path == "/hook"]
        assert posted, "no change was posted"
        for asked in posted:
            asked.body.decode("utf-8").encode("utf-8")


def _service(found: Round, ask: Asker, stage: Stage, shown: list[str]) -> None:
    known = dict(stage.repo.sql("SELECT url, id FROM pages"))
    numbers = [known[url] for url in shown if url in known]
    api = [
        "status",
        "sites",
        "pages?limit=500",
        "changes?limit=500",
        "search?query=alert",
        "cycles",
        "outbox",
        "deliveries",
    ]
    api += [f"pages/{n}{end}" for n in numbers for end in ("", "/versions", "/visits", "/text", "/diff", "/why")]
    for path in api:
        with found.output("API"):
            got = ask.get(f"/api/v1/{path}")
            assert got.status in (200, 400, 404, 422), (path, got.status, got.text[:300])
            got.text.encode("utf-8")
            if "json" in got.headers.get("content-type", ""):
                json.loads(got.text, parse_constant=_no_number)
    screens = [
        "/",
        "/sites",
        "/changes",
        "/search?q=alert",
        "/settings",
        "/alerts",
        "/settings/deliveries",
        "/running",
    ]
    screens += [f"/pages/{n}{end}" for n in numbers for end in ("", "/look", "/text", "/source", "/diff", "/outlook")]
    for path in screens:
        with found.output("dashboard"):
            got = ask.get(path, Accept="text/html")
            assert got.status in (200, 302, 303, 404), (path, got.status, got.text[:300])
            assert "<script>alert" not in got.text, path
    with found.output("metrics"):
        assert ask.get("/metrics").status == 200
    for path in ("/changes.atom", "/feed.atom"):
        with found.output("feed"):
            got = ask.get(path)
            assert got.status == 200, got.status
            ET.fromstring(got.body)


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no JSON")


def main(words: list[str] | None = None, tell: Callable[[str], None] = lambda line: print(line, flush=True)) -> int:
    """Run rounds until enough pages are read; print a line for each, and what went wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fuzz_outputs", description=__doc__)
    parser.add_argument("--pages", type=int, default=20_000, help="bad pages that are read, in all rounds (20,000)")
    parser.add_argument("--each", type=int, default=EACH, help=f"bad pages of a round ({EACH:,})")
    parser.add_argument("--first", type=int, default=0, help="number of the first round (0)")
    parser.add_argument("--seed", type=int, default=SEED)
    chosen = parser.parse_args(words)
    turn, read, outputs, bad, begun = chosen.first, 0, 0, 0, time.monotonic()
    while read < chosen.pages:
        found = run_round(chosen.seed, turn, chosen.each)
        read, outputs, bad = read + found.pages, outputs + found.outputs, bad + len(found.problems)
        failures = ", ".join(f"{count} {name}" for name, count in found.failures.most_common()) or "none failed"
        done = f"{read:,} of {chosen.pages:,} pages, {outputs:,} outputs, {bad} problems"
        tell(f"round {turn}: {done}; of all of its pages {failures}")
        for problem in found.problems:
            tell(f"    seed {chosen.seed}, round {turn}: {problem}")
        turn += 1
        if not found.pages:
            break
    tell(f"{read:,} pages and {outputs:,} outputs in {time.monotonic() - begun:,.0f} s: {bad} problems")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
