"""Settings: one table of name, default and help, which recrawl.toml, the command line and the docs read.

A repository's `recrawl.toml` has six parts: `[settings]`, a `[[seed]]` for each site or page that was added, a
`[[filter]]` for each noise filter, an `[[alert]]` for each alert rule, a `[[share]]` for each site with its own share
of the budget, a `[[sink]]` for each system that gets the changes, an `[[access]]` for each site behind a login or a
proxy. Settings that it leaves out have the default of the table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args, get_origin, get_type_hints

from recrawl import plugins
from recrawl.compare.levels import FILE_PREFIXES, NAMES, parse_level
from recrawl.discover.urls import DEFAULT_TRACKING
from recrawl.durable_files import locked, replace_file
from recrawl.errors import UnknownName, UsageError
from recrawl.fetch.access import AccessRule
from recrawl.learn.value import COSTS, kind_of
from recrawl.model import ORDERS, RequisiteLevel
from recrawl.parameters import RENDER, REQUISITES, SCREENSHOTS
from recrawl.retention import keep_rule
from recrawl.times import duration, quiet_hours, weekday_numbers

if TYPE_CHECKING:
    from tomlkit import TOMLDocument


LEVELS = NAMES
"""The levels of change, for people."""
LEVEL_FILES = FILE_PREFIXES
"""Levels of change that name a file begin so."""


class Setting(NamedTuple):
    """One row of the table."""

    name: str
    default: Any
    help: str
    least: float = 0.0
    most: float = 1e15
    choices: tuple[str, ...] = ()
    """All possible values of a text; any text if empty."""


SETTINGS: tuple[Setting, ...] = (
    Setting("contact", "", "A URL or e-mail address for site owners; sent in the User-Agent."),
    Setting("delay", 1.0, "Seconds between two requests to one server; robots.txt may demand more."),
    Setting("max_delay", 60.0, "Longest Crawl-delay that is obeyed, in seconds."),
    Setting("per_server", 1, "Concurrent requests to one server.", least=1, most=1000),
    Setting("per_second", 0.0, "Requests per second over all servers; 0 is no limit."),
    Setting(
        "order",
        "breadth",
        "Order of a crawl: breadth, depth, path (shortest first) or importance.",
        choices=tuple(ORDERS),
    ),
    Setting("fetcher", "http", "What downloads pages: http (libcurl), or the name of a plug-in."),
    Setting("max_bytes", 10_000_000, "Largest page in bytes, after decompression.", least=1000),
    Setting("timeout", 60.0, "Longest download, in seconds.", least=0.05),
    Setting("connect_timeout", 10.0, "Longest wait for a connection, in seconds.", least=0.05),
    Setting("stall", 20.0, "Longest pause within a download, in seconds.", least=0.05),
    Setting("retries", 2, "Retries of a page after HTTP 429 or 503.", most=100),
    Setting("patience", 120.0, "Longest wait within a run for a server that sends Retry-After, in seconds."),
    Setting("redirects", 5, "Most redirects followed in a row.", most=100),
    Setting(
        "content_types",
        ["text/*", "application/xhtml+xml", "application/xml", "application/json", "application/*+xml"],
        "Content types to keep.",
    ),
    Setting(
        "tracking",
        list(DEFAULT_TRACKING),
        "Query parameters to remove from URLs, as they do not change the page.",
    ),
    Setting(
        "keep_parameters",
        [],
        "Query parameters that stay in URLs, although they were learned to change nothing (recrawl noise --copies).",
    ),
    Setting("max_queries", 5000, "Most URLs of one path that differ only in their query; more are a trap.", least=1),
    Setting("max_folder", 50_000, "Most pages in one directory; more are a trap.", least=1),
    Setting("robots_hours", 24.0, "Hours for which a robots.txt is cached."),
    Setting("sitemaps", True, "Read sitemaps."),
    Setting("sitemap_hours", 24.0, "Hours between two reads of a sitemap."),
    Setting("feed_hours", 1.0, "Hours between two reads of a feed; 0 reads none."),
    Setting("gone_hours", 48.0, "Hours that pages which vanish together must be missing to count as gone."),
    Setting("readers", 0, "Processes that parse pages; 0 is the number of cores minus one.", most=1000),
    Setting("parse_seconds", 5.0, "Longest time to parse a page, in seconds.", least=0.1),
    Setting("change", "content", f"What counts as a change of a page: {NAMES}."),
    Setting(
        "requisites",
        "css",
        "What to keep to show pages as they looked: none, css (stylesheets) or all (images, fonts, scripts too).",
        choices=REQUISITES,
    ),
    Setting(
        "render",
        "never",
        "Render pages that need JavaScript, with the extra `browser`: never, auto or always.",
        choices=RENDER,
    ),
    Setting("render_seconds", 60.0, "Longest time to render a page, in seconds.", least=1, most=3600),
    Setting("render_requests", 60, "Most requests of a page that is rendered.", most=10_000),
    Setting(
        "screenshots",
        "never",
        "Take screenshots, with the extra `browser`: never, changed (of each new version) or always (at each visit).",
        choices=SCREENSHOTS,
    ),
    Setting("screenshot_bytes", "2MB", "Largest screenshot; of a longer page, the upper part is kept."),
    Setting("requisite_budget", 1000, "Most requests for page requisites per crawl or cycle."),
    Setting("requisite_bytes", "100MB", "Most bytes received for page requisites per crawl or cycle; 0 is no limit."),
    Setting("requisite_hours", 168.0, "Hours after which a page requisite that is still used is requested again."),
    Setting("index", True, "Index pages for search."),
    Setting(
        "archive_format",
        "warc.gz",
        "Format of new archive files: warc.gz, or warc.zst, which is smaller (needs recrawl[zstd]).",
        choices=("warc.gz", "warc.zst"),
    ),
    Setting("warc_megabytes", 1000, "Size in MB at which a new archive file begins.", least=1),
    Setting(
        "keep",
        "all",
        "Versions that `thin` keeps of a page: all, or as in last=3, daily=7, weekly=4, monthly=12, yearly=10.",
    ),
    Setting("keep_frame", "all", "The same for versions in which only the frame of the site changed."),
    Setting("keep_screenshots", "all", "The same for screenshots."),
    Setting(
        "disk",
        "0",
        "Most bytes that the repository takes, as 50GB: it is thinned out before, and crawling ends; 0 is no limit.",
    ),
    Setting("policy", "shock", "Policy of `cycle` and `run`; see `recrawl policies`, or module:Class(param=value)."),
    Setting("budget", 0.1, "Visits per cycle: under 1 a share of the pages, else a number.", least=1e-9),
    Setting("every", "24h", "Time from one cycle's start to the next in `run` and `serve`: 30m, 6h, 1d."),
    Setting(
        "quiet_hours", "", "Hours in which `run` and `serve` start no cycle: 22:00-06:00, in UTC or a zone after it."
    ),
    Setting("weekdays", [], "Days on which `run` and `serve` start cycles: mon,tue,...; none is every day."),
    Setting(
        "importance",
        "even",
        "Page weights: even, pagerank, sitemap (priorities), file:PATH (URL,weight) or clicks:PATH (URLs or a log).",
    ),
    Setting(
        "cost",
        "visit",
        "Cost of a visit: visit (all equal), or bytes (by size, less where a 304 is likely).",
        choices=tuple(COSTS),
    ),
    Setting("indexnow_keys", [], "Keys for IndexNow notifications to `serve`; without one, none are accepted."),
    Setting(
        "private_targets",
        [],
        "Servers with private addresses that alerts, sinks and WebSub requests may go to, as http://10.0.0.5:8080.",
    ),
    Setting(
        "dashboard",
        "",
        "Address of the dashboard, for links in alerts: https://watch.example.org. Default: that of the service.",
    ),
    Setting("bytes", "0", "Most bytes received per cycle, such as 200MB or 1.5GB; 0 is no limit."),
    Setting(
        "site_share",
        "auto",
        "What one site may take of a cycle: auto (others keep a fair share, by pages or importance), equal (the same "
        "share for all), or the largest share of the visits and bytes; 1 is no limit.",
    ),
    Setting(
        "reserve_new", 0.0, "Share of the visits reserved for pages never downloaded; 0 leaves it to the policy.", 0, 1
    ),
    Setting("reserve_pushed", 0.0, "Share of the visits reserved for pages announced by IndexNow or WebSub.", 0, 1),
    Setting("anchors", [], "Anchor pages set by hand, one per site; see `recrawl anchor`."),
    Setting("seed", 1, "Random seed; the same seed gives the same choices.", most=2**31),
)

_CONTACT = re.compile(r"https?://(?:\S+\.\S+|localhost\S*)|(?:mailto:)?[^@\s]+@[^@\s]+\.[^@\s]+", re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}

_LARGEST = 1e15

_TABLE = {setting.name: setting for setting in SETTINGS}


def default_of(name: str) -> Any:
    """The default of a setting."""
    return _TABLE[name].default


@dataclass(frozen=True, slots=True)
class Seed:
    """A site or page that was added, with its rules."""

    # `recrawl.parameters.SiteRules` says what each rule means.
    url: str
    depth: int | None = None
    limit: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    allow_private: bool = False
    delay: float | None = None
    change: str = ""
    requisites: str = ""
    render: str = ""
    screenshots: str = ""
    every: str = ""


@dataclass(frozen=True, slots=True)
class Filter:
    """Noise on a site, or on all sites if `site` is empty (spec C8)."""

    site: str = ""
    selectors: tuple[str, ...] = ()
    """Elements that are removed before pages are compared."""
    patterns: tuple[str, ...] = ()
    """Text that is removed."""
    frame: tuple[str, ...] = ()
    """Elements that never count as content."""
    content: tuple[str, ...] = ()
    """Elements that always count as content."""


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert rule: an update that meets all conditions is sent to the target."""

    name: str
    target: str
    """`feed`, the URL of a webhook, or an Apprise URL."""
    site: str = ""
    path: str = ""
    """A pattern of URLs, as in a seed's `include`."""
    page: str = ""
    """URL of the only page."""
    tag: str = ""
    """Only pages with this tag, or of sites with it."""
    selector: str = ""
    """CSS selector of elements whose text must have changed."""
    ignore: str = ""
    """CSS selector of elements that do not count."""
    when: str = ""
    """Conditions on texts and numbers, joined by `;`: "price below 100; contains in stock"."""
    text: str = ""
    """Words in the added text, or a regular expression after `re:`."""
    divergence: float = 0.0
    significant: bool = False
    significance: float = 0.0
    """The least probability that a reader calls the change news."""
    change: str = ""
    """What counts as a change for this rule, as the setting `change`; if empty, what counts for the site."""
    outcomes: tuple[str, ...] = ()
    """changed, new, gone; all if empty."""
    secret: str = field(default="", metadata={"secret": True})
    """Key that signs the requests to a webhook."""
    digest: str = ""
    """Collect updates for this duration; send at once if empty."""
    hold: bool = False
    """Wait two visits, and send nothing if the page has reverted."""
    quiet: str = ""
    """Hours in which nothing is sent: 22:00-07:00, UTC unless a time zone follows."""
    subject: str = ""
    """Template of the subject; if empty, it says what changed."""
    message: str = ""
    """Template of the text of each update."""


