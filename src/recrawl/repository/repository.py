"""Repository: the class behind `recrawl.open` and `recrawl.init`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack

from recrawl.crawl.options import CrawlOptions
from recrawl.errors import NotKnown, UsageError
from recrawl.operations import operation
from recrawl.parameters import (
    AlertConditions,
    AlertName,
    AlertTarget,
    Budget,
    Bytes,
    ChangeConditions,
    ChangeIds,
    Clear,
    CrawlRules,
    FilterName,
    FilterNumber,
    NoiseFilter,
    Read,
    Receiver,
    RunRules,
    SiteRules,
    StartUrl,
    TagName,
    Target,
    TimeLimit,
    ValueName,
    Wait,
    WatchedElements,
    WatchedPage,
)
from recrawl.record import storage
from recrawl.record.rows import NO_NUMBER
from recrawl.record.storage import Storage
from recrawl.repository import marks, opening
from recrawl.repository.lookup import When, origin_of, seconds
from recrawl.repository.opening import Notify, patience, seconds_of, silent, with_bytes
from recrawl.repository.reader import Reader
from recrawl.repository.results.values import (
    Change,
    MarkedRead,
    Removed,
    SavedFilter,
    TagCounts,
    Tagged,
    TestedAlert,
    Untagged,
)
from recrawl.settings import (
    TEMPLATE,
    Alert,
    Settings,
    SinkRule,
    changing,
    checked,
    period_of,
    write_access,
    write_alerts,
    write_filters,
    write_seeds,
    write_values,
)
from recrawl.times import stamp

if TYPE_CHECKING:
    from recrawl.choose import Policy
    from recrawl.crawl.outside import Fetch, MadeVisit
    from recrawl.crawl.tally import RunCounts
    from recrawl.record.blobs.moves import MovedArchive
    from recrawl.record.rows import Row
    from recrawl.record.store.moves import MovedStore
    from recrawl.repository.alerts.trial import AlertTrial, WatchedValue
    from recrawl.repository.checking import CheckReport
    from recrawl.repository.delivery.parked import Parked
    from recrawl.repository.erasing import Erasure
    from recrawl.repository.exchange import History
    from recrawl.repository.explain.noise import NumberedFilter, RemovedFilter
    from recrawl.repository.export.chunks import ChunkChange, ChunkExport, Cursor
    from recrawl.repository.export.files import Table
    from recrawl.repository.results.runs import Attempt, Import, Plan, Progress, Removal, Report
    from recrawl.repository.running import Running
    from recrawl.repository.seeds import Addition
    from recrawl.repository.sinks.delivery import SinkState
    from recrawl.repository.thinning import Thinning
    from recrawl.repository.turns import Callbacks, Turn

_POLL = 0.2
_DELIVERY_INTERVAL = 30.0
"""Seconds between two looks at what sinks are to get, while a run waits for its next cycle."""


class Repository(Reader):
    """A local copy of web pages with all their versions, and the means to keep it fresh.

        with recrawl.open("news") as repo:
            repo.add("https://example.org", limit=500)
            repo.crawl()
            report = repo.cycle(budget=100, policy="shock")
            for change in repo.changes(since="1d"):
                print(change.time, change.url)

    **Reading** (`pages`, `page`, `changes`, `visits`, `versions`, `search`, `status`, `sites`, `why`, `predict`,
    `rates`, `anchors`, `plan`, `noise_proposals`, `settings` and so on) never takes the lock and never waits. Tables
    that grow come as `Rows`: iterate over them, or call `to_arrow()` or `to_pandas()`.

    **Writing** is for one process at a time: `remove`, `crawl`, `cycle`, `run`, `import_urls`, `import_history` and
    `check` hold the lock while they work, and raise `RepositoryBusy` when another process holds it; with `wait=True`
    they wait. Between two calls it is free. `add`, `configure` and `set_anchor` need no lock.

    **Values** are frozen dataclasses; `as_dict()` of each gives what the command line prints with `--json`.

    **Following a call**: `progress=` is called with a `Progress` after each visit, `stop=` is asked between visits and
    ends the work cleanly when it returns True (the next call resumes it), `notify=` of `recrawl.open` gets sentences
    for people. Nothing is printed. A repository is for one thread; open another one in another thread.
    """

    def __init__(
        self,
        folder: Path | str = ".",
        *,
        clock: Callable[[], float] | None = None,
        timer: Callable[[], float] | None = None,
        notify: Notify | None = None,
        shared: bool = False,
    ) -> None:
        """Open the repository in this folder or in the nearest one above it; `NoRepository` when there is none.

        `clock` gives the times that are recorded, `timer` those that pace requests: both in seconds since 1970. A
        `shared` one may be handed from thread to thread, one at a time, for reading.
        """
        super().__init__(folder, clock=clock, timer=timer, shared=shared)
        self._notify: Notify = notify or silent

    @classmethod
    def create(cls, folder: Path | str = ".", *, store: str = "", archive: str = "", **options: Any) -> Repository:
        """Make a repository in a folder, which may exist, and open it.

        `store` is the URL of a PostgreSQL database for the facts, its password by reference:
        `postgresql://user:${NAME}@host/database?schema=NAME`. By default they are in a file of the folder.
        `archive` is the prefix of an object store for archive files and models: `s3://bucket/prefix`, with the options
        `endpoint`, `region`, `cache_megabytes` and `seal`. The keys come from the environment.
        """
        storage.create(Path(folder), TEMPLATE, store, archive)
        return cls(folder, **options)

    # -- what to track -----------------------------------------------------------------------------------------

    @operation(http="POST /seeds", status=201, writes=True, commands=("add",), answer="AddedSeedAnswer")
    def add(self, *urls: StartUrl, clear: Clear = (), **rules: Unpack[SiteRules]) -> list[Addition]:
        """Add sites or pages to track, or change their rules; one that is gone is visited again.

        A URL that was added before keeps the rules that are not named, that is None; an empty text or list removes a
        rule, as `clear` does by name. A page never loosens the rules of its site.
        """
        from recrawl.repository.seeds import add_seeds  # lazy: loads the crawler

        named = {name: value for name, value in rules.items() if value is not None}
        with changing(self.settings_file):
            return add_seeds(self.folder, self.settings, urls, named, clear)

    def remove(self, *urls: str, wait: bool = False) -> Removal:
        """Stop tracking sites or pages that were added. Their versions stay in the archive."""
        from recrawl.repository.results.runs import Removal  # lazy: for commands that write
        from recrawl.repository.seeds import drop_pages, without_seeds  # lazy: loads the crawler

        after, _ = without_seeds(self.settings, urls)
        options = opening.options_of(after, clock=self.now, timer=self._timer)
        with self._writing("rm", options, after, wait=wait) as held:
            with changing(self.settings_file):
                before = self.settings
                after, removed = without_seeds(before, urls)
                write_seeds(self.settings_file, after.seeds)
            options = opening.options_of(after, clock=self.now, timer=self._timer)
            pages = drop_pages(held, options, [seed for seed in before.seeds if seed.url in removed])
        return Removal(tuple(sorted(removed)), pages)

    def configure(self, **values: Any) -> Settings:
        """Change settings, all of them or none: `repo.configure(delay=2.5, policy="round-robin")`."""
        checked_values = {name: checked(name, value) for name, value in values.items()}
        if "policy" in values:
            from recrawl.choose import make_policy  # lazy: loads the policies

            make_policy(values["policy"])
        write_values(self.settings_file, checked_values)
        return self.settings

    def set_access(self, site: str, *, clear: Iterable[str] = (), **entries: Any) -> None:
        """Say how to get in to a site (empty: to all others): headers, cookies, user, password, token, proxy and so on.

        Secrets are references, `${NAME}` or `${file:PATH}`; entries in `clear` are removed.
        """
        from recrawl.repository.access import changed_rules  # lazy: loads libcurl

        with changing(self.settings_file):
            write_access(self.settings_file, changed_rules(self.settings.access, site, entries, clear))

    def remove_access(self, site: str) -> None:
        """Remove the access rule of a site; empty for the one of all others."""
        from recrawl.repository.access import without_rule  # lazy: loads libcurl

        with changing(self.settings_file):
            write_access(self.settings_file, without_rule(self.settings.access, site))

    def try_access(self, url: str) -> Attempt:
        """Request a page with the access rule of its site, after a login if it has one. Nothing is recorded."""
        from recrawl.repository.access import try_access  # lazy: loads the crawler

        return try_access(self.folder, opening.options_of(self.settings, clock=self.now, timer=self._timer), url)

    def set_anchor(self, site: str = "", url: str = "") -> str:
        """Name the anchor of a site by hand; without a URL, let it be detected again. Returns the site."""
        from recrawl.repository.explain.anchors import keep_named  # lazy: loads scipy

        return keep_named(self.storage, site, url)

    def remember(self, name: str, value: float | str) -> None:
        """Store a value under a name; `recall` reads it. The service keeps its schedule there."""
        self.storage.store.meta.set(name, value)

    # -- crawling and refreshing -------------------------------------------------------------------------------

    def crawl(
        self,
        *,
        time_limit: TimeLimit = None,
        wait: Wait = False,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
        **rules: Unpack[CrawlRules],
    ) -> Report:
        """Discover and download new pages; resumes a crawl that was interrupted.

        `time_limit` (`10m`, or seconds) ends it early; the next crawl goes on. The rules hold for this crawl.
        """
        from recrawl.repository import turns  # lazy: loads the policies

        options, calls = self.options(**rules), self._callbacks(wait, progress, stop)
        self.close()
        return turns.crawl(self.folder, self.settings, options, calls, seconds=seconds_of(time_limit))

    def cycle(
        self,
        *,
        budget: Budget = None,
        policy: str | Policy | None = None,
        bytes: Bytes = "",  # noqa: A002
        time_limit: TimeLimit = None,
        wait: Wait = False,
        fetch: Fetch | None = None,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
        **rules: Unpack[RunRules],
    ) -> Report:
        """Refresh: visit the pages that the policy chooses, within the budget; both of the settings by default.

        `budget` is a number of visits, or under 1 a share of the pages; `bytes` limits what is received, as `200MB`.
        `policy` is a text such as `greedy(sample=20)` or `mymodule:MyPolicy(alpha=0.2)`, or an object. A cycle that was
        interrupted is resumed first, with its own policy and budget.

        `fetch` lets another program download the pages: it gets a list of `recrawl.Request` (`url`, and `validators`
        for a conditional request) and returns a `recrawl.Answer` for each, in any order. It obeys robots.txt, paces its
        requests and does not follow redirects: their targets are requested as the rules for redirects say.
        """
        from recrawl.repository import turns  # lazy: loads the policies

        options = with_bytes(self.options(**rules), bytes)
        if fetch is not None:
            from recrawl.crawl.outside import outside_options  # lazy: loads the crawler

            options = outside_options(options, fetch)
        calls, limit = self._callbacks(wait, progress, stop), seconds_of(time_limit)
        self.close()
        return turns.cycle(self.folder, self.settings, options, calls, policy=policy, budget=budget, seconds=limit)

    def record(
        self,
        visits: Iterable[MadeVisit],
        *,
        wait: bool = False,
        change: str = "",
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Report:
        """Record visits that another program has made, as if our own requests had been answered so.

        Each is a `recrawl.Answer`, or a list of them: the redirects of one visit in order, then the last answer. Status
        304 says that the page is as it was, 404 and 410 that it is missing, `Answer.failed` that there was no answer.
        Pages become known whatever their site. `visits` may be a generator that waits for the next visit: they are
        recorded in batches of up to 32. Policies learn from these visits at the start of the next cycle.
        """
        from recrawl.repository import turns  # lazy: loads the policies

        options, calls = self.options(change=change), self._callbacks(wait, progress, stop)
        self.close()
        return turns.record(self.folder, self.settings, options, calls, visits)

    def abandon_cycle(self, *, wait: bool = False) -> int | None:
        """Close an interrupted cycle without making the rest of its visits; returns its number, None without one."""
        from recrawl.repository import turns  # lazy: loads the policies

        self.close()
        return turns.abandon(self.folder, self.settings, self.options(), self._callbacks(wait, None, lambda: False))

    def plan(
        self,
        *,
        budget: Budget = None,
        policy: str | Policy | None = None,
        bytes: Bytes = "",  # noqa: A002
        time_limit: TimeLimit = None,
        **rules: Unpack[RunRules],
    ) -> Plan:
        """What `cycle` would visit with these options, and why; without any request."""
        from recrawl.repository.explain import plans  # lazy: loads the policies

        options = with_bytes(self.options(**rules), bytes)
        with Storage(self.folder) as own:  # a connection of its own: planning needs temporary tables
            return plans.plan(own, self.settings, options, policy=policy, budget=budget, seconds=seconds_of(time_limit))

    def run(
        self,
        *,
        every: str | float = "",
        budget: Budget = None,
        policy: str | Policy | None = None,
        bytes: Bytes = "",  # noqa: A002
        sync: str = "start",
        count: int = 0,
        now: bool = True,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
        sleep: Callable[[float], None] = time.sleep,
        **rules: Unpack[RunRules],
    ) -> Iterator[Report]:
        """Refresh continuously: a crawl and a cycle now and at every multiple of the period on the clock.

        Yields the report of each cycle. With 6h, they begin at 00:00, 06:00, 12:00 and 18:00 UTC.

        A period that is missed is not made up for. `sync` says when in the period pages are visited: start,
        most-at-start or even. `count` ends the run after that many cycles; 0 is never. Without `now`, the first cycle
        is that of the next multiple of the period. Waits for the lock.
        """
        from recrawl.choose import describe  # lazy: loads the policies
        from recrawl.repository import turns  # lazy: loads the policies

        period = period_of(self.settings, every)
        turn = turns.Turn(
            period=period,
            at_start=turns.share_at_start(sync),
            budget=budget,
            bytes=bytes,
            policy=policy if isinstance(policy, str) else describe(policy) if policy else "",
            rules=rules,
        )
        turns.check_turn(self.storage, self.settings, budget)
        due, done = self._timer() if now else turns.next_due(0.0, self._timer(), period), 0
        while not stop():
            self._wait_until(turns.allowed_from(self.settings, due), stop, sleep)
            if stop():
                return
            report = self.turn(turn, progress=progress, stop=stop)
            self.deliver_all(stop=stop)
            if report is None:
                return
            yield report
            done += 1
            if count and done >= count:
                return
            due = turns.next_due(0.0, self._timer(), period)

    def _wait_until(self, due: float, stop: Callable[[], bool], sleep: Callable[[float], None]) -> None:
        if not stop() and self._timer() < due:
            self._notify(f"next cycle at {stamp(due)}")
        delivered = self._timer()
        while not stop() and self._timer() < due:
            sleep(min(_POLL, max(0.0, due - self._timer())))
            if self._timer() >= delivered + _DELIVERY_INTERVAL:  # what failed is tried again meanwhile
                self.deliver_all(stop=lambda: stop() or self._timer() >= due)
                delivered = self._timer()

    def turn(
        self,
        turn: Turn,
        *,
        wait: bool = True,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Report | None:
        """One turn of a run (`recrawl.repository.turns.Turn`); None when stopped before its cycle began."""
        from recrawl.repository import turns  # lazy: loads the policies

        calls = self._callbacks(wait, progress, stop)
        self.close()
        summary = turns.take(
            self.folder,
            turn,
            stop,
            wait=calls.wait,
            tell=calls.notify,
            watch=calls.watch,
            clocks=(self.now, self._timer),
        )
        return None if summary is None else turns.report_of(summary)

    def recheck(
        self,
        *targets: str,
        wait: bool = False,
        progress: Callable[[Progress], None] | None = None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Report | None:
        """Visit pages (URLs) or all pages of sites (`example.org`) now, whatever the policy would choose.

        Also visits what was requested before and pages whose interval is over; None if there is nothing to visit. If
        the repository is busy, the request stays, and the next cycle fulfils it.
        """
        from recrawl.repository import turns  # lazy: loads the policies

        self.request_recheck(*targets)
        calls = self._callbacks(wait, progress, stop)
        self.close()
        return turns.recheck(self.folder, self.settings, self.options(), calls)

    def request_recheck(self, *targets: str) -> int:
        """Request a visit to pages or sites without making it: the service or the next cycle does. Returns the number
        of pages."""
        return len(marks.request(self.storage, targets, self.now()))

    # -- tags, read marks, saved filters -----------------------------------------------------------------------

    @operation(http="PUT /tags", name="add_tag", writes=True, commands=("tag",))
    def tag(self, name: TagName, *targets: Target) -> list[Tagged]:
        """Put a tag on pages (URLs) or sites (`example.org`)."""
        marks.tag(self.storage, name, targets)
        return [Tagged(name.strip(), target) for target in targets]

    @operation(http="DELETE /tags", name="remove_tag", writes=True, commands=("tag",))
    def untag(self, name: TagName, *targets: Target) -> list[Untagged]:
        """Remove a tag from pages or sites."""
        marks.untag(self.storage, name, targets)
        return [Untagged(name.strip(), target) for target in targets]

    @operation(http="GET /tags", commands=("tag",))
    def tags(self) -> list[TagCounts]:
        """List the tags with their number of sites and pages."""
        return [TagCounts(*row) for row in self.storage.store.marks.tags()]

    @operation(http="POST /changes/read", writes=True, commands=("changes",))
    def mark_read(self, *changes: int, ids: ChangeIds = None, read: Read = True) -> MarkedRead:
        """Mark changes, by their `id`, as read or unread; without any, mark all changes so far as read."""
        numbers = list(changes) if changes else ids
        if numbers is not None and not all(0 <= number < NO_NUMBER for number in numbers):
            raise UsageError("'ids' must be numbers of changes, as the list of changes gives them")
        if numbers:
            self.storage.store.marks.mark_read(numbers, read=read)
        elif numbers is None and read:
            self.storage.store.marks.mark_all_read()
        elif numbers is None:
            raise UsageError("name the changes to mark as unread")
        return MarkedRead("all" if numbers is None else len(numbers), read)

    def saved_filters(self) -> dict[str, dict[str, str]]:
        """Saved filters of changes by name."""
        return marks.saved_filters(self.storage)

    def saved_changes(self, name: str, limit: int = -1) -> Iterator[Change]:
        """The changes that a saved filter lets through, newest first."""
        return iter(self.changes(limit=limit, **marks.query_of(marks.filter_of(self.storage, name))))

    @operation(http="PUT /saved-filters", writes=True, commands=("changes",))
    def save_filter(self, name: FilterName, **fields: Unpack[ChangeConditions]) -> SavedFilter:
        """Save a filter of changes under a name."""
        marks.save_filter(self.storage, name, dict(fields))
        return SavedFilter(name.strip(), {field: str(value) for field, value in fields.items() if value})

    @operation(http="DELETE /saved-filters", name="remove_saved_filter", writes=True, commands=("changes",))
    def remove_filter(self, name: FilterName) -> Removed:
        """Delete a saved filter."""
        if not self.storage.store.marks.remove_filter(name):
            raise NotKnown(f"there is no saved filter '{name}'")
        return Removed(name)

    # -- alerts and noise filters ------------------------------------------------------------------------------

    @operation(http="GET /alerts")
    def alerts(self) -> list[Alert]:
        """List the alert rules; over HTTP without their secrets."""
        return list(self.settings.alerts)

    @operation(http="PUT /alerts/{name}", writes=True)
    def put_alert(self, *, name: AlertName, target: AlertTarget, **conditions: Unpack[AlertConditions]) -> Alert:
        """Create or replace an alert rule; without `secret`, an existing secret is kept."""
        from recrawl.repository.alerts.matching import match_from_now  # lazy: see above
        from recrawl.repository.alerts.rules import with_rule  # lazy: loads what parses pages

        with changing(self.settings_file):
            before = self.settings.alerts
            after = with_rule(before, name, target, conditions)
            if not before:
                match_from_now(self)
            write_alerts(self.settings_file, after)
        return next(rule for rule in after if rule.name == name)

    @operation(http="POST /alerts/try", commands=("alert",), slow=True)
    def try_alert(
        self, *, name: AlertName = "trial", target: AlertTarget = "feed", **conditions: Unpack[AlertConditions]
    ) -> AlertTrial:
        """Show which alerts a rule would have sent for the newest changes that are recorded. Nothing is sent."""
        from recrawl.repository.alerts.rules import with_rule  # lazy: loads what parses pages
        from recrawl.repository.alerts.trial import try_rule  # lazy: see above

        return try_rule(self, with_rule((), name, target, conditions)[0])

    @operation(http="POST /alerts/{name}/test", commands=("alert",), writes=True)
    def test_alert(self, *, name: AlertName) -> TestedAlert:
        """Send a test message to the target of an alert rule."""
        from recrawl.repository.alerts.receiver import AlertReceiver  # lazy: few commands send

        AlertReceiver(self._alert(name), self.settings, self.now).test()
        return TestedAlert(name)

    @operation(http="GET /values", commands=("alert",), slow=True)
    def watched_values(
        self, *, url: WatchedPage, selector: WatchedElements = "", words: ValueName = ""
    ) -> list[WatchedValue]:
        """List the values of chosen elements of a page over its versions: a price, a stock, a version number."""
        from recrawl.repository.alerts.trial import watched_values  # lazy: loads what parses pages

        return watched_values(self, url, selector, words)

    def _alert(self, name: str) -> Alert:
        for rule in self.settings.alerts:
            if rule.name == name:
                return rule
        raise NotKnown(f"there is no alert '{name}'")

    @operation(http="DELETE /alerts/{name}", writes=True)
    def remove_alert(self, *, name: AlertName) -> Removed:
        """Delete an alert rule; its waiting updates are not sent."""
        with changing(self.settings_file):
            before = self.settings.alerts
            after = tuple(rule for rule in before if rule.name != name)
            if len(after) == len(before):
                raise NotKnown(f"there is no alert '{name}'")
            write_alerts(self.settings_file, after)
        return Removed(name)

    @operation(http="GET /filters", name="filters")
    def noise_filters(self) -> list[NumberedFilter]:
        """List the noise filters."""
        from recrawl.repository.explain.noise import NumberedFilter  # lazy: loads what parses pages

        return [NumberedFilter(**asdict(row), number=number) for number, row in enumerate(self.settings.filters)]

    @operation(http="POST /filters", name="add_filter", status=201, writes=True)
    def add_noise_filter(self, **noise: Unpack[NoiseFilter]) -> NumberedFilter:
        """Add a noise filter."""
        from recrawl.repository.explain.noise import noise_filter  # lazy: loads what parses pages

        added = noise_filter(**noise)
        with changing(self.settings_file):
            before = self.settings.filters
            if added in before:
                raise UsageError("this filter already exists")
            write_filters(self.settings_file, (*before, added))
        return self.noise_filters()[-1]

    @operation(http="DELETE /filters/{number}", name="remove_filter", writes=True)
    def remove_noise_filter(self, *, number: FilterNumber) -> RemovedFilter:
        """Delete a noise filter."""
        from recrawl.repository.explain.noise import RemovedFilter  # lazy: loads what parses pages

        with changing(self.settings_file):
            before = self.settings.filters
            if number >= len(before):
                raise NotKnown(f"there is no filter {number}")
            write_filters(self.settings_file, before[:number] + before[number + 1 :])
        return RemovedFilter(before[number])

    def running(self) -> Running | None:
        """The crawl or cycle that works on this repository now, in any process; None if there is none."""
        from recrawl.repository.running import running  # lazy: few commands ask

        return running(self.folder)

    # -- import and export -------------------------------------------------------------------------------------

    def import_urls(self, urls: Iterable[str], *, wait: bool = False) -> Import:
        """Make URLs known, whatever their site; the next crawl downloads them."""
        return self.import_history(urls=urls, wait=wait)

    def import_history(
        self,
        *files: Path | str,
        kind: Literal["git", "warc"] | None = None,
        urls: Iterable[str] = (),
        base_url: str | None = None,
        branch: str | None = None,
        root: str | None = None,
        since: When | None = None,
        until: When | None = None,
        limit: int | None = None,
        wait: bool = False,
        converting: Callable[[str, int, int | None], None] = lambda *_: None,
        progress: Callable[[int, int], None] = lambda *_: None,
    ) -> Import:
        """Record histories of pages (Parquet, WARC files, a git repository) as if they had been visited at those times.

        Pages that were visited before are skipped, so an import that was interrupted is completed by repeating it.
        `kind` is the kind of all files; it is detected by default. `urls` are made known first, as by `import_urls`.
        `base_url`, `branch` and `root` are for git; `since`, `until` and `limit` (pages) for git and WARC. `progress`
        gets pages done and pages in all.
        """
        from recrawl.lab.formats.version_rows import Window  # lazy: loads pyarrow
        from recrawl.repository import exchange  # lazy: loads pyarrow

        kinds = {Path(file): kind or exchange.kind_of(Path(file)) for file in files}
        lists = [str(file) for file, kind in kinds.items() if kind is None]
        if lists:
            raise UsageError(f"{lists[0]} holds no history; import a URL list with import_urls")
        start, end = (None if when is None else int(seconds(when, self.now())) for when in (since, until))
        selection = exchange.Selection(base_url, branch, root, Window(start, end, limit))
        selection.check({kind for kind in kinds.values() if kind})
        refuses = exchange.refused_by(self.options())
        with exchange.opened_history(kinds, selection, converting, refuses) as histories:
            counts, refused = self._take_in(
                urls, histories, wait=wait, progress=lambda done: progress(done, histories.pages)
            )
            return exchange.imported(counts, refused, histories)

    def _take_in(
        self, urls: Iterable[str], histories: Iterable[History], *, wait: bool, progress: Callable[[int], None]
    ) -> tuple[RunCounts, list[str]]:
        """Record URLs and histories; the counts, and the lines that are not URLs."""
        from recrawl.repository import exchange  # lazy: loads pyarrow

        options = self.options()
        with self._writing("import", options, self.settings, wait=wait) as held:
            return exchange.take_in(held, options, urls, histories, progress=progress)[:2]

    def export(
        self,
        file: Path | str,
        *,
        since: When | None = None,
        table: Table | None = None,
        left_out: Callable[[str], None] = silent,
    ) -> int:
        """Write all versions (`.parquet`), the archive (`.warc.gz`, `.wacz`, `.cdxj`) or else the list of URLs.

        With `since`, only what was recorded from then on. `table` writes pages, visits, versions or changes as a
        Parquet table instead. Returns the number of rows, records or URLs. `left_out` gets a sentence for each version
        whose record is damaged: it is not written.
        """
        from recrawl.repository.export import files  # lazy: few commands export

        return files.write(self, Path(file), since=since, table=table, left_out=left_out)

    def chunks(self, *, after: Cursor | None = None, words: int = 300, overlap: int = 0) -> Iterator[ChunkChange]:
        """All chunks of the pages for a retrieval corpus, or what changed since a cursor, which reads all pages.

        Chunks have at most this many words, and repeat the last `overlap` words of the one before. `chunk_export` reads
        only pages that changed since the last export.
        """
        from recrawl.repository.export.chunks import ChunkExport, ChunkOptions  # lazy: loads the parser

        with ChunkExport(self, None, ChunkOptions(words, overlap)) as export:
            yield from export if after is None else export.suppose(after)

    def chunk_export(self, state: Path | str, *, words: int = 300, overlap: int = 0) -> ChunkExport:
        """What changed for a retrieval corpus since the last export with this file, which is made if it is missing.

        Use it in a `with` statement, and call `commit` when all changes are stored:

            with repo.chunk_export("corpus.state") as export:
                for change in export:
                    ...
                export.commit()

        Another size, another noise filter or a new version of recrawl leads to the changes that it makes, not to a new
        corpus.
        """
        from recrawl.repository.export.chunks import ChunkExport, ChunkOptions  # lazy: loads the parser

        return ChunkExport(self, Path(state), ChunkOptions(words, overlap))

    # -- sinks ------------------------------------------------------------------------------------------------

    def add_sink(
        self,
        name: str,
        kind: str,
        target: str,
        *,
        site: str = "",
        secret: str = "",
        max_body: str = "",
        from_now: bool = False,
    ) -> None:
        """Deliver every change to another system: opensearch, webhook, postgres, markdown or chunks.

        `secret` refers to a token or password: `${NAME}` to an environment variable, `${file:PATH}` to a file with mode
        600. A change whose body is larger than `max_body`, as `1MB`, is sent without its text. `from_now` skips what is
        recorded already.
        """
        from recrawl.repository.sinks import delivery  # lazy: few repositories have sinks

        where = origin_of(self.storage, site)
        delivery.add(self, SinkRule(name, kind, target, where, secret, max_body), from_now=from_now)

    def remove_sink(self, name: str) -> None:
        """Remove a sink; what was delivered stays where it is."""
        from recrawl.repository.sinks import delivery  # lazy: few repositories have sinks

        delivery.remove(self, name)

    @operation(http="GET /sinks", answer="SinkAnswer")
    def sinks(self) -> list[SinkState]:
        """List the sinks, and how far each has come; over HTTP without their secrets, targets and folders."""
        from recrawl.repository.sinks import delivery  # lazy: few repositories have sinks

        return delivery.states(self)

    def deliver(self, name: str, *, stop: Callable[[], bool] = lambda: False) -> int:
        """Deliver what waits for a sink; return the number of changes. `run` and `serve` do it by themselves.

        If some changes could not be delivered, the last failure is raised after the others were.
        """
        from recrawl.repository.sinks import delivery  # lazy: few repositories have sinks

        counts = delivery.run(self, [name], stop, at_once=True)[name]
        if counts.error is not None:
            raise counts.error
        return counts.delivered

    def deliver_all(self, *, stop: Callable[[], bool] = lambda: False) -> None:
        """Send the alerts of new visits, and deliver what is due to every sink.

        `notify` gets a sentence for each receiver that fails, and the others go on. A service that runs does both.
        """
        if self.settings.alerts:
            from recrawl.repository.alerts.sending import send_alerts  # lazy: few repositories have alerts

            send_alerts(self, self._notify, stop)
        if self.settings.sinks:
            from recrawl.repository.sinks import delivery  # lazy: few repositories have sinks

            delivery.run_all(self, self._notify, stop)

    @operation(http="GET /deliveries", name="deliveries", part="recrawl.repository.reports.lists:parked")
    def parked(self, name: Receiver = "", *, limit: int = 1000, after: int = -1) -> list[Parked]:
        """List the changes that a sink or the receiver of an alert refused, or that failed too often, oldest first."""
        from recrawl.repository.delivery import parked  # lazy: few repositories have sinks

        return parked.parked(self, name, limit=limit, after=after)

    def retry_parked(self, name: str = "", numbers: Collection[int] = ()) -> int:
        """Let parked changes be sent again: those with these numbers, or all of a receiver; returns how many."""
        from recrawl.repository.delivery import parked  # lazy: few repositories have sinks

        return parked.retry(self, name, numbers)

    def drop_parked(self, name: str = "", numbers: Collection[int] = ()) -> int:
        """Drop parked changes: those with these numbers, or all of a receiver; returns how many."""
        from recrawl.repository.delivery import parked  # lazy: few repositories have sinks

        return parked.drop(self, name, numbers)

    # -- erase -------------------------------------------------------------------------------------------------

    def erase(
        self,
        *urls: str,
        site: str = "",
        matching: str = "",
        before: When | None = None,
        reason: str = "",
        who: str = "",
        forget: bool = False,
        dry_run: bool = False,
        wait: bool = False,
        progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
        stop: Callable[[], bool] = lambda: False,
    ) -> Erasure:
        """Erase pages (URLs), all of a site, or pages whose URL matches a regular expression; with all traces of them.

        Versions, texts, screenshots, files that no other page needs, the index, records of the archive, alerts and what
        waits for sinks go. With `before`, only versions that are older go, and the pages stay. Other pages keep their
        links. The address is kept from coming back by a keyed digest, or with `forget` not even that: then an address
        that was erased before may come back, too. `dry_run` tells what would go. `reason` and `who` are written to a
        log, without the address. What a crash interrupts has not begun, or is finished by the next call that writes.

        Sinks are told that pages are gone; until all are, `waiting` of the result names them, and addresses wait in the
        outbox. Backups and exports elsewhere are not known here.
        """
        from recrawl.repository import erasing  # lazy: few commands erase

        at = None if before is None else seconds(before, self.now())
        erasing.check_possible(self.storage)
        if dry_run:
            chosen = erasing.select(self.storage, urls, site=site, matching=matching, before=at)
            made = erasing.plan(self.storage, chosen)
            return erasing.described(self.storage, self.settings, chosen, made, dry_run=True)
        order = erasing.Order(reason, who, forget)
        with self._writing("erase", self.options(), self.settings, wait=wait) as held:
            chosen = erasing.select(held, urls, site=site, matching=matching, before=at)
            done = erasing.erase(held, self.settings, self.options(), chosen, order, progress)
        with self._writing("erase", self.options(), self.settings, wait=True) as held:
            finished = erasing.finish(held, self.options(), progress)
        if not finished:
            self.deliver_all(stop=stop)
            with self._writing("erase", self.options(), self.settings, wait=True) as held:
                finished = erasing.finish(held, self.options(), progress)
        return replace(done, finished=finished, waiting=erasing.waiting(self.storage))

    def thin(
        self,
        *,
        dry_run: bool = False,
        wait: bool = False,
        progress: Callable[[str, int, int], None] = lambda _what, _done, _all: None,
    ) -> Thinning:
        """Thin out old versions and screenshots by the settings `keep`, `keep_frame` and `keep_screenshots`.

        Their records go; what is known of them stays, so that changes, estimates and choices are as before. The newest
        version of a page and what has the tag `hold` stay. `dry_run` tells what would go.
        """
        from recrawl.repository import erasing, thinning  # lazy: few commands thin out

        erasing.check_possible(self.storage)
        if dry_run:
            return thinning.described(thinning.plan(self.storage, self.settings), dry_run=True)
        with self._writing("thin", self.options(), self.settings, wait=wait) as held:
            return thinning.thin(held, thinning.plan(held, self.settings), progress)

    def erasures(self) -> list[Row]:
        """The log of what was erased: when, by whom, why, how much; no address."""
        from recrawl.repository import erasing  # lazy: few commands erase

        return erasing.log(self.storage)

    # -- verify ------------------------------------------------------------------------------------------------

    def check(
        self,
        *,
        repair: bool = False,
        truth: bool = False,
        erased: bool = False,
        texts: Iterable[str] = (),
        wait: bool = False,
    ) -> CheckReport:
        """Verify database, archive and index against each other, and with `repair` mend what can be mended.

        With `truth`, every stored version is read again from its WARC record: texts, titles, changes and what a search
        finds are computed from the archive alone and compared.

        With `erased`, every file is read, as it is and decompressed, to prove that nothing is left of addresses that
        were erased, nor any of `texts`.

        Repairs rebuild the index, cut an archive file that lost its end after its last sound record, mark versions
        whose record is damaged as lost, and compute counters again. Holds the lock; see `CheckReport`.
        """
        from recrawl.repository import checking  # lazy: few commands check

        self.close()
        wait_for = patience(wait, self._notify)
        return checking.check(
            self.folder,
            self.settings,
            self.options(),
            repair=repair,
            truth=truth,
            erased=erased,
            texts=tuple(texts),
            wait=wait_for,
            tell=self._notify,
        )

    def move(
        self, to: str, *, wait: bool = False, progress: Callable[[str, int], None] = lambda _, __: None
    ) -> MovedStore:
        """Move the facts to the PostgreSQL schema of a URL, or with `sqlite` back into the folder.

        The old store stays in use until the copy is verified, and is not deleted. A call that was interrupted goes on
        where it stopped. `progress` gets each table and the number of its rows so far.
        """
        from recrawl.record.store.moves import move_store  # lazy: few commands move

        self.close()
        with opening.service_lock(self.folder), Storage(self.folder) as held:
            held.lock("move", patience(wait, self._notify))
            if held.store.meta.get("erasing", ""):
                raise UsageError("an erasure is not finished: 'recrawl check --erased' says what it waits for")
            return move_store(self.folder, to, progress)

    def move_archive(
        self, to: str, *, wait: bool = False, progress: Callable[[str, int], None] = lambda _, __: None
    ) -> MovedArchive:
        """Move archive files and models into an object store (`s3://bucket/prefix`), or with `folder` back.

        A call that was interrupted goes on where it stopped. Objects are not deleted. `progress` gets `archive` and
        the number of files so far, where they are copied from one object store into another.
        """
        from recrawl.record.blobs import moves  # lazy: few commands move

        del progress  # the files are put by the upload of each command that writes
        self.close()
        with opening.service_lock(self.folder):
            if to != moves.FOLDER:
                with Storage(self.folder) as held:
                    held.lock("move", patience(wait, self._notify))
                    moves.name_object_store(self.folder, to)
            with self._writing("move", self.options(), self.settings, wait=wait) as held:
                if to == moves.FOLDER:
                    return moves.move_to_folder(self.folder, held.remote, held.store.warcs)
                files, old = len(held.archive.names), str(held.archive.folder)
            return moves.MovedArchive(files, to.partition("?")[0], old)

    # -- how a call writes -------------------------------------------------------------------------------------

    @contextmanager
    def _writing(self, what: str, options: CrawlOptions, values: Settings, *, wait: bool) -> Iterator[Storage]:
        from recrawl.crawl.reports.figures import renew  # lazy: for commands that write

        self.close()  # reading opens the files again, as they are then
        with opening.held(
            self.folder, what, options, values, wait=patience(wait, self._notify), tell=self._notify
        ) as held:
            yield held
            renew(held.store, self.now())

    def _callbacks(
        self, wait: bool, progress: Callable[[Progress], None] | None, stop: Callable[[], bool]
    ) -> Callbacks:
        from recrawl.repository.turns import Callbacks  # lazy: loads the policies

        def watch(title: str, total: int | None) -> AbstractContextManager[Callable[[RunCounts], None]]:
            return contextlib.nullcontext(lambda tally: _report(progress, title, total, tally))

        return Callbacks(stop=stop, wait=patience(wait, self._notify), notify=self._notify, watch=watch)


def _report(progress: Callable[[Progress], None] | None, title: str, total: int | None, tally: RunCounts) -> None:
    if progress is not None:
        from recrawl.repository.results.runs import Progress  # lazy: for commands that write

        kind: Literal["crawl", "cycle"] = "crawl" if title == "crawling" else "cycle"
        outcomes = tally.outcomes.copy()
        progress(
            Progress(kind, tally.visits, total, tally.waiting, outcomes, tally.found, tally.received, tally.failures)
        )
