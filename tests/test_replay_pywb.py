"""An independent replay tool, pywb, shows every visit of a page as it was, through revisit records too.

pywb is in an environment of its own (`tests.environments`). Without a network these tests are skipped.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from warcio.archiveiterator import ArchiveIterator

from recrawl.lab.timelapse import ServerOptions as Manners
from recrawl.model import Outcome
from recrawl.record import warc
from tests.crashes import Bench, archive_of, ask, judge
from tests.environments import python_of

_START = 1_700_000_000
_DAY = 86400

# pywb brings threads and warnings of its own, so it lives in a process: it takes addresses, and gives status and body.
_PYWB = """
from gevent.monkey import patch_all
patch_all()
import json, sys
from pywb.apps.frontendapp import FrontEndApp
from werkzeug.test import Client
client = Client(FrontEndApp(custom_config={"debug": True}))
answers = []
for path in json.load(sys.stdin):
    answer = client.get(path)
    answers.append([answer.status_code, answer.headers.get("Content-Type", ""), answer.get_data(as_text=True)])
with open("answers.json", "w") as file:
    json.dump(answers, file)
"""


class Visit(NamedTuple):
    """A visit of the page: when, what the server was like, what it should come to and what it showed."""

    day: int
    validators: bool
    outcome: Outcome
    record: str
    body: bytes


def body(words: str) -> bytes:
    return f"<!doctype html><title>History</title><p>{words}</p>".encode()


ONE, TWO, THREE = body("version one"), body("version two"), body("version three, with an \u00fcmlaut")
VISITS = (
    Visit(0, True, Outcome.NEW, "response", ONE),
    Visit(1, True, Outcome.UNCHANGED, warc.NOT_MODIFIED, ONE),
    Visit(2, False, Outcome.UNCHANGED, warc.IDENTICAL, ONE),
    Visit(10, True, Outcome.CHANGED, "response", TWO),
    Visit(11, False, Outcome.UNCHANGED, warc.IDENTICAL, TWO),
    Visit(12, False, Outcome.UNCHANGED, warc.IDENTICAL, TWO),
    Visit(20, False, Outcome.CHANGED, "response", THREE),
    Visit(30, False, Outcome.CHANGED, "response", ONE),
    Visit(31, False, Outcome.UNCHANGED, warc.IDENTICAL, ONE),
)


class Crawled(NamedTuple):
    """A repository whose one page was visited as `VISITS` says."""

    folder: Path
    url: str


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Crawled:
    rows = [(0, ONE), (10, TWO), (20, THREE), (30, ONE)]
    archive = archive_of([("https://a.example/", _START + day * _DAY, text) for day, text in rows])
    with Bench(archive) as bench:
        folder = bench.create(tmp_path_factory.mktemp("pywb") / "repo", sitemaps=False)
        for visit in VISITS:
            bench.clock.set(_START + visit.day * _DAY + 1)
            bench.app.manners(Manners(no_validators=not visit.validators))
            if visit.day == 0:
                bench.crawl(folder)
            else:
                bench.cycle(folder)
        (url,) = bench.seeds
    judge(folder)
    return Crawled(folder, url)


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python of pywb's environment."""
    return python_of("pywb")


@pytest.fixture(scope="module")
def collection(python: Path, crawled: Crawled, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """pywb's folder, with our files in its collection `history`."""
    folder = tmp_path_factory.mktemp("collection")
    _manage(python, folder, "init", "history")
    _manage(python, folder, "add", "history", *(str(path) for path in (crawled.folder / "archive").iterdir()))
    return folder


def test_the_visits_came_to_what_they_should(crawled: Crawled) -> None:
    assert [Outcome(row[0]) for row in ask(crawled.folder, "SELECT outcome FROM visits ORDER BY id")] == [
        visit.outcome for visit in VISITS
    ]
    kinds = []
    for path in sorted((crawled.folder / "archive").iterdir()):
        with path.open("rb") as file:
            records = [one for one in ArchiveIterator(file) if one.rec_type in ("response", "revisit")]
        records = [one for one in records if one.rec_headers.get_header("WARC-Target-URI") == crawled.url]
        kinds += [one.rec_headers.get_header("WARC-Profile") or one.rec_type for one in records]
    assert kinds == [visit.record for visit in VISITS]
    assert {warc.IDENTICAL, warc.NOT_MODIFIED} <= set(kinds)


def test_pywb_shows_every_visit_as_it_was(python: Path, crawled: Crawled, collection: Path) -> None:
    times = [datetime.fromtimestamp(_START + visit.day * _DAY + 1, UTC).strftime("%Y%m%d%H%M%S") for visit in VISITS]
    answers = _replay(python, collection, [f"/history/{time}id_/{crawled.url}" for time in times])
    for visit, (status, kind, shown) in zip(VISITS, answers, strict=True):
        assert status == 200, f"day {visit.day}: {shown[:300]}"
        assert kind.startswith("text/html")
        assert shown == visit.body.decode(), f"day {visit.day}"


def test_pywb_knows_of_every_visit(python: Path, crawled: Crawled, collection: Path) -> None:
    listing = _replay(python, collection, [f"/history/cdx?url={crawled.url}&output=json"])[0][2]
    rows = [json.loads(line) for line in listing.splitlines()]
    assert len(rows) == len(VISITS)
    assert [row["mime"] == "warc/revisit" for row in rows] == [visit.record != "response" for visit in VISITS]
    digests = {text: base64.b32encode(hashlib.sha1(text).digest()).decode() for text in (ONE, TWO, THREE)}
    assert [row["digest"] for row in rows] == [digests[visit.body] for visit in VISITS]


def _manage(python: Path, folder: Path, *arguments: str) -> None:
    code = "from pywb.manager.manager import main_wrap_exc; main_wrap_exc()"
    _run(python, folder, code, *arguments)


def _replay(python: Path, folder: Path, paths: list[str]) -> list[Any]:
    _run(python, folder, _PYWB, given=json.dumps(paths))
    answers: list[Any] = json.loads((folder / "answers.json").read_text())
    return answers


def _run(python: Path, folder: Path, code: str, *arguments: str, given: str = "") -> None:
    words = [str(python), "-W", "ignore", "-c", code, *arguments]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    ended = subprocess.run(
        words, cwd=folder, env=alone, capture_output=True, text=True, timeout=180, check=False, input=given
    )
    assert ended.returncode == 0, ended.stderr