@dataclass(frozen=True, slots=True)
class SinkRule:
    """Another system that gets every change."""

    name: str
    kind: str
    """opensearch, webhook, postgres, markdown or chunks."""
    target: str
    """A URL, or a folder or file within the repository's."""
    site: str = ""
    """Only changes of this site; all if empty."""
    secret: str = ""
    """Refers to a token or password: ${NAME} or ${file:PATH}."""
    max_body: str = ""
    """A change whose body is larger, as 1MB, is sent without its text; 0 is no limit, empty that of the kind."""


@dataclass(frozen=True, slots=True)
class Share:
    """Limits of a site's visits per cycle: under 1 a share of the budget, else a number; 0 is no limit."""

    site: str
    at_least: float = 0.0
    at_most: float = 0.0


@dataclass(frozen=True, slots=True)
class Keep:
    """What `thin` keeps of the pages of a site or with a tag, instead of what the settings of the same names say."""

    site: str = ""
    tag: str = ""
    keep: str = ""
    """Empty where the setting holds."""
    keep_frame: str = ""
    keep_screenshots: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """A repository's settings."""

    values: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[Seed, ...] = ()
    filters: tuple[Filter, ...] = ()
    alerts: tuple[Alert, ...] = ()
    shares: tuple[Share, ...] = ()
    sinks: tuple[SinkRule, ...] = ()
    access: tuple[AccessRule, ...] = ()
    keeps: tuple[Keep, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name, _TABLE[name].default)


