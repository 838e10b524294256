"""What tests of erasing share: a small web with a token everywhere, a search of files that knows nothing of recrawl's
code, and commands that are killed at a moment that does not depend on the speed of the machine."""

from __future__ import annotations

import gzip
import io
import os
import re
import signal
import sqlite3
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from tests.test_file_types import pdf
from tests.world import Reply, Repo, Site, page

TOKEN = "zqxtokenwq"
"""Stands on the page that is erased, and nowhere else."""
KINDS = ["text/html", "application/pdf"]
PICTURE = b"\x89PNG" + b"1" * 300
"""The bytes of two requisites: one of the page that is erased, one of another."""


def fill(site: Site, extra: str = "") -> str:
    """The pages of the web; the URL of the one to be erased."""
    site["/"] = page("home", "/a", "/person", "/moved")
    site["/a"] = page("alpha", "/b")
    body = f"""<title>{TOKEN} title</title><meta name=description content="{TOKEN} said">
        <link rel=stylesheet href="/{TOKEN}.css"><img src="/{TOKEN}.png"><img src="/both.png">
        <h1>{TOKEN} heading</h1><p>About {TOKEN} <a href="/{TOKEN}-link">{TOKEN}</a> <a href="/{TOKEN}.pdf">paper</a>
        {extra}"""
    site["/person"] = Reply(body.encode(), headers={"X-Person": TOKEN}, etag='"1"')
    site["/moved"] = Reply(b"", 301, {"Location": "/person"})
    site["/both.png"] = Reply(b"\x89PNG" + b"2" * 300, kind="image/png")
    site[f"/{TOKEN}.png"] = site["/same.png"] = Reply(PICTURE, kind="image/png", etag='"2"')
    site[f"/{TOKEN}.css"] = Reply(b"b{background:url(/only.png)}", kind="text/css")
    site["/only.png"] = Reply(b"\x89PNG" + b"3" * 300, kind="image/png")
    paper = zlib.compress(f"BT ({TOKEN} in the paper) Tj ET".encode())
    packed = pdf(f"{TOKEN} in the paper", title=TOKEN).replace(b"%%EOF", b"stream\n%s\nendstream %%%%EOF" % paper)
    site[f"/{TOKEN}.pdf"] = Reply(packed, kind="application/pdf")
    site["/b"] = Reply(b"<title>beta</title><img src=/both.png><img src=/same.png><p>beta text")
    return site.url("/person")


def recorded(folder: Path, site: Site, extra: str = "", **settings: object) -> tuple[Repo, str]:
    """A repository of that web after a crawl and three cycles, with changes; and the URL to be erased."""
    fixed = {"index": True, "requisites": "all", "requisite_hours": 1, "change": "text", "content_types": KINDS}
    repo = Repo.create(folder, **fixed, **settings)
    url = fill(site, extra)
    repo.crawl(site.url("/"))
    for number in range(3):
        repo.later(hours=5)
        site["/a"] = page(f"alpha {number}", "/b")
        repo.cycle()
    return repo, url


def traces(folder: Path, text: str = TOKEN) -> dict[str, int]:
    """How often a text stands in each file of a folder, as it is and in everything that is compressed in it."""
    spellings = {text, quote(text, safe=""), text.upper(), text.title()}
    needles = {form.encode(coding) for form in spellings for coding in ("utf-8", "utf-16-le", "utf-32-le")}
    found = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            number = sum(part.count(needle) for part in parts(path) for needle in needles)
            if number:
                found[str(path.relative_to(folder))] = number
    return found


def parts(path: Path) -> Iterator[bytes]:
    """A file as it is, and what is compressed in it."""
    data = path.read_bytes()
    yield data
    if path.suffix == ".gz":
        whole = gzip.decompress(data)
        yield whole
        for begin in re.finditer(rb"stream\n", whole):
            try:
                yield zlib.decompressobj().decompress(whole[begin.end() :])
            except zlib.error:
                continue
    if path.suffix in (".npz", ".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from map(archive.read, archive.namelist())
    if path.name == "recrawl.db":
        with closing(sqlite3.connect(path)) as db:
            for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
                yield repr(db.execute(f"SELECT * FROM {table}").fetchall()).encode()


def calls_of(work: Callable[[], object]) -> int:
    """How many functions a piece of work calls in its main thread."""
    return _forked(work, 0)


def killed_at(work: Callable[[], object], moment: int) -> bool:
    """Do a piece of work in a process that kills itself at its n-th call of a function; False if it ended before."""
    return bool(_forked(work, moment))


def _forked(work: Callable[[], object], moment: int) -> int:
    """In a child: with a moment whether it was killed, without one the number of calls."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        with os.fdopen(reading) as answer:
            calls = answer.read()
        _, status = os.waitpid(child, 0)
        return int(calls or 0) if not moment else int(os.WIFSIGNALED(status))
    made = 0

    def count(_frame: object, event: str, _value: object) -> None:
        nonlocal made
        if event in ("call", "c_call"):
            made += 1
            if made == moment:
                os.kill(os.getpid(), signal.SIGKILL)

    try:
        sys.setprofile(count)
        work()
        sys.setprofile(None)
        os.write(writing, str(made).encode())
    finally:
        os._exit(0)
