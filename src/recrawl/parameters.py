"""The parameters of operations: each is declared once, with its type, its limits and what users read about it.

Operations name them in their signatures, alone or in groups (`**rules: Unpack[SiteRules]`); see `recrawl.operations`.
None means that nothing was given: what is stored, or the setting, holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Annotated, Literal, TypedDict

from recrawl.operations import Described

When = str | float | datetime
"""A point in time: `2026-03-01`, `2d` (ago), seconds since 1970, or a datetime."""
_LONGEST_LIST = 2**62
_LEVELS = "text, content, significant, divergence:X, words:N, new-link, out-link, relevance:FILE or relevance-both:FILE"

# -- what to list --------------------------------------------------------------------------------------------------

Url = Annotated[str, Described("URL of a page.", argument=True, metavar="URL")]
StartUrl = Annotated[str, Described("URL to start from.", argument=True, metavar="URL...", sent_name="url")]
Site = Annotated[str, Described("Only this site; its URL or that of any of its pages.", complete="sites", default="")]
Limit = Annotated[int, Described("List at most this many; -1 for all.", least=-1, most=_LONGEST_LIST)]
PageLimit = Annotated[int, Described("Maximum number of rows.", least=1, most=500)]
After = Annotated[str, Described("Continue after this row: `next` of the previous response.")]
Since = Annotated[When | None, Described("Only from this time on: 2026-03-01, or 2d for the last two days.")]
Until = Annotated[When | None, Described("Only before this time.")]
Tag = Annotated[str, Described("Only pages with this tag, or of sites with it.", default="")]
Unread = Annotated[bool, Described("Only changes that are not marked as read.", default=False)]
PathText = Annotated[str, Described("Only URLs that contain this text.", metavar="TEXT", default="")]
PageState = Annotated[
    str,
    Described(
        "Only pages in this state.",
        choices=("", "found", "live", "missing", "gone", "moved", "barred", "dropped"),
        complete="states",
        default="",
    ),
]
OutcomeName = Annotated[
    str, Described("Only updates with this outcome.", choices=("", "changed", "new", "gone"), default="")
]
LeastDivergence = Annotated[
    float, Described("Only changes of at least this share of the words: 0.1.", least=0, most=1, default=0.0)
]
Significant = Annotated[bool, Described("Only changes that pass the chi-squared test.", default=False)]
Query = Annotated[
    str,
    Described('Words, "phrases", +must, -not, title:word, url:word.', argument=True, metavar="QUERY...", sent_name="q"),
]
Language = Annotated[str, Described("Only pages in this language: de (de-AT too), pt-br.", default="")]
DatedSince = Annotated[
    When | None,
    Described(
        "Only pages dated from this time on, as 2026-03-01 or 30d (ago): the date that the page states (updated, else "
        "published), or when its version was recorded if it states none."
    ),
]
DatedUntil = Annotated[When | None, Described("Only pages dated before this time.", option="--before/--until")]


class ChangeQuery(TypedDict, total=False):
    """Which changes are listed: those that meet all conditions that are given."""

    since: Since
    until: Until
    site: Site
    path: PathText
    outcome: OutcomeName
    divergence: LeastDivergence
    significant: Significant
    tag: Tag
    unread: Unread


class SearchQuery(TypedDict, total=False):
    """In which pages a search looks."""

    site: Site
    language: Language
    since: DatedSince
    until: DatedUntil


class PageQuery(TypedDict, total=False):
    """Which pages are listed."""

    site: Site
    state: PageState


Hits = Annotated[int, Described("List at most this many pages.", least=1, most=10_000)]
HitLimit = Annotated[int, Described("Maximum number of rows.", least=1, most=100)]
SiteNumber = Annotated[int, Described("Number of the site.", least=0)]
PageNumber = Annotated[int, Described("Number of the page.", least=0)]
VersionNumber = Annotated[int | None, Described("Number (`id`) of the version; the newest if omitted.", least=0)]
OldVersion = Annotated[int | None, Described("Earlier version; the one before `new` if omitted.", least=0)]
NewVersion = Annotated[int | None, Described("Later version; the newest if omitted.", least=0)]

# -- rules of a site, and of a run -----------------------------------------------------------------------------

RENDER = ("never", "auto", "always")
SCREENSHOTS = ("never", "changed", "always")
REQUISITES = ("none", "css", "all")
SITEMAP_KINDS = ("honest", "late:DAYS", "noisy:P,R", "lying", "random", "future", "silent", "never")
SITE_KINDS = ("news", "docs", "shop", "blog", "university")
ADVERSARIES = ("rewriting", "many", "farm", "endless", "sessions", "still", "lying", "boasting")

AllowPrivate = Annotated[bool | None, Described("Allow private and loopback IP addresses (for local tests).")]
Delay = Annotated[
    float | None,
    Described(
        "Seconds between two requests to one server; robots.txt may demand more.",
        label="Delay (seconds)",
        least=0,
        most=86_400,
        metavar="SECONDS",
    ),
]
Change = Annotated[
    str | None,
    Described(
        f"What counts as a change: {_LEVELS}. Default: the setting.",
        label="What counts as a change",
        metavar="LEVEL",
        names_file=True,
    ),
]


class PublicRules(TypedDict, total=False):
    """Rules of a site that an assistant may set too: none opens the way to private addresses."""

    limit: Annotated[int | None, Described("Most pages of the site.", label="Page limit", least=0, most=10**9)]
    depth: Annotated[
        int | None,
        Described("Links to follow from the URL; 0 is that page alone.", label="Link depth", least=0, most=10**6),
    ]
    delay: Delay
    change: Change
    requisites: Annotated[
        str | None,
        Described(
            "What to keep to show pages as they looked: none, css (stylesheets) or all (images, fonts, scripts too). "
            "Default: the setting.",
            label="Page requisites",
            metavar="LEVEL",
            choices=("", *REQUISITES),
        ),
    ]
    render: Annotated[
        str | None,
        Described(
            "Render pages that need JavaScript: never, auto (learns where it matters) or always. Default: the setting.",
            label="Rendering",
            metavar="WHEN",
            choices=("", *RENDER),
        ),
    ]
    screenshots: Annotated[
        str | None,
        Described(
            "Take screenshots: never, changed (of each new version) or always. Default: the setting.",
            metavar="WHEN",
            choices=("", *SCREENSHOTS),
        ),
    ]
    every: Annotated[
        str | None,
        Described(
            "Visit its pages at least this often, whatever the policy chooses: 30m, 6h, 1d.",
            label="Interval",
            metavar="DURATION",
        ),
    ]
    include: Annotated[
        Iterable[str] | None, Described("Only URLs that match one of these patterns: /docs/*, or re:...")
    ]
    exclude: Annotated[Iterable[str] | None, Described("No URLs that match one of these patterns.")]


class SiteRules(PublicRules, total=False):
    """Rules of a site or page that was added; a rule that is not named keeps what is stored."""

    allow_private: AllowPrivate


Clear = Annotated[Iterable[str], Described("Remove these rules, by name: limit, depth, include ...", metavar="RULE")]


Order = Annotated[
    str,
    Described(
        "Order of the visits: breadth, depth, path or importance. Default: the setting.",
        choices=("", "breadth", "depth", "path", "importance"),
    ),
]


class RunRules(TypedDict, total=False):
    """What a run may have instead of what is stored."""

    allow_private: AllowPrivate
    delay: Delay
    change: Change


class CrawlRules(RunRules, total=False):
    """What a crawl may have instead of what is stored."""

    order: Order


Budget = Annotated[
    float | None,
    Described("Limit of visits; below 1, a share of the pages. Default: the setting.", least=1e-9, most=1e15),
]
Bytes = Annotated[
    str, Described("Limit of bytes per cycle, as 200MB; 0 is no limit. Default: the setting.", metavar="AMOUNT")
]
PolicyText = Annotated[
    str,
    Described(
        "Policy that chooses the pages: a name from 'recrawl policies', or module:Class(args). Default: the setting.",
        metavar="P",
        complete="policies",
    ),
]
TimeLimit = Annotated[str | float | None, Described("End after this long.", option="--for", metavar="DURATION")]
Wait = Annotated[bool, Described("Wait if another command is writing to the repository.", option="--wait/--no-wait")]

# -- what people attach --------------------------------------------------------------------------------------------

Target = Annotated[str, Described("URL of a page, or a site as example.org: all of its pages.", sent_name="target")]
TagName = Annotated[str, Described("The tag.")]
FilterName = Annotated[str, Described("Name of the saved filter.")]
ChangeIds = Annotated[
    list[int] | None, Described("Numbers (`id`) of changes; all so far if omitted; an empty list: none.")
]
Read = Annotated[bool, Described("False marks them as unread.")]

# -- noise, anchors, rates -------------------------------------------------------------------------------------------

NoisyPage = Annotated[
    str, Described("Only this page; the pages that change at every visit if omitted.", argument=True, metavar="[URL]")
]
AnchorEvery = Annotated[str | float, Described("Interval between visits to the pages near the anchor.", metavar="TIME")]
PerMinute = Annotated[
    float,
    Described("Limit of pages per minute over all sites; 0 uses the settings.", least=0, most=1e9, metavar="PAGES"),
]
RateOf = Annotated[
    Literal["page", "directory", "site"],
    Described(
        "What a row stands for; a directory or site shows the mean of its pages.", choices=("page", "directory", "site")
    ),
]
Estimator = Annotated[
    str,
    Described("Rate estimator.", choices=("naive", "regular", "irregular", "moment", "averaged", "modified", "gamma")),
]
RatedPage = Annotated[str, Described("Only this page, with all estimators.")]
AnchorUrl = Annotated[str, Described("URL of the page that is the anchor of its site.")]
AnchorSite = Annotated[str, Described("URL of the site.")]

# -- settings, alerts, subscriptions, the service -------------------------------------------------------------------

SeedUrl = Annotated[str, Described("URL of the site or page.")]
SettingName = Annotated[str, Described("Name of the setting.", complete="settings")]
SettingValue = Annotated[
    bool | int | float | str | list[str],
    Described("Its new value, of the type of the default.", sent_as=bool | int | float | str | list[str]),
]
FilterNumber = Annotated[int, Described("Number of the filter.", least=0)]
Receiver = Annotated[str, Described("Name of the sink or alert; empty: any.", sent_name="receiver")]
ParkedNumbers = Annotated[
    list[int] | None, Described("Numbers of parked changes; all of the receiver if omitted.", least=0)
]
AlertName = Annotated[str, Described("Name of the alert.")]
AlertTarget = Annotated[
    str,
    Described(
        "`feed`, the URL of a webhook, a mail server as smtp://mail.example.org/?to=me@example.org, or an Apprise URL."
    ),
]
WatchedPage = Annotated[str, Described("URL of the page.")]
WatchedElements = Annotated[str, Described("The elements with the value (CSS selector).")]
ValueName = Annotated[str, Described("The words after which the number stands.")]
FeedUrl = Annotated[str, Described("URL of the feed.")]
HubUrl = Annotated[str, Described("URL of the hub, as given in the feed.")]
SubscriptionName = Annotated[str, Described("Name of the subscription.")]
EventKinds = Annotated[str, Described("Only these kinds, comma-separated: visit,cycle,alert.")]


class NoiseFilter(TypedDict, total=False):
    """What is no change on a site."""

    site: Annotated[str, Described("URL of the site; empty for all sites.")]
    selectors: Annotated[list[str] | None, Described("CSS selectors of elements to ignore.")]
    patterns: Annotated[list[str] | None, Described("Regular expressions of text to ignore.")]


class AlertConditions(TypedDict, total=False):
    """Which updates an alert is about, and how it tells them."""

    site: Site
    path: Annotated[str, Described("Only URLs that match this pattern: /news/*, or re:...")]
    page: Annotated[str, Described("Only this page: its URL.")]
    tag: Tag
    selector: Annotated[str, Described("Only if the text of these elements changed (CSS selector).")]
    ignore: Annotated[str, Described("Elements that do not count (CSS selector).")]
    when: Annotated[
        str,
        Described(
            "Only if this holds now and did not before: price below 100, contains sold out, falls by 10 %, more than "
            "5 % of the content; several joined by ;."
        ),
    ]
    text: Annotated[str, Described("Only if this text was added; a regular expression after re:.")]
    divergence: LeastDivergence
    significant: Significant
    significance: Annotated[float, Described("Only if it is news with this probability.", least=0, most=1)]
    change: Annotated[
        str,
        Described("Only changes at this level, as the setting `change`; empty for that of the site.", names_file=True),
    ]
    outcomes: Annotated[list[str] | None, Described("Only these outcomes: changed, new, gone; all if omitted.")]
    secret: Annotated[str | None, Described("Key that signs webhook requests; the existing one if omitted.")]
    digest: Annotated[str, Described("Collect updates for this long (1h, 1d); empty sends immediately.")]
    hold: Annotated[bool, Described("Wait two visits; send nothing if the page reverts.")]
    quiet: Annotated[str, Described("Send nothing in these hours: 22:00-07:00 Europe/Berlin; it waits for their end.")]
    subject: Annotated[
        str,
        Described(
            "Template of the subject, with {title}, {url}, {before}, {after}, {quote}, {outcome}, {link}, {alert}; "
            "empty: what changed."
        ),
    ]
    message: Annotated[str, Described("Template of the text of each update, with the same fields.")]


class ChangeConditions(TypedDict, total=False):
    """The conditions of a saved filter of changes, as text."""

    site: Site
    path: PathText
    since: Annotated[str, Described("Only from this time on: 2026-03-01, or 2d for the last two days.")]
    until: Annotated[str, Described("Only before this time.")]
    least: Annotated[str, Described("Only changes of at least this share of the words, in percent.")]
    what: Annotated[str, Described("Only updates with this outcome: changed, new or gone.")]
    significant: Annotated[str, Described("1: only changes that pass the chi-squared test.")]
    tag: Tag
    unread: Annotated[str, Described("1: only changes that are not marked as read.")]


# -- clusters --------------------------------------------------------------------------------------------------------

ShardNumber = Annotated[int, Described("Number of the shard.", least=0, most=2**31)]
NodeName = Annotated[str, Described("Name of the node.")]
DrainedNode = Annotated[str, Described("Name of the node whose shards go elsewhere.")]
DrainedWorker = Annotated[str, Described("Name of the worker: it ends, and another one takes its shard.")]
Draining = Annotated[bool, Described("False lets a node have shards again.")]

# -- files and jobs ----------------------------------------------------------------------------------------------------

FileName = Annotated[str, Described("Name of the file.")]
JobNumber = Annotated[int, Described("Number of the job.", least=0)]
OutputFile = Annotated[str, Described("Name of the output file.")]
ImportedFiles = Annotated[
    list[str], Described("Uploaded files: URL lists, Parquet, WARC, or a folder with a git repository.")
]


class ImportOptions(TypedDict, total=False):
    """Which part of a history is imported."""

    base_url: Annotated[str, Described("git: URL at which the pages are published.", metavar="URL")]
    branch: Annotated[str, Described("git: branch. Default: the current one.", metavar="NAME")]
    root: Annotated[str, Described("git: folder that holds the site. Default: all.", metavar="DIR")]
    since: Annotated[str, Described("git, WARC: start with the pages as of this time.", metavar="TIME")]
    until: Annotated[str, Described("git, WARC: ignore later versions.", metavar="TIME")]
    limit: Annotated[
        int, Described("git, WARC: import at most this many pages, oldest first.", least=1, most=10**9, metavar="PAGES")
    ]


# -- the lab -----------------------------------------------------------------------------------------------------------

ComparedPolicies = Annotated[list[str], Described("Policies; clairvoyant is the upper bound.")]
ComparedBudgets = Annotated[list[float], Described("Visits per cycle; below 1, a share of the pages.")]
CycleLength = Annotated[str, Described("Length of a cycle: 6h, 1d, 2w.")]
CycleLengths = Annotated[list[str] | None, Described("Length of a cycle: 6h, 1d, 2w.")]
ReplayBudget = Annotated[float, Described("Visits per cycle; below 1, a share of the pages.", least=0, most=1e15)]
ReplayBudgets = Annotated[list[float] | None, Described("Visits per cycle, or shares of the pages.")]
Policies = Annotated[
    list[str],
    Described(
        "A policy: round-robin, greedy(sample=20), or module:Class(args).",
        option="--policy",
        metavar="P",
        complete="policies",
    ),
]
UploadedArchives = Annotated[Sequence[str], Described("Uploaded archives; the repository's own history if omitted.")]
Seed = Annotated[int, Described("Random seed.", least=0, most=2**31)]
SeedCount = Annotated[int, Described("Number of random seeds; means and spread over them.", least=1, most=1000)]
ChartFile = Annotated[str | None, Described("Name of a chart file to create, ending in .png, .svg or .html.")]
ChartMetric = Annotated[
    str, Described("Measure on the chart: a column of the table, or weighted_change_ratio or weighted_freshness.")
]
_LAB_LEVELS = (
    "text, raw, content, significant, divergence:0.1 (share of words), words:20, new-link, out-link, relevance:FILE or "
    "relevance-both:FILE (one query per line)"
)
LabChange = Annotated[str, Described(f"What counts as a change: {_LAB_LEVELS}.", metavar="LEVEL", default="text")]


class Replay(TypedDict, total=False):
    """How archives are replayed."""

    bytes: Annotated[
        str, Described("Limit the bytes per cycle, as 200MB; 0 is no limit.", metavar="AMOUNT", default="0")
    ]
    cycles: Annotated[
        int | None, Described("Number of cycles. Default: to the end of the archives.", least=1, most=10**6)
    ]
    skip: Annotated[
        str,
        Described(
            "Skip this much of each site's history, as the 365d that a policy was tuned on.",
            metavar="TIME",
            default="0d",
        ),
    ]
    change: LabChange
    discover: Annotated[
        str,
        Described(
            "How pages become known: births (new ones, at once), links, or crawl (from start pages).",
            choices=("births", "links", "crawl"),
            default="births",
        ),
    ]
    at_start: Annotated[
        float,
        Described(
            "Share of a cycle's visits made at its start; the rest is spread evenly.", least=0, most=1, default=1.0
        ),
    ]
    failures: Annotated[float, Described("Share of visits that fail.", least=0, most=1, default=0.0)]
    late: Annotated[
        float, Described("Share of each batch whose outcomes come with a later one.", least=0, most=1, default=0.0)
    ]
    hints: Annotated[
        str,
        Described(
            "Hints of the sites: a folder of files that say what sitemaps and feeds said, or a simulated sitemap: "
            f"sitemap:HOW, with HOW one of {', '.join(SITEMAP_KINDS)}.",
            metavar="SOURCE",
            default="",
        ),
    ]
    importance: Annotated[
        str,
        Described(
            "Page weights for policies: even, pagerank, file:PATH or clicks:PATH.", metavar="KIND", default="even"
        ),
    ]
    cost: Annotated[
        str,
        Described(
            "Cost of a visit for policies: visit (all equal) or bytes.", choices=("visit", "bytes"), default="visit"
        ),
    ]
    site_share: Annotated[
        str,
        Described(
            "What one site may take of a cycle: auto (others keep a fair share), equal, or the largest share; 1 is no "
            "limit.",
            metavar="SHARE",
            default="auto",
        ),
    ]
    copies: Annotated[
        bool,
        Described("Leave out pages with the text of another page of their site, as a crawl does.", default=False),
    ]


class SingleReplay(Replay, total=False):
    """How archives are replayed under each policy, with one budget and cycle length."""

    adversary: Annotated[
        str,
        Described(
            f"Add a site that takes what belongs to the others: {', '.join(ADVERSARIES)}.", metavar="KIND", default=""
        ),
    ]
    shards: Annotated[
        int,
        Described(
            "Divide the pages by site into this many shards with one budget, as a cluster does; policies that cannot "
            "be split run on one.",
            least=1,
            most=10**6,
            metavar="NUMBER",
            default=1,
        ),
    ]


class Predicting(TypedDict, total=False):
    """How changes are predicted, and how the prediction is measured."""

    method: Annotated[
        str,
        Described(
            "Prediction method: frequency, 1d, 2d, 3d (multiple experts), union, bagging, boosting, online-2d or "
            "online-3d (updated daily), or pooled (one model for all pages).",
            default="3d",
        ),
    ]
    experts: Annotated[str, Described("How to find related pages: graph, content, xcorr, dtw.", default="xcorr")]
    k: Annotated[
        int,
        Described("Number of related pages (experts) per page.", least=1, most=1000, option="--k", default=20),
    ]
    train: Annotated[int, Described("Training window in days.", least=1, most=10**5, default=50)]
    label: Annotated[
        str,
        Described(
            "What counts as a change: text, divergence:0.1, words:20 (Ali and Williams 2003), content, significant, "
            "new-link, out-link, or relevance:FILE with one query per line.",
            default="text",
        ),
    ]
    window: Annotated[
        int,
        Described("Days that the features cover (l in Radinsky and Bennett 2013).", least=1, most=1000, default=1),
    ]
    interval: Annotated[
        int, Described("Days ahead to predict (sigma in Radinsky and Bennett 2013).", least=1, most=1000, default=1)
    ]
    observe: Annotated[float, Described("Share of pages observed each day.", least=0, most=1, default=1.0)]
    lags: Annotated[
        str,
        Described(
            "Days by which a related page may lead, for xcorr: first-last, such as 1-20, or the last.", default="0-7"
        ),
    ]
    words: Annotated[int, Described("Words per page that xcorr and dtw compare.", least=1, most=10**5, default=24)]
    omega: Annotated[
        str,
        Described(
            "Weight of a word for xcorr and dtw: last (tf-idf in the last snapshot), changes (days on which its count "
            "changed), moves (sum of these changes) or even.",
            default="last",
        ),
    ]
    alpha: Annotated[
        float,
        Described(
            "Only pages whose change flag flips on this share of days; Radinsky and Bennett use 0.3.",
            least=0,
            most=1,
            default=0.0,
        ),
    ]
    pages: Annotated[int | None, Described("Use a random sample of this many pages.", least=1, most=10**9)]
    days: Annotated[int, Described("Predict the last N days of the archive.", least=1, most=10**5, default=30)]
    seed: Annotated[int, Described("Random seed for samples and visits.", least=0, most=2**31, default=1)]


class Reproducing(TypedDict, total=False):
    """Which published experiments are repeated, and how."""

    names: Annotated[
        list[str],
        Described(
            "Experiments, or all of a publication, as radinsky2013; --list lists them.",
            argument=True,
            metavar="[NAME]...",
        ),
    ]
    archives: Annotated[
        list[str], Described("Also run on these archives: Parquet files or folders of them.", metavar="ARCHIVE")
    ]
    scale: Annotated[
        float,
        Described("Size of generated webs as a share of the publication's.", least=1e-6, most=1, default=1.0),
    ]
    seeds: Annotated[
        int,
        Described("Number of random seeds for experiments that draw random numbers.", least=1, most=1000, default=10),
    ]
    change: LabChange
    all: Annotated[
        bool, Described("Run all experiments; takes several minutes at full size on two cores.", default=False)
    ]
    list: Annotated[bool, Described("List the experiments and exit.", default=False)]


class Synthesis(TypedDict, total=False):
    """The generated web; the defaults and ranges are those of `recrawl.lab.synth.SyntheticWorld`."""

    seed: Annotated[int, Described("Random seed; the same seed gives the same web.", least=0, default=1)]
    sites: Annotated[int, Described("Number of sites.", least=1, most=1_000_000, default=5)]
    pages: Annotated[int, Described("Pages per site at the start.", least=10, most=10_000_000, default=200)]
    days: Annotated[float, Described("Length of the history in days.", least=0.01, most=36_525, default=60.0)]
    kinds: Annotated[
        str,
        Described(
            f"Kinds of site with weights, as news=2,blog=1; kinds: {', '.join(SITE_KINDS)}.",
            metavar="WEIGHTS",
            default=",".join(SITE_KINDS),
        ),
    ]
    set: Annotated[list[str], Described("Set any parameter. --parameters lists them.", metavar="NAME=VALUE")]