_PARTS: dict[str, type[Any]] = {
    "seed": Seed,
    "filter": Filter,
    "alert": Alert,
    "share": Share,
    "sink": SinkRule,
    "access": AccessRule,
    "keep": Keep,
}
"""The kind of the rows of each part but [settings]."""

TEMPLATE = """\
# Settings of this recrawl repository. 'recrawl config' lists all settings with their defaults.

[settings]
# contact = "https://example.org/about-our-crawler"
# delay = 1.0
"""


def load(path: Path) -> Settings:
    """Read a recrawl.toml; `UsageError` names what is wrong in it."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from error
    for part in raw:
        if part not in ("settings", *_PARTS):
            raise UnknownName(f"part of {path.name}", part, ("settings", *_PARTS))
    said = raw.get("settings", {})
    if not isinstance(said, dict):
        raise UsageError(f"'settings' in {path.name} must be a table; write [settings] above its lines")
    return Settings(
        {name: checked(name, value, stored=True) for name, value in said.items()},
        *(_rows(kind, raw.get(part, []), f"[[{part}]] in {path.name}") for part, kind in _PARTS.items()),
    )


def checked(name: str, value: Any, *, stored: bool = False) -> Any:
    """The value, if the setting exists and the value has its type and range."""
    if name not in _TABLE:
        raise UnknownName("setting", name, _TABLE)
    setting = _TABLE[name]
    default = setting.default
    if name == "site_share" and isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{value:g}"
    if isinstance(default, bool) != isinstance(value, bool):
        fits = False
    elif isinstance(default, (int, float)):
        fits = isinstance(value, (int, float) if isinstance(default, float) else int)
    elif isinstance(default, list):
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
    else:
        fits = isinstance(value, str)
    if not fits:
        raise UsageError(f"invalid value {value!r} of the setting '{name}'; expected a value such as {default!r}")
    if not isinstance(value, bool) and isinstance(value, (int, float)) and not setting.least <= value <= setting.most:
        raise UsageError(f"invalid value {value!r} of the setting '{name}'; use {setting.least:g} to {setting.most:g}")
    if not (stored and name in ("change", "fetcher")):  # a plug-in that is gone must not stop who only reads
        _check_meaning(name, value)
    return float(value) if isinstance(default, float) else value


def _check_meaning(name: str, value: Any) -> None:
    """Raise `UsageError` for a value of the right type that the setting does not understand."""
    choices = _TABLE[name].choices
    if choices and value not in choices:
        raise UsageError(f"invalid value '{value}' of the setting '{name}'; use {', '.join(choices)}")
    if name == "site_share":
        from recrawl.choose.budget.fair import site_share  # lazy: loads the change rates

        site_share(value)
    readers: dict[str, Callable[[Any], object]] = {
        "quiet_hours": quiet_hours,
        "weekdays": weekday_numbers,
        "importance": kind_of,
        **dict.fromkeys(("bytes", "requisite_bytes", "screenshot_bytes", "disk"), size),
        **dict.fromkeys(("keep", "keep_frame", "keep_screenshots"), keep_rule),
    }
    if name in readers:
        readers[name](value)
    if name == "change" and not value.startswith(FILE_PREFIXES):
        parse_level(value)
    if name == "fetcher" and value not in (known := ["http", *(plugins.names("fetchers") if value != "http" else ())]):
        raise UnknownName("fetcher", value, known)
    if name == "every" and duration(value) < 1:
        raise UsageError(f"invalid value '{value}' of the setting 'every'; use 1s or more, such as 30m, 6h or 1d")
    if name == "contact" and not value.isprintable():
        raise UsageError("the setting 'contact' is sent in a header; remove line breaks and control characters")
    if name == "contact" and value and not _CONTACT.search(value):
        raise UsageError(f"invalid value '{value}' of the setting 'contact'; use a URL or an e-mail address")


def requisite_level(name: str) -> RequisiteLevel:
    """Which page requisites are kept."""
    return RequisiteLevel[check_choice("requisites", name).upper()]


def check_choice(name: str, value: str) -> str:
    """The value of a rule that has the choices of the setting of the same name."""
    if value not in _TABLE[name].choices:
        raise UsageError(f"invalid value '{value}' of '{name}'; use {', '.join(_TABLE[name].choices)}")
    return value


def size(text: str) -> float:
    """Bytes as people write them.

    >>> size("200MB"), size("1.5 GB"), size("4096"), size("0")
    (200000000.0, 1500000000.0, 4096.0, 0.0)
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"invalid number of bytes '{text}'; use 500kB, 200MB, 1.5GB, or 0 for no limit")
    return float(match[1]) * _UNITS[match[2].lower()]


