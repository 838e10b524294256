"""Visits made by another program: recorded as our own are, and chosen by a policy."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import recrawl
from recrawl import Answer, Failure
from recrawl.errors import UsageError
from tests.clocks import Clock

DAY = 86400.0
FRONT, NEWS = "https://a.example/", "https://a.example/news"
HTML = (("Content-Type", "text/html"), ("ETag", '"1"'))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def repo(tmp_path: Path, clock: Clock) -> recrawl.Repository:
    made = recrawl.init(tmp_path / "repo", clock=clock)
    made.configure(readers=1)
    return made


def html(words: str) -> bytes:
    return f"<title>t</title><p>{words}".encode()


def outcomes(repo: recrawl.Repository, url: str) -> list[str]:
    return [visit.outcome for visit in repo.page(url).visits][::-1]


def ok(clock: Clock, url: str, words: str) -> Answer:
    return Answer.made(url, 200, HTML, html(words), at=clock.now)


def test_visits_of_others_are_versions_like_our_own(repo: recrawl.Repository, clock: Clock) -> None:
    report = repo.record([ok(clock, FRONT, "front"), ok(clock, NEWS, "one piece of news")])
    assert report.finished
    assert report.kind == "record"
    clock.now += DAY
    repo.record([ok(clock, FRONT, "front"), ok(clock, NEWS, "quite other news of another day")])
    clock.now += DAY
    repo.record([Answer.made(FRONT, 304, at=clock.now), Answer.failed(NEWS, Failure.TIMEOUT, "too slow", at=clock.now)])
    assert outcomes(repo, FRONT) == ["new", "unchanged", "unchanged"]
    assert outcomes(repo, NEWS) == ["new", "changed", "failed"]
    assert [version.time.timestamp() for version in repo.page(NEWS).versions] == [1.7e9, 1.7e9 + DAY]
    assert repo.page(NEWS).text == "quite other news of another day"
    assert [hit.url for hit in repo.search("quite")] == [NEWS]
    assert not repo.check().problems


def test_a_page_is_gone_when_that_is_confirmed(repo: recrawl.Repository, clock: Clock) -> None:
    repo.record([ok(clock, f"{NEWS}/{number}", f"news {number}") for number in range(20)])
    for _ in range(2):
        clock.now += 3 * DAY
        repo.record([Answer.made(f"{NEWS}/7", 404, at=clock.now)])
    assert repo.page(f"{NEWS}/7").state == "gone"
    assert repo.page(f"{NEWS}/8").state == "live"


def test_redirects_are_followed_by_our_rules(repo: recrawl.Repository, clock: Clock) -> None:
    old, new, shop = "https://a.example/old", "https://b.example/new", "https://a.example/shop"
    to = [(("Location", target),) for target in (new, f"{shop}/today")]
    repo.record([
        [Answer.made(old, 301, to[0], at=clock.now), ok(clock, new, "moved here")],
        [Answer.made(shop, 302, to[1], at=clock.now), ok(clock, f"{shop}/today", "offers")],
        [Answer.made(NEWS, 302, to[1], at=clock.now)],
    ])  # fmt: skip
    assert (repo.page(old).state, repo.page(old).moved_to) == ("moved", new)
    assert repo.page(new).text == "moved here"
    assert repo.page(shop).text == "offers"
    assert repo.page(shop).answered_url == f"{shop}/today"
    assert repo.page(NEWS).state == "live", "the target's answer was given with another visit of the batch"


def test_many_failures_in_a_row_are_all_recorded(repo: recrawl.Repository, clock: Clock) -> None:
    urls = [f"https://a.example/{number}" for number in range(40)]
    report = repo.record([Answer.failed(url, Failure.CONNECT, "refused", at=clock.now) for url in urls])
    assert report.failures == {"connect": 40}
    busy = [Answer.made(url, 503, (("Retry-After", "9999"),), at=clock.now) for url in urls]
    assert repo.record(busy).failures == {"http-5xx": 40}


def test_what_our_own_download_would_refuse_is_refused(repo: recrawl.Repository, clock: Clock) -> None:
    repo.configure(max_bytes=1000)
    picture = Answer.made(f"{FRONT}a.png", 200, (("Content-Type", "image/png"),), b"png", at=clock.now)
    report = repo.record([picture, Answer.made(FRONT, 200, HTML, b"x" * 1001, at=clock.now)])
    assert report.failures == {"content-type": 1, "too-large": 1}


def test_visits_are_recorded_while_others_are_still_made(repo: recrawl.Repository, clock: Clock) -> None:
    """A batch is durable before the next visit is asked for: a crash costs one batch."""

    def visits() -> Iterator[Answer]:
        for number in range(40):
            if number == 33:
                with recrawl.open(repo.folder) as reader:
                    seen.append(reader.status().visits)
                raise KeyboardInterrupt
            yield ok(clock, f"{FRONT}{number}", f"page {number}")

    seen: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        repo.record(visits())
    assert seen == [32]
    report = repo.record([ok(clock, FRONT, "front")])
    assert report.resumed
    assert repo.status().visits == 33


def test_a_policy_chooses_and_another_program_downloads(repo: recrawl.Repository, clock: Clock) -> None:
    repo.record([ok(clock, f"{FRONT}{number}", f"page {number}") for number in range(8)])
    asked: list[recrawl.Request] = []

    def fetch(requests: Sequence[recrawl.Request]) -> list[Answer]:
        asked.extend(requests)
        return [Answer.made(it.url, 304 if it.validators else 200, HTML, b"", at=clock.now) for it in requests]

    clock.now += DAY
    report = repo.cycle(budget=5, policy="round-robin", fetch=fetch)
    assert report.finished
    assert len(asked) == sum(report.outcomes.values()) == 5
    assert all(request.validators is not None for request in asked)
    assert asked[0].validators is not None
    assert asked[0].validators.headers == {"If-None-Match": '"1"'}
    before = {request.url for request in asked}
    clock.now += DAY
    repo.cycle(budget=3, policy="round-robin", fetch=fetch)
    assert {request.url for request in asked[5:]} == {f"{FRONT}{number}" for number in range(8)} - before


def test_an_answer_that_is_missing_is_an_error_and_the_cycle_is_resumed(repo: recrawl.Repository, clock: Clock) -> None:
    repo.record([ok(clock, FRONT, "front")])
    clock.now += DAY
    with pytest.raises(UsageError, match=f"no answer was given for {FRONT}"):
        repo.cycle(budget=1, policy="round-robin", fetch=lambda _: [])
    report = repo.cycle(fetch=lambda _: [Answer.made(FRONT, 304, at=clock.now)])
    assert report.resumed
    assert outcomes(repo, FRONT) == ["new", "unchanged"]
