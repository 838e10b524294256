"""Reader: the questions that a repository answers. Reading never takes the lock and never waits for a writer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from recrawl.compare.noise.filters import Noise
from recrawl.crawl.options import CrawlOptions
from recrawl.errors import NotKnown, UnknownName, UsageError
from recrawl.model import State
from recrawl.operations import operation
from recrawl.parameters import (
    After,
    AnchorEvery,
    ChangeQuery,
    CrawlRules,
    Limit,
    NewVersion,
    NoisyPage,
    OldVersion,
    PageLimit,
    PageQuery,
    PerMinute,
    Query,
    SearchQuery,
    SettingName,
    SiteNumber,
    Url,
    VersionNumber,
)
from recrawl.parameters import Site as SiteName
from recrawl.record import listings, storage
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage
from recrawl.repository.lookup import When, key_of, origin_of, planning_folder, seconds
from recrawl.repository.opening import load, options_of, settings_file, steady_timer, system_clock
from recrawl.repository.results.pages import Page, Version
from recrawl.repository.results.rows import Rows
from recrawl.repository.results.values import Change, Explanation, SearchHit, SearchHits, Site, Status, Visit, at
from recrawl.settings import SETTINGS, Seed, Settings, size
from recrawl.times import duration

if TYPE_CHECKING:
    from recrawl.crawl.reports.frames import FrameLine
    from recrawl.repository.explain.anchors import SiteAnchor
    from recrawl.repository.explain.copies import Copies
    from recrawl.repository.explain.noise import NoiseProposal, Preview
    from recrawl.repository.explain.prediction import Prediction
    from recrawl.repository.explain.rates import PageRate, Rate
    from recrawl.repository.reports.usage import Usage
    from recrawl.repository.results.answers import (
        CycleAnswer,
        DescribedSettingAnswer,
        ListAnswer,
        OutboxAnswer,
        PageDetailsAnswer,
        PushSourceAnswer,
        SettingAnswer,
        SiteDetailsAnswer,
        SubscriptionAnswer,
        VersionAnswer,
        VersionDifferenceAnswer,
        VersionTextAnswer,
        VisitAnswer,
    )

_EVER = 1e300


class Reader:
    """A repository that is open for reading; see `recrawl.Repository`."""

    def __init__(
        self,
        folder: Path | str = ".",
        *,
        clock: Callable[[], float] | None = None,
        timer: Callable[[], float] | None = None,
        shared: bool = False,
    ) -> None:
        """Open the repository in this folder or in the nearest one above it.

        `clock` gives the time that is recorded, `timer` the one that paces requests: both in seconds since 1970. A
        `shared` one may be handed from thread to thread, one at a time.
        """
        self.folder = storage.find(Path(folder))
        self.now = clock or system_clock
        self._timer = timer or steady_timer()
        self._shared = shared
        self._storage: Storage | None = Storage(self.folder, shared=shared)
        self._options: tuple[object, CrawlOptions] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.folder)!r})"

    def close(self) -> None:
        """Close the files; using the repository again opens them again."""
        if self._storage is not None:
            self._storage.close()
            self._storage = None

    def opened(self) -> Storage:
        """The files on disk, for `recrawl.repository` itself."""
        if self._storage is None:
            self._storage = Storage(self.folder, shared=self._shared)
        return self._storage

    @property
    def storage(self) -> Storage:
        """The files on disk, for `recrawl.repository` itself."""
        return self.opened()

    def refresh(self) -> None:
        """Notice archive files that another process has begun; for a repository that stays open."""
        self.storage.refresh()

    @property
    def settings_file(self) -> Path:
        """`recrawl.toml`."""
        return settings_file(self.folder)

    @property
    def settings(self) -> Settings:
        """The settings, seeds, filters, alerts and shares as the file has them now: `repo.settings["delay"]`."""
        return load(self.folder)

    def options(self, **rules: Unpack[CrawlRules]) -> CrawlOptions:
        """The settings as the crawler takes them, with this repository's clocks."""
        return options_of(self.settings, **rules, clock=self.now, timer=self._timer)

    def noise_filter(self, site: str) -> Noise:
        """The noise filter of an origin, as the settings have it."""
        state = self.settings_file.stat()
        mark = (state.st_mtime_ns, state.st_size)
        if self._options is None or self._options[0] != mark:
            self._options = mark, self.options()
        return self._options[1].noise(site)

    @operation(http="GET /settings", name="settings", commands=("config",))
    def described_settings(self) -> list[DescribedSettingAnswer]:
        """List the settings with their values."""
        from recrawl.repository.results.answers import DescribedSettingAnswer  # lazy: not every command lists them

        values = self.settings
        return [
            DescribedSettingAnswer(name=row.name, value=values[row.name], default=row.default, help=row.help)
            for row in SETTINGS
        ]

    @operation(http="GET /settings/{name}", commands=("config",))
    def setting(self, name: SettingName) -> SettingAnswer:
        """Get a setting."""
        from recrawl.repository.results.answers import SettingAnswer  # lazy: not every command lists them

        names = [row.name for row in SETTINGS]
        if name not in names:
            raise UnknownName("setting", name, names)
        return SettingAnswer(name=name, value=self.settings[name])

    @operation(http="GET /seeds")
    def seeds(self) -> list[Seed]:
        """List the seeds: the sites and pages that were added, with their rules."""
        return list(self.settings.seeds)

    def recall(self, name: str) -> Any:
        """A value that `Repository.remember` has stored under this name; None if there is none."""
        return self.storage.store.meta.get(name, None)

    # -- what is there ---------------------------------------------------------------------------------------

    def status(self) -> Status:
        """Totals, the age of the pages, the last cycles and what they spent."""
        from recrawl.repository.status import status  # lazy: loads what learns from visits

        return status(self.storage, self.settings, self.now())

    @operation(http="GET /sites", commands=("sites",), part="recrawl.repository.reports.lists:sites")
    def sites(self) -> list[Site]:
        """List the sites with their totals; in Python also those that were added and not crawled yet."""
        from recrawl.repository.status import sites  # lazy: loads what learns from visits

        return sites(self.storage, self.settings, self.now())

    @operation(http="GET /sites/{site}", commands=("sites",), name="site")
    def site_details(self, site: SiteNumber) -> SiteDetailsAnswer:
        """Get a site with its totals and its latest cycles."""
        from recrawl.repository.reports import sites  # lazy: few commands ask
        from recrawl.repository.results.answers import SiteDetailsAnswer, made  # lazy: few commands ask

        return made(SiteDetailsAnswer, sites.summary(self, site))

    @operation(http="GET /pushers", commands=("sites",), name="pushers")
    def push_sources(self) -> list[PushSourceAnswer]:
        """List the sources of pushes with their precision."""
        from recrawl.repository import push  # lazy: few commands ask
        from recrawl.repository.results.answers import PushSourceAnswer, made  # lazy: few commands ask

        return [made(PushSourceAnswer, row) for row in push.sources(self)]

    @operation(http="GET /cycles")
    def cycles(self, *, limit: PageLimit = 50, after: After = "") -> ListAnswer[CycleAnswer]:
        """List crawls and cycles with their results, newest first."""
        from recrawl.repository.reports import lists  # lazy: few commands ask

        return lists.cycles(self, limit=limit, after=after)

    @operation(http="GET /outbox")
    def outbox(self, *, limit: PageLimit = 50, after: After = "") -> ListAnswer[OutboxAnswer]:
        """List the updates found by alert rules, newest first, with their delivery state."""
        from recrawl.repository.reports import lists  # lazy: few commands ask

        return lists.outbox(self, limit=limit, after=after)

    @operation(http="GET /subscriptions")
    def subscriptions(self) -> list[SubscriptionAnswer]:
        """List the WebSub subscriptions."""
        from recrawl.repository import push  # lazy: few commands ask
        from recrawl.repository.results.answers import SubscriptionAnswer, made  # lazy: few commands ask

        return [made(SubscriptionAnswer, row) for row in push.subscriptions(self)]

    @operation(http="GET /usage", commands=("usage",))
    def usage(self) -> Usage:
        """Tell what takes space on the disk, by kind, site and age; how it grows and when the disk will be full."""
        from recrawl.repository.reports.usage import usage  # lazy: few commands ask

        return usage(self.storage, self.now(), limit=int(size(self.settings["disk"])) or None)

    @property
    def page_count(self) -> int:
        """How many pages were ever found; known without counting."""
        return self.storage.store.count("pages")

    @operation(http="GET /pages", commands=("pages",), part="recrawl.repository.reports.lists:pages")
    def pages(self, *, limit: Limit = -1, **only: Unpack[PageQuery]) -> Rows[Page]:
        """List pages in the order in which they were found; over HTTP those of a site by state.

        Dropped pages are listed only with `state="dropped"`.
        """
        site, state = only.get("site", ""), only.get("state", "")
        names = [name.name.lower() for name in State]
        if state and state not in names:
            raise UnknownName("state", state, names)
        where, number = origin_of(self.storage, site), State[state.upper()] if state else None
        rows = partial(listings.page_rows, self.opened, site=where, state=number, limit=limit)
        return Rows(Page, lambda: (Page.of(self, row) for row in rows()))

    def page(self, url: str) -> Page:
        """The page with this URL; `NotKnown` when there is none. Without a scheme, https is tried before http."""
        key, clean = key_of(self.storage, url)
        row = self.storage.store.listings.page(key)
        if row is None:
            raise NotKnown(f"{clean} is not in this repository; 'recrawl pages' lists all pages")
        return Page.of(self, row)

    @operation(http="GET /page", name="lookup")
    def page_details(self, url: Url) -> PageDetailsAnswer:
        """Get a page by URL, with all that is known of it."""
        from recrawl.repository.reports import pages  # lazy: few commands ask
        from recrawl.repository.results.answers import PageDetailsAnswer, made  # lazy: few commands ask

        return made(PageDetailsAnswer, pages.page(self, pages.find(self, url)["id"]))

    @operation(http="GET /page/versions", commands=("log",))
    def page_versions(self, url: Url, *, limit: PageLimit = 200, after: After = "") -> ListAnswer[VersionAnswer]:
        """List the versions of a page, newest first."""
        from recrawl.repository.reports import lists  # lazy: few commands ask

        return lists.versions(self, url, limit, after)

    @operation(http="GET /page/visits", commands=("log",))
    def page_visits(self, url: Url, *, limit: PageLimit = 50, after: After = "") -> ListAnswer[VisitAnswer]:
        """List the visits of a page, newest first."""
        from recrawl.repository.reports import lists  # lazy: few commands ask

        return lists.visits(self, url, limit, after)

    @operation(http="GET /page/text", commands=("show",))
    def page_text(self, url: Url, *, version: VersionNumber = None) -> VersionTextAnswer:
        """Get the text of a version."""
        from recrawl.repository.reports import pages  # lazy: few commands ask

        return pages.answer_with_text(self, url, version)

    @operation(http="GET /page/diff", commands=("diff",))
    def page_diff(self, url: Url, *, old: OldVersion = None, new: NewVersion = None) -> VersionDifferenceAnswer:
        """Compare two versions."""
        from recrawl.repository.reports import pages  # lazy: few commands ask

        return pages.answer_with_difference(self, url, old, new)

    def urls(self) -> Iterator[str]:
        """The URLs of all pages that are visited (found, live, missing), sorted."""
        return self.storage.store.pages.visitable_urls()

    @operation(http="GET /changes", commands=("changes",), part="recrawl.repository.reports.lists:changes")
    def changes(self, *, after: int | None = None, limit: Limit = -1, **only: Unpack[ChangeQuery]) -> Rows[Change]:
        """List new, changed and removed pages, newest first.

        In Python with `after`, the `id` of a change, what was recorded later, oldest first: to continue where a program
        stopped.
        """
        where, now = origin_of(self.storage, only.get("site", "")), self.now()
        since, until = only.get("since") or None, only.get("until") or None
        tag, unread = only.get("tag", ""), bool(only.get("unread"))
        begin = -_EVER if since is None else seconds(since, now)
        end = _EVER if until is None else seconds(until, now)
        if after is not None and (since is not None or until is not None or tag or unread):
            raise UsageError("give 'after', or 'since', 'until', 'tag' and 'unread', not both")

        def read() -> Iterator[Change]:
            if after is not None:
                rows = listings.changes_after(self.opened, after, site=where)
            else:
                rows = listings.change_rows(self.opened, since=begin, until=end, site=where, tag=tag, unread=unread)
            passing = (change for change in map(Change.of, rows) if _meets(change, only))
            return islice(passing, None if limit < 0 else limit)

        return Rows(Change, read)

    def visits(self, *, since: When | None = None, site: str = "", limit: int = -1) -> Rows[Visit]:
        """Visits to all pages, in the order of their recording."""
        where = origin_of(self.storage, site)
        begin = -_EVER if since is None else seconds(since, self.now())
        rows = partial(listings.visit_rows, self.opened, since=begin, site=where, limit=limit)
        return Rows(Visit, lambda: map(Visit.of, rows()))

    def versions(self, *, since: When | None = None, site: str = "", limit: int = -1) -> Rows[Version]:
        """Versions of all pages, in the order of their recording."""
        where = origin_of(self.storage, site)
        begin = -_EVER if since is None else seconds(since, self.now())

        def read() -> Iterator[Version]:
            for row in listings.version_rows(self.opened, since=begin, site=where, limit=limit):
                stored = VersionRow(**{name: row[name] for name in VersionRow._fields})
                yield Version.of(self, stored, row["url"], row["number"])

        return Rows(Version, read)

    @operation(http="GET /search", commands=("search",), part="recrawl.repository.reports.lists:hits")
    def search(self, query: Query, *, limit: int = 10, offset: int = 0, **only: Unpack[SearchQuery]) -> SearchHits:
        """Search the newest version of every page: the best pages for a query, with snippets.

        With a language, pages are found that state it, and pages in it that state none or another.
        """
        if not self.settings["index"]:
            raise UsageError("the index is off: 'recrawl config index true', then crawl or cycle")
        from recrawl.crawl.reports.search import search  # lazy: few commands search

        hits = search(self.storage, query, self.noise_filter, limit=limit, offset=offset, **self.sought(only))
        return SearchHits(
            SearchHit(h.page, h.url, h.title, at(h.at), h.score, h.snippet, h.marks, h.also) for h in hits
        )

    def sought(self, only: SearchQuery) -> dict[str, Any]:
        """The conditions of a search as the index takes them: the origin of the site, times in seconds."""
        times = {"since": only.get("since"), "until": only.get("until")}
        return {
            "site": origin_of(self.storage, only.get("site", "")),
            "language": only.get("language", ""),
            **{name: seconds(when, self.now()) if when else None for name, when in times.items()},
        }

    # -- what is expected ------------------------------------------------------------------------------------

    @operation(http="GET /page/why", name="page_why", commands=("why",), answer="WhyAnswer", process=("why",))
    def why(self, url: Url) -> Explanation:
        """Explain why a page was visited or not, and whether the next cycle would choose it."""
        from recrawl.repository.explain.why import explain  # lazy: loads the policies

        return explain(planning_folder(self.storage, url), self.settings, self.options(), url, self.now())

    @operation(
        http="GET /page/predict",
        name="page_predict",
        commands=("why",),
        answer="PredictionAnswer",
        process=("why", "--chance"),
    )
    def predict(self, url: Url) -> Prediction:
        """Estimate how likely a page has changed since its last visit, and on what grounds."""
        from recrawl.repository.explain.prediction import predict  # lazy: few commands predict

        return predict(planning_folder(self.storage, url), self.settings, self.options(), url, self.now())

    def rates(
        self,
        names: Iterable[str] = (),
        *,
        by: Literal["page", "directory", "site"] = "page",
        estimator: str = "gamma",
        limit: int = 50,
    ) -> list[Rate]:
        """Changes per day, fastest first; `names` are URLs of pages, or sites as `example.org`; all if none."""
        from recrawl.repository.explain import rates  # lazy: loads scipy

        return rates.rates(self.storage, names, by, estimator, limit)

    def rate(self, url: str, *, estimator: str = "gamma") -> PageRate:
        """Changes per day of one page, by every estimator."""
        from recrawl.repository.explain import rates  # lazy: loads scipy

        return rates.rate(planning_folder(self.storage, url), self.settings, self.options(), url, estimator)

    @operation(http="GET /anchors", commands=("anchor",), answer="SiteAnchorAnswer", slow=True)
    def anchors(
        self, site: SiteName = "", *, every: AnchorEvery = "6h", per_minute: PerMinute = 0.0
    ) -> list[SiteAnchor]:
        """Find the anchor of each site: the page that links its newest pages, and change by link distance from it.

        `every` is how often the pages near the anchor are to be visited, `per_minute` the most pages per minute over
        all sites; 0 takes the limits of the settings.
        """
        from recrawl.repository.explain import anchors  # lazy: loads scipy

        period = duration(every) if isinstance(every, str) else float(every)
        where = origin_of(self.storage, site)
        return anchors.survey_sites(self.storage, self.options(), self.now(), period, per_minute, where)

    @operation(http="GET /noise", name="noise", commands=("noise",), slow=True)
    def noise_proposals(self, url: NoisyPage = "") -> list[NoiseProposal]:
        """Suggest noise filters (dates, counters, ads), for a page or for the pages that change at every visit."""
        from recrawl.repository.explain import noise  # lazy: few commands look for noise

        return noise.proposals(self.storage, url)

    def frame(self, site: str, *, limit: int = 50) -> list[FrameLine]:
        """Lines that were learned as the frame of a site: they stand on several of its pages."""
        from recrawl.repository.explain import noise  # lazy: few commands look for noise

        where = origin_of(self.storage, site)
        return noise.frame(self.storage, where, self.noise_filter(where), limit)

    def copies(self, site: str = "", *, limit: int = 100) -> Copies:
        """The pages that have several URLs, of a site or of all, and what was learned from them."""
        from recrawl.repository.explain import copies  # lazy: few commands ask for it

        return copies.found(self.storage, origin_of(self.storage, site), self.settings["keep_parameters"], limit)

    def noise_preview(self, selectors: Iterable[str] = (), patterns: Iterable[str] = (), *, site: str = "") -> Preview:
        """How many recent changes of a site (all if empty) a noise filter would have hidden."""
        from recrawl.repository.explain import noise  # lazy: few commands look for noise

        extra, where = Noise(tuple(selectors), tuple(patterns)), origin_of(self.storage, site)
        return noise.preview(self.storage, where, self.noise_filter(where), extra)


def _meets(change: Change, only: ChangeQuery) -> bool:
    """Whether a change meets the conditions that the store does not know."""
    changed, outcome = change.outcome == "changed", only.get("outcome")
    return (
        only.get("path", "") in change.url
        and (not outcome or change.outcome == outcome)
        and (not changed or (change.divergence or 0.0) >= (only.get("divergence") or 0.0))
        and (not changed or not only.get("significant") or bool(change.significant))
    )
