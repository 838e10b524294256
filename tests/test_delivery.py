"""Delivery: every change ends once as delivered, parked or dropped; one page or receiver harms only itself."""

from __future__ import annotations

import itertools
import json
import random
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import recrawl
from recrawl.cluster.layout import Layout
from recrawl.record.rows import OutboxRow, OutboxState
from recrawl.record.store import SqliteStore
from recrawl.record.store.postgres.gathered.store import GatheredStore
from recrawl.repository import outgoing
from recrawl.repository.alerts import matching, rules
from recrawl.repository.alerts.outbox import Outbox
from recrawl.repository.delivery.engine import CallReport, Engine, OutboxEntry, SendResult, first_of_pages
from recrawl.repository.delivery.law import LAST_PAUSE, MAX_TRIES, Health, after_call, deliver_apart, pause, verdict
from recrawl.repository.outgoing import NotSent, not_accepted
from recrawl.repository.sinks.chunk_lines import ChunkLines
from recrawl.repository.sinks.markdown_files import MarkdownFiles, earlier_name, file_name
from recrawl.repository.sinks.protocol import Event
from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import Alert, write_alerts
from tests.serving import Asker
from tests.test_change_levels import submit
from tests.test_sinks import changes, corpus_of
from tests.world import Asked, Reply, Repo, Site, page

NewCluster = Callable[[int], Layout]
OK, LATER, NEVER, BROKEN = "ok", "later", "never", "broken"
ANSWERS = {LATER: NotSent("HTTP 500"), NEVER: NotSent("HTTP 400", permanent=True)}


# -- laws -----------------------------------------------------------------------------------------------------


class Scripted:
    """A receiver that answers each change as its script says, and is told of changes in blocks."""

    keeps_sent = False
    name = target = "sink:scripted"

    def __init__(self, pages: Sequence[int], scripts: Sequence[Sequence[str]], batch: int) -> None:
        self.pages = pages
        self.scripts = [list(script) for script in scripts]
        self.batch = batch
        self.sent: list[int] = []
        """Every change whenever it was sent alone or in a batch."""
        self.taken: list[int] = []
        """Every change whenever it was accepted."""

    def claim(self, held: ExitStack) -> None:
        """Nobody else is there."""

    def take_up(self, repo: Any) -> None:
        store = repo.storage.store
        start = int(store.meta.get("taken", 0))
        with store.transaction():
            for number in range(start, min(start + 7, len(self.pages))):
                body = json.dumps({"visit": number})
                store.outbox.add(
                    OutboxRow(f"{self.name}:{number}", self.name, self.pages[number], 0, 0, None, 0.0, 0.0, body)
                )
            store.meta.set("taken", min(start + 7, len(self.pages)))

    def choose(self, repo: Any, now: float, health: Health) -> list[OutboxEntry]:
        return first_of_pages(repo, self.name, now, health)

    def call(self, entries: Sequence[OutboxEntry], report: CallReport, over: Callable[[], bool]) -> None:
        alone = [[entry] for entry in entries if entry.tries]
        fresh = [entry for entry in entries if not entry.tries]
        for group in [*alone, *([fresh[i : i + self.batch] for i in range(0, len(fresh), self.batch)])]:
            try:
                for entry, error in deliver_apart(group, self._deliver, lambda _: None):
                    report.results.append(SendResult(entry, error))
            except NotSent as error:
                report.problem = error
                return

    def tell(self, repo: Any, problem: str) -> None:
        """Nobody reads it."""

    def told(self, repo: Any) -> str:
        return ""

    def _deliver(self, entries: Sequence[OutboxEntry]) -> dict[int, NotSent]:
        numbers = [entry.body["visit"] for entry in entries]
        self.sent += numbers
        answers = [self.scripts[number][0] if self.scripts[number] else OK for number in numbers]
        if BROKEN in answers:  # nobody knows what was stored
            raise NotSent("reset")
        for number, answer in zip(numbers, answers, strict=True):
            if answer == LATER:
                self.scripts[number].pop(0)
            if answer == OK:
                self.taken.append(number)
        if len(entries) > 1 and NEVER in answers:
            raise NotSent("HTTP 400", permanent=True)
        return {entry.id: ANSWERS[answer] for entry, answer in zip(entries, answers, strict=True) if answer in ANSWERS}