def parse_value(name: str, text: str) -> Any:
    """A setting's value from its text on the command line; lists are written a,b,c."""
    if name not in _TABLE:
        raise UnknownName("setting", name, _TABLE)
    default = _TABLE[name].default
    if isinstance(default, bool):
        words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        if text.lower() not in words:
            raise UsageError(f"invalid value '{text}' of the setting '{name}'; use true or false")
        return words[text.lower()]
    if isinstance(default, list):
        return checked(name, [part.strip() for part in text.split(",") if part.strip()])
    if isinstance(default, str):
        return checked(name, text)
    try:
        return checked(name, type(default)(text))
    except ValueError as error:
        raise UsageError(
            f"invalid value '{text}' of the setting '{name}'; expected a value such as {default!r}"
        ) from error


def changing(path: Path) -> AbstractContextManager[None]:
    """Hold this from reading the file to writing what follows from it: so no change of others is lost.

    The functions that write hold it for themselves.
    """
    return locked(path)


def write_value(path: Path, name: str, value: Any) -> None:
    """Change a setting in the file; comments and order stay."""
    write_values(path, {name: value})


def write_values(path: Path, values: Mapping[str, Any]) -> None:
    """Change several settings at once: all of them or none."""
    import tomlkit  # lazy: only commands that change settings need it

    with _document(path) as document:
        if values and "settings" not in document:
            document["settings"] = tomlkit.table()
        for name, value in values.items():
            if document["settings"].get(name) != value:
                document["settings"][name] = value