@st.composite
def receivers(draw: st.DrawFn) -> Scripted:
    pages = draw(st.lists(st.integers(0, 5), min_size=1, max_size=30))
    fails: st.SearchStrategy[list[str]] = st.lists(st.just(LATER), max_size=14)
    never = st.sampled_from([[], [], [], [], [], [], [NEVER], [BROKEN]])
    return Scripted(pages, [draw(st.one_of(never, fails)) for _ in pages], draw(st.sampled_from([1, 3, 100])))


@settings(max_examples=120, deadline=None)
@given(receivers(), st.randoms(use_true_random=False))
def test_each_change_ends_once_in_order_of_its_page_after_a_bounded_number_of_tries(
    receiver: Scripted, chance: random.Random
) -> None:
    with closing(SqliteStore(Path(":memory:"), create=True)) as store:
        repo: Any = SimpleNamespace(storage=SimpleNamespace(store=store))
        clock, crashes = [1e6], 0
        engine = Engine(lambda: clock[0])
        for _ in range(10_000):
            started = engine.start(repo, [receiver])
            if started and crashes < 3 and chance.random() < 0.1:  # killed: what was sent is not recorded
                while engine.busy:
                    list(engine._senders.collect(10.0))
                engine, crashes = Engine(lambda: clock[0]), crashes + 1
                continue
            engine.settle(repo, 10.0)
            if not started:
                waiting = store.outbox.counts()
                if not any(state == OutboxState.WAITING for _, state, _ in waiting):
                    break
                clock[0] += chance.choice((10.0, 300.0, LAST_PAUSE))
        else:
            raise AssertionError("it does not end")
        parked = [json.loads(row["body"])["visit"] for row in store.outbox.parked((), 1000)]
        assert sorted({*parked, *receiver.taken}) == list(range(len(receiver.pages)))
        assert store.db.execute("SELECT count(*) FROM outbox").fetchone() == (len(parked),)
        if not crashes:
            assert not set(parked) & set(receiver.taken)
        assert max(Counter(receiver.sent).values()) <= (MAX_TRIES + 4) * (1 + crashes)
        for _, numbers in itertools.groupby(sorted(range(len(receiver.pages)), key=lambda i: receiver.pages[i]),
                                            key=lambda i: receiver.pages[i]):  # fmt: skip
            own = set(numbers)
            firsts = list(dict.fromkeys(number for number in receiver.sent if number in own))
            assert firsts == sorted(own), "a change is sent after the one before it of its page"
        refused = {number for number, script in enumerate(receiver.scripts) if script in ([NEVER], [BROKEN])}
        assert refused <= set(parked)


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.floats(0, 1e9), st.floats(0, 1e6))
def test_pauses_grow_and_are_bounded_and_tries_too(permanent: list[bool], now: float, wait: float) -> None:
    tries, state, pauses = 0, OutboxState.WAITING, []
    for one in permanent:
        found = verdict(NotSent("x", permanent=one, wait=wait), tries, now)
        state, tries = found.state, found.tries
        if state == OutboxState.PARKED:
            break
        pauses.append(found.due - now)
        assert 0 < found.due - now <= LAST_PAUSE + 1e-3
    assert tries <= MAX_TRIES
    assert state == OutboxState.PARKED or tries == len(permanent)
    assert all(later >= before - 1e-3 for before, later in itertools.pairwise(pauses))
    assert [pause(n) for n in range(1, 60)] == sorted(pause(n) for n in range(1, 60))


@given(st.lists(st.sampled_from([OK, LATER, NEVER]), max_size=60))
def test_a_receiver_that_accepts_something_is_not_left_alone(answers: list[str]) -> None:
    health = Health()
    for answer in answers:
        health = after_call(health, ANSWERS.get(answer), 100.0)
        assert health.until <= 100.0 + LAST_PAUSE
        if answer == OK:
            assert health == Health()


@given(st.integers(1, 40), st.sets(st.integers(0, 39)), st.sets(st.integers(0, 39)))
def test_a_batch_is_halved_until_what_is_to_blame_is_found(count: int, refused: set[int], large: set[int]) -> None:
    items = [SimpleNamespace(id=number, large=number in large) for number in range(count)]
    stored: list[int] = []

    def deliver(batch: Sequence[Any]) -> dict[int, NotSent]:
        if any(item.id in refused for item in batch):
            raise NotSent("HTTP 400", permanent=True)
        if any(item.large for item in batch):
            raise not_accepted(413)
        stored.extend(item.id for item in batch)
        return {}

    found = {
        item.id: error
        for item, error in deliver_apart(items, deliver, lambda it: SimpleNamespace(id=it.id, large=False))
    }
    assert set(found) == set(range(count))
    assert {number for number, error in found.items() if error is not None} == refused & set(range(count))
    assert sorted(stored) == sorted(set(range(count)) - refused)