def write_seeds(path: Path, seeds: tuple[Seed, ...]) -> None:
    """Replace the seeds in the file."""
    _write_rows(path, "seed", seeds)


def write_filters(path: Path, filters: tuple[Filter, ...]) -> None:
    """Replace the noise filters in the file."""
    _write_rows(path, "filter", filters)


def write_alerts(path: Path, alerts: tuple[Alert, ...]) -> None:
    """Replace the alert rules in the file."""
    _write_rows(path, "alert", alerts)


def write_sinks(path: Path, sinks: tuple[SinkRule, ...]) -> None:
    """Replace the sinks in the file."""
    _write_rows(path, "sink", sinks)


def write_access(path: Path, rules: tuple[AccessRule, ...]) -> None:
    """Replace the access rules in the file."""
    _write_rows(path, "access", rules)


def _write_rows(path: Path, part: str, rows: Sequence[Any]) -> None:
    """Make these the rows of a part. What does not change keeps its lines: comments, order and way of writing."""
    import tomlkit  # lazy: only commands that change settings need it

    with _document(path) as document:
        kind = _PARTS[part]
        where = f"[[{part}]] in {path.name}"
        before = _rows(kind, document.unwrap().get(part, []), where)
        if before == tuple(rows):
            return
        places = _places(before, rows)
        tables = document.get(part)
        if isinstance(tables, tomlkit.items.AoT) and places == sorted(places):
            for row, place in zip(rows, places, strict=True):
                if place < len(before):
                    _change_row(tables[place], before[place], row)
                else:
                    tables.append(_change_row(tomlkit.table(), None, row))
            for place in sorted(set(range(len(before))) - set(places), reverse=True):
                del tables[place]
            if rows and _rows(kind, tomllib.loads(tomlkit.dumps(document)).get(part, []), where) == tuple(rows):
                return
        document.pop(part, None)
        if rows:
            document[part] = tomlkit.aot()
            for row in rows:
                document[part].append(_change_row(tomlkit.table(), None, row))


def _places(before: Sequence[Any], rows: Sequence[Any]) -> list[int]:
    """The row of before that each row was; numbers from the end on for new ones. The first entry names a row."""
    name = fields(rows[0])[0].name if rows else ""
    free = dict(enumerate(before))
    new = iter(range(len(before), len(before) + len(rows)))
    same = {}
    for number, row in enumerate(rows):
        found = next((place for place, old in free.items() if old == row), None)
        if found is not None:
            same[number] = found
            del free[found]
    for number, row in enumerate(rows):
        if number not in same:
            found = next((at for at, old in free.items() if getattr(old, name) == getattr(row, name)), None)
            same[number] = next(new) if found is None else found
            free.pop(same[number], None)
    return [same[number] for number in range(len(rows))]


def _change_row(table: Any, old: Any, row: Any) -> Any:
    """Write those entries of a row to its table that differ from the old row, or, without one, from the defaults."""
    for item in fields(row):
        value = getattr(row, item.name)
        if value == (item.default if old is None else getattr(old, item.name)):
            continue
        if value == item.default:
            table.remove(item.name)
        else:
            table[item.name] = list(value) if isinstance(value, tuple) else value
    return table


@contextmanager
def _document(path: Path) -> Iterator[TOMLDocument]:
    """The file as a document that is written at the end if it differs; nobody else changes it meanwhile."""
    import tomlkit  # lazy: only commands that change settings need it

    with changing(path):
        before = path.read_text(encoding="utf-8")
        document = tomlkit.parse(before)
        yield document
        after = tomlkit.dumps(document)
        if after != before:
            replace_file(path, after)


def _rows(kind: type[Any], rows: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(rows, list):
        raise UsageError(f"{where} must be a list of tables; write it with two brackets")
    entries = get_type_hints(kind) if rows else {}
    return tuple(_row(kind, entries, row, where) for row in rows)


def _fits(value: Any, hint: Any) -> bool:
    """
    >>> _fits(3, float | None), _fits(True, int | None), _fits(["/a"], tuple[str, ...]), _fits(-1, int)
    (True, False, True, False)
    """
    if get_origin(hint) is tuple:
        return isinstance(value, list) and all(isinstance(item, str) for item in value)
    kinds = get_args(hint) or (hint,)
    if isinstance(value, (bool, str)):
        return type(value) in kinds
    return isinstance(value, (int, float) if float in kinds else kinds) and 0 <= value < _LARGEST


def _row(kind: type[Any], entries: Mapping[str, Any], row: Any, where: str) -> Any:
    if not isinstance(row, dict):
        raise UsageError(f"{where} must be a table; write [[...]] above its lines")
    for name, value in row.items():
        if name not in entries:
            raise UnknownName(f"entry of {where}", name, entries)
        if not _fits(value, entries[name]):
            shown = "" if kind is AccessRule else f" {value!r}"  # it may be a secret
            raise UsageError(f"invalid value{shown} of '{name}' in {where}")
    for name in (item.name for item in fields(kind) if item.default is MISSING):
        if name not in row:
            raise UsageError(f"a {where} lacks '{name}'")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})


def period_of(values: Settings, every: str | float = "") -> float:
    """Seconds from one turn's start to the next; of the setting `every` if empty."""
    period = duration(every or values["every"]) if isinstance(every, str) else float(every)
    if period < 1:
        raise UsageError(f"invalid period of {period:g} seconds; use 1s or more")
    return period