# -- receivers over HTTP --------------------------------------------------------------------------------------

PAGES = 12
BAD = "/p3"


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Repo, Site]]:
    """A site of pages that are new, and then changed."""
    repo = Repo.create(tmp_path_factory.mktemp("delivery") / "repo", change="text")
    with Site({"/": page("front", *(f"/p{n}" for n in range(1, PAGES)))}) as web:
        web.pages |= {f"/p{n}": page(f"page {n} one") for n in range(1, PAGES)}
        repo.crawl(web.url("/"))
        web.pages |= {f"/p{n}": page(f"page {n} two has other words") for n in range(1, PAGES)}
        repo.later(days=3)
        repo.cycle()
        yield repo, web


@pytest.fixture
def history(crawled: tuple[Repo, Site], tmp_path: Path) -> Repo:
    import shutil

    repo, _ = crawled
    shutil.copytree(repo.folder, tmp_path / "copy")
    return Repo(tmp_path / "copy", repo.ahead)


class Hook:
    """A webhook on loopback; what it answers to the page `BAD` can be set."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.bad: Reply | None = None
        self.events: list[dict[str, Any]] = []
        """What was accepted, in order."""
        self.tried: list[tuple[str, int]] = []
        """Path of the page and size of the body of each request."""
        site.every = self._answer

    def _answer(self, asked: Asked) -> Reply:
        event = json.loads(asked.body)
        path = "/" + event["subject"].split("/", 3)[3]
        self.tried.append((path, len(asked.body)))
        if path == BAD and self.bad is not None:
            return self.bad
        self.events.append(event)
        return Reply(status=204)

    def of(self, path: str) -> list[int]:
        """The changes of a page that were accepted."""
        return [int(event["id"]) for event in self.events if event["subject"].endswith(path)]


@pytest.fixture
def hook(history: Repo) -> Iterator[Hook]:
    with Site() as site:
        history.config(private_targets=[site.url("").rstrip("/")])
        history.run("sink", "add", "hook", "webhook", site.url("/in"))
        yield Hook(site)


def sink(repo: Repo) -> dict[str, Any]:
    return next(row for row in repo.json("sink") if row["name"] == "hook")


PERMANENT = {
    "400": Reply(status=400),
    "404": Reply(status=404),
    "410": Reply(status=410),
    "413": Reply(status=413),
    "422": Reply(status=422),
    "moved for good": Reply(status=308, headers={"Location": "/elsewhere"}),
}
TEMPORARY = {
    "408": Reply(status=408),
    "425": Reply(status=425),
    "500": Reply(status=500),
    "503": Reply(status=503),
    "moved for now": Reply(status=307, headers={"Location": "/elsewhere"}),
    "closed without an answer": Reply(cut=0),
    "closed half way": Reply(b"x" * 500, cut=20),
    "hangs": Reply(until=threading.Event()),
}


@pytest.mark.parametrize("answer", PERMANENT)
def test_a_page_that_is_refused_is_parked_and_stops_nothing(history: Repo, hook: Hook, answer: str) -> None:
    hook.bad = PERMANENT[answer]
    assert history.run("sink", "run", code=1).err.count("parked") == 2
    assert len(hook.events) == len(changes(history)) - 2, "all changes of all other pages"
    assert (sink(history)["waiting"], sink(history)["parked"]) == (0, 2)
    parked = history.json("sink", "parked")
    assert [(row["receiver"], row["outcome"], row["tries"]) for row in parked] == [
        ("hook", "new", 1),
        ("hook", "changed", 1),
    ]
    assert all(row["url"].endswith(BAD) and str(hook.bad.status) in row["error"] for row in parked)
    tried = len(hook.tried)
    assert history.run("sink", "run").out == "hook: 0 changes delivered\n", "it is not tried again by itself"
    assert len(hook.tried) == tried
    hook.bad = None
    assert history.json("sink", "retry", "hook", "--number", parked[0]["number"]) == {"changes": 1}
    history.run("sink", "run")
    assert history.json("sink", "drop", "hook", "--all") == {"changes": 1}
    assert len(hook.of(BAD)) == 1
    assert (sink(history)["waiting"], sink(history)["parked"]) == (0, 0)
    assert history.json("sink", "parked") == []


@pytest.mark.parametrize("answer", TEMPORARY)
def test_a_page_that_fails_for_now_waits_and_stops_nothing(
    history: Repo, hook: Hook, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "_LIMITS", replace(outgoing._LIMITS, total_seconds=1.0))
    hook.bad = TEMPORARY[answer]
    until = threading.Event()
    if answer == "hangs":
        hook.bad = replace(hook.bad, until=until)
    assert "tried again" in history.run("sink", "run", code=1).err
    until.set()
    assert sorted(hook.of("/p4")) == hook.of("/p4")
    assert len(hook.events) == len(changes(history)) - 2
    assert [path for path, _ in hook.tried].count(BAD) == 1, "the second change of the page waits for the first"
    assert (sink(history)["waiting"], sink(history)["parked"]) == (2, 0)
    assert sink(history)["problem"] != ""
    (row,) = history.sql("SELECT due FROM outbox WHERE tries > 0")
    assert 20 < row[0] - history.now() <= 30
    hook.bad = None
    history.run("sink", "run")
    assert len(hook.of(BAD)) == 2
    assert hook.of(BAD) == sorted(hook.of(BAD))


def test_a_receiver_that_wants_to_be_asked_later_is_asked_later(history: Repo, hook: Hook) -> None:
    hook.bad = Reply(status=429, headers={"Retry-After": "90"})
    history.run("sink", "run", code=1)
    assert hook.tried[-1][0] == BAD, "nothing is sent to it meanwhile"
    (row,) = history.sql("SELECT due FROM outbox WHERE tries > 0")
    assert 60 < row[0] - history.now() <= 90
    before = len(hook.tried)
    with recrawl.open(history.folder, clock=history.now) as repo:
        repo.deliver_all()
    assert before < len(hook.tried), "another page shows whether it takes changes again"
    hook.bad = None
    history.run("sink", "run")
    assert len({event["id"] for event in hook.events}) == len(changes(history))
    assert hook.of(BAD) == sorted(hook.of(BAD))


def test_after_twelve_tries_a_change_is_parked_and_the_next_one_of_its_page_is_sent(history: Repo, hook: Hook) -> None:
    hook.bad = Reply(status=500)
    for _ in range(MAX_TRIES):
        assert sink(history)["parked"] == 0
        history.run("sink", "run", code=1)
    assert (sink(history)["waiting"], sink(history)["parked"]) == (1, 1)
    hook.bad = None
    history.run("sink", "run")
    assert len(hook.of(BAD)) == 1
    assert (sink(history)["waiting"], sink(history)["parked"]) == (0, 1)


def test_a_receiver_that_is_down_is_left_alone_and_nothing_is_parked(history: Repo, hook: Hook) -> None:
    hook.site.every = lambda _: Reply(status=503)
    for _ in range(MAX_TRIES):
        hook.site.log.clear()
        history.run("sink", "run", code=1)
        assert 1 <= len(hook.site.log) <= 4
    assert (sink(history)["waiting"], sink(history)["parked"]) == (len(changes(history)), 0)
    hook.site.every = hook._answer
    history.run("sink", "run")
    assert len(hook.events) == len(changes(history))


def test_a_body_that_is_too_large_is_sent_without_its_text(history: Repo, hook: Hook, crawled: Any) -> None:
    _, web = crawled
    before = web.pages[BAD]
    try:
        web[BAD] = page("many words " * 90_000)
        history.later(days=3)
        history.cycle()
    finally:
        web[BAD] = before
    history.run("sink", "add", "small", "webhook", hook.site.url("/small"), "--max-body", "2kB")
    limits: dict[str, int] = {"/in": 1 << 30, "/small": 1 << 30}

    def answer(asked: Asked) -> Reply:
        return Reply(status=413) if len(asked.body) > limits[asked.path] else hook._answer(asked)

    hook.site.every = answer
    history.run("sink", "run")
    sizes = {path: [len(asked.body) for asked in hook.site.log if asked.path == path] for path in limits}
    assert max(sizes["/in"]) > 900_000
    assert max(sizes["/small"]) <= 2000
    (small,) = [event["data"] for event in hook.events if event["data"].get("text_omitted")]
    assert (small["text"], small["url"].endswith(BAD)) == ("", True)
    history.run("sink", "remove", "hook")
    history.run("sink", "add", "hook", "webhook", hook.site.url("/in"))
    limits["/in"], hook.events[:] = 5000, []
    history.run("sink", "run", "hook")
    omitted = [event["data"] for event in hook.events if event["data"].get("text_omitted")]
    assert [data["url"].endswith(BAD) for data in omitted] == [True]
    assert len({event["id"] for event in hook.events}) == len(changes(history))
    assert history.json("sink", "parked") == []


def test_a_slow_receiver_does_not_hold_up_another_one(history: Repo, hook: Hook) -> None:
    all_came = threading.Event()

    def answer(asked: Asked) -> Reply:
        if asked.path == "/slow":
            return Reply(status=204, until=all_came)
        reply = hook._answer(asked)
        if len(hook.events) == len(changes(history)):
            all_came.set()
        return reply

    hook.site.every = answer
    history.run("sink", "add", "a-slow", "webhook", hook.site.url("/slow"))
    assert {row["name"]: row["sent"] for row in history.json("sink", "run")} == dict.fromkeys(
        ("hook", "a-slow"), len(changes(history))
    )


def test_kills_at_random_moments_lose_nothing_and_keep_the_order(history: Repo, hook: Hook) -> None:
    chance = random.Random(34)
    process: Any = None
    left = 0

    def answer(asked: Asked) -> Reply:
        nonlocal left
        left -= 1
        if process is not None and left == 0:
            process.send_signal(signal.SIGKILL if chance.random() < 0.7 else signal.SIGINT)
        return hook._answer(asked)

    hook.site.every = answer
    for _ in range(6):
        left = chance.randint(1, 8)
        process = history.start("sink", "run")
        history.wait(process)
    process = None
    history.run("sink", "run")
    assert {int(event["id"]) for event in hook.events} == {row[0] for row in history.sql(
        "SELECT id FROM visits WHERE outcome IN (1, 2, 3)")}  # fmt: skip
    assert len({event["id"] for event in hook.events}) == len(changes(history))
    for number in range(1, PAGES):
        firsts = list(dict.fromkeys(hook.of(f"/p{number}")))
        assert firsts == sorted(firsts)
    assert history.sql("SELECT count(*) FROM outbox") == [(0,)]


def test_the_service_delivers_and_tries_again_by_itself(history: Repo, hook: Hook) -> None:
    came = threading.Event()
    fails = [2]

    def answer(asked: Asked) -> Reply:
        if asked.path == "/in" and fails[0] and "/p3" in asked.body.decode():
            fails[0] -= 1
            return Reply(status=500)
        reply = hook._answer(asked)
        if len(hook.events) == len(changes(history)):
            came.set()
        return reply

    hook.site.every = answer
    ahead = [0.0]
    with Service(history.folder, ServiceConfig(schedule=False, clock=lambda: history.now() + ahead[0])) as service:
        for _ in range(600):
            if came.wait(0.1):
                break
            ahead[0] += 30.0
            service.dispatcher.wake()
    assert len({event["id"] for event in hook.events}) == len(changes(history))
    assert hook.of(BAD) == sorted(hook.of(BAD))


def test_only_one_machine_of_a_cluster_delivers_to_a_sink(new_cluster: NewCluster) -> None:
    layout = new_cluster(2)
    with closing(GatheredStore(layout.target, 2)) as one, closing(GatheredStore(layout.target, 2)) as other:
        assert one.outbox.claim("sink:a")
        assert not other.outbox.claim("sink:a")
        assert other.outbox.claim("sink:b")
        one.outbox.unclaim("sink:a")
        assert other.outbox.claim("sink:a")


# -- the state of a page --------------------------------------------------------------------------------------


def test_chunks_add_up_after_a_change_that_was_parked(
    history: Repo, tmp_path: Path, crawled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, deliver = tmp_path / "chunks.jsonl", ChunkLines.deliver
    history.run("sink", "add", "corpus", "chunks", file)

    def refusing(self: ChunkLines, events: Sequence[Event]) -> None:
        if any(event.url.endswith(BAD) and event.outcome == "changed" for event in events):
            raise ValueError("a page that no one expected")
        deliver(self, events)

    with monkeypatch.context() as patch:
        patch.setattr(ChunkLines, "deliver", refusing)
        for _ in range(MAX_TRIES + 1):
            history.run("sink", "run", code=None)
    assert [row["outcome"] for row in history.json("sink", "parked")] == ["changed"]
    _, web = crawled
    before = web.pages[BAD]
    try:
        web[BAD] = page("page 3 three, words of its own")
        history.later(days=3)
        history.cycle()
    finally:
        web[BAD] = before
    history.run("sink", "run")
    expected = map(json.loads, history.run("chunks").out.splitlines())
    assert corpus_of(file) == {change["id"]: change["text"] for change in expected}
    assert history.json("sink", "parked") == [], "the newer change has replaced it"


# -- names of files -------------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    ["a", "A", "con", "CON.txt", "x.md", "X.MD", "é", "..", "%2e%2e", "n" * 300, "a.", "index", " "]
)
URLS = st.builds(
    lambda host, words, query: f"https://{host}/{'/'.join(words)}{query}",
    st.sampled_from(["a.example", "a.example:80", "a.example_80", "h" * 253, "CON"]),
    st.lists(WORDS, max_size=12),
    st.sampled_from(["", "?a=1", "?A=1", "/"]),
)


@given(st.sets(URLS, min_size=2, max_size=30))
def test_file_names_cannot_collide(urls: set[str]) -> None:
    names = {url: file_name(url) for url in urls}
    folded = [name.casefold() for name in names.values()]
    assert len(set(folded)) == len(urls)
    folders = {name.rsplit("/", depth)[0] for name in folded for depth in range(1, name.count("/") + 1)}
    assert not folders & set(folded), "no file has the name of a folder"
    for name in names.values():
        for part in name.split("/"):
            assert len(part.encode()) <= 240
            assert part.isascii()
            assert not part.endswith((".", " "))
            assert part not in ("", ".", "..")
            assert part.split(".")[0].lower() not in ("con", "aux", "nul", "prn") or part == name.split("/")[0]


def _event(number: int, url: str, outcome: str = "changed", text: str = "text") -> Event:
    from datetime import UTC, datetime

    at = datetime(2026, 11, 19, tzinfo=UTC)
    return Event(number, "urn:x", url, "https://a.example", at, outcome, text=text if outcome != "gone" else "")


def test_a_page_may_be_named_as_the_file_of_another_one(tmp_path: Path) -> None:
    home = "https://a.example/"
    inside = f"https://a.example/{file_name(home).rsplit('/', 1)[1]}/x"
    inside_earlier = f"https://a.example/{earlier_name(home).rsplit('/', 1)[1]}/x"
    urls = [home, inside, inside_earlier]
    for order in itertools.permutations(urls):
        folder = tmp_path / str(urls.index(order[0])) / str(urls.index(order[1]))
        sink = MarkdownFiles(folder, lambda event: event.text)
        for number, url in enumerate(order):
            assert sink.deliver([_event(number, url, text=url)]) == {}
        assert {(folder / file_name(url)).read_text() for url in urls} == set(urls)
        assert sink.deliver([_event(9, url, "gone") for url in urls]) == {}
        assert not [*folder.rglob("*.md")]


def test_files_of_earlier_versions_keep_their_names_and_are_removed_with_their_pages(tmp_path: Path) -> None:
    url, other = "https://a.example/news", "https://a.example/other"
    old = tmp_path / earlier_name(url)
    old.parent.mkdir()
    old.write_text(f'---\ntitle: "x"\nurl: {json.dumps(url)}\n---\n\nbefore\n')
    taken = tmp_path / earlier_name(other)
    taken.write_text(f"---\nurl: {json.dumps('https://a.example/somebody-else')}\n---\n")
    sink = MarkdownFiles(tmp_path, lambda event: f"---\nurl: {json.dumps(event.url)}\n---\n{event.text}")
    sink.deliver([_event(1, url, text="after"), _event(2, other)])
    assert "after" in old.read_text()
    assert not (tmp_path / file_name(url)).exists()
    assert (tmp_path / file_name(other)).exists()
    sink.deliver([_event(3, url, "gone"), _event(4, other, "gone")])
    assert not old.exists()
    assert taken.exists()


def test_a_folder_in_the_place_of_a_file_harms_its_page_alone(history: Repo, tmp_path: Path) -> None:
    with recrawl.open(history.folder) as repo:
        urls = [one.url for one in repo.pages(state="live")]
    (bad,) = [url for url in urls if url.endswith(BAD)]
    (tmp_path / "notes" / file_name(bad)).mkdir(parents=True)
    history.run("sink", "add", "notes", "markdown", tmp_path / "notes")
    history.run("sink", "run", code=1)
    written = {
        str(file.relative_to(tmp_path / "notes")) for file in (tmp_path / "notes").rglob("*.md") if file.is_file()
    }
    assert written == {file_name(url) for url in urls if url != bad}
    assert {row["url"] for row in history.json("sink", "parked")} == {bad}
    (tmp_path / "notes" / file_name(bad)).rmdir()
    history.run("sink", "retry", "notes", "--all")
    history.run("sink", "run")
    assert (tmp_path / "notes" / file_name(bad)).is_file()


# -- service --------------------------------------------------------------------------------------------------


def test_parked_changes_are_seen_and_settled_in_api_dashboard_and_metrics(history: Repo, hook: Hook) -> None:
    hook.bad = Reply(status=410)
    history.run("sink", "run", code=1)
    with Service(history.folder, ServiceConfig(schedule=False)) as service:
        ask, browser = Asker(service), Asker(service, accept="text/html")
        (shown,) = ask.get("/api/v1/sinks").json["items"]
        assert (shown["name"], shown["waiting"], shown["parked"]) == ("hook", 0, 2)
        assert "target" not in shown
        first = ask.get("/api/v1/deliveries?limit=1").json
        second = ask.get(f"/api/v1/deliveries?receiver=hook&limit=5&after={first['next']}").json
        rows = [*first["items"], *second["items"]]
        assert [row["outcome"] for row in rows] == ["new", "changed"]
        assert 'recrawl_deliveries_parked{kind="sink",receiver="hook"} 2.0' in ask.get("/metrics").text
        assert "2 changes for the sink" in browser.get("/").text
        text = browser.get("/settings/deliveries").text
        assert f'value="{rows[0]["number"]}"' in text
        assert "HTTP 410" in text
        hook.bad = None
        assert submit(browser, "/settings/deliveries", number=str(rows[0]["number"]), do="drop").status == 303
        assert submit(browser, "/settings/deliveries", number=str(rows[0]["number"]), do="drop").status == 404
        assert submit(browser, "/settings/deliveries", number="x", do="drop").status == 404
        assert submit(browser, "/settings/deliveries", do="burn").status == 400
        assert ask.ask("POST", "/api/v1/deliveries/retry", {"numbers": [rows[1]["number"]]}).json == {"changes": 1}
        assert ask.ask("POST", "/api/v1/deliveries/retry", {"numbers": [rows[1]["number"]]}).status == 404
        assert ask.ask("POST", "/api/v1/deliveries/drop", {}).status == 400
        assert ask.get("/api/v1/deliveries?receiver=nobody").status == 404
        for _ in range(600):
            if hook.of(BAD):
                break
            service.dispatcher.wake()
            threading.Event().wait(0.05)
        assert len(hook.of(BAD)) == 1
        assert ask.get("/api/v1/deliveries").json["items"] == []


def test_an_alert_about_a_page_that_cannot_be_matched_is_parked_and_the_others_go_out(
    history: Repo, hook: Hook, crawled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    quote = rules.matching_quote

    def failing(rule: Alert, update: Any, repo: Any) -> Any:
        if update.url.endswith(BAD):
            raise IndexError("a page that no one expected")
        return quote(rule, update, repo)

    monkeypatch.setattr(matching, "matching_quote", failing)
    with recrawl.open(history.folder) as repo:
        write_alerts(repo.settings_file, (Alert("all", "feed"),))
        newest = repo.storage.store.next_id("visits") - 1
        Outbox(repo).matched_up_to(newest - PAGES)
        assert matching.match_visits(repo, repo.settings.alerts, repo.now())[1] is False
        states = Counter(row["state"] for row in Outbox(repo).newest(100))
        assert states == {"waiting": PAGES - 2, "parked": 1}
        (parked,) = repo.parked("all")
        assert "cannot be matched: IndexError" in parked.error
