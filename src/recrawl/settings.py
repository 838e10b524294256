"""Settings: one table of name, default and help. recrawl.toml, the command line and the docs all read it.

A repository's `recrawl.toml` has five parts: `[settings]`, one `[[seed]]` for each site or page that was added, one
`[[filter]]` for each rule about noise, one `[[alert]]` for each thing that somebody wants to be told of, one
`[[share]]` for each site that gets its own part of the budget. Whatever is not said there has the default of the table
below.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import tomlkit

from recrawl.discover.urls import DEFAULT_TRACKING
from recrawl.errors import UnknownName, UsageError
from recrawl.learn.value.importance import COSTS, kind_of


class Setting(NamedTuple):
    """One row of the table."""

    name: str
    default: Any
    help: str
    least: float = 0.0
    most: float = 1e15


SETTINGS: tuple[Setting, ...] = (
    Setting("contact", "", "A URL or mail address for site owners; sent in the User-Agent."),
    Setting("delay", 1.0, "Seconds between two requests to one server (robots.txt may ask for more)."),
    Setting("max_delay", 60.0, "The longest Crawl-delay that is honoured, in seconds."),
    Setting("per_server", 1, "Requests to one server at a time.", least=1, most=1000),
    Setting("per_second", 0.0, "Requests per second over all servers; 0 is no limit."),
    Setting("order", "breadth", "How a crawl goes: breadth or depth first."),
    Setting("max_bytes", 10_000_000, "Largest page, in bytes after decompression.", least=1000),
    Setting("timeout", 60.0, "Longest download, in seconds.", least=0.05),
    Setting("connect_timeout", 10.0, "Longest wait for a connection, in seconds.", least=0.05),
    Setting("stall", 20.0, "Longest pause within a download, in seconds.", least=0.05),
    Setting("retries", 2, "How often a page is asked for again after 429 or 503.", most=100),
    Setting("patience", 120.0, "Longest wait in a run for a server that asks us to hold off, in seconds."),
    Setting("redirects", 5, "Redirects in a row that are followed.", most=100),
    Setting(
        "content_types",
        ["text/*", "application/xhtml+xml", "application/xml", "application/json", "application/*+xml"],
        "Content types that are kept.",
    ),
    Setting(
        "tracking",
        list(DEFAULT_TRACKING),
        "Query parameters that say nothing about the page and are dropped from addresses.",
    ),
    Setting(
        "max_queries", 5000, "Addresses that differ only in their query, for one path, before it is a trap.", least=1
    ),
    Setting("max_folder", 50_000, "Pages in one directory before it is a trap.", least=1),
    Setting("robots_hours", 24.0, "How long a robots.txt is believed, in hours."),
    Setting("sitemaps", True, "Whether sitemaps are read."),
    Setting("sitemap_hours", 24.0, "How often sitemaps are read, in hours."),
    Setting("feed_hours", 1.0, "How often feeds are read, in hours; 0 for never."),
    Setting("gone_hours", 48.0, "How long pages that vanish together must stay away to count as gone, in hours."),
    Setting("readers", 0, "Processes that parse pages; 0 is one less than there are cores.", most=1000),
    Setting("parse_seconds", 5.0, "Longest time that parsing a page may take.", least=0.1),
    Setting("index", True, "Whether pages can be searched."),
    Setting("warc_megabytes", 1000, "Size at which a new archive file is begun.", least=1),
    Setting("policy", "shock", "How `cycle` and `run` choose pages; see `recrawl policies`."),
    Setting("budget", 0.1, "Visits a cycle: a share of the pages when under 1, else a number.", least=1e-9),
    Setting("every", "24h", "From one cycle's start to the next, for `run` and `serve`: 30m, 6h, 1d."),
    Setting(
        "importance",
        "even",
        "How much pages matter: even, pagerank, file:PATH (lines of address,weight) or clicks:PATH (addresses).",
    ),
    Setting("cost", "visit", "What a visit costs: visit (all alike), or bytes (by size, less where a 304 is likely)."),
    Setting("indexnow_keys", [], "Keys with which IndexNow may tell `serve` of changes; none, and nobody may."),
    Setting("bytes", "0", "Bytes that a cycle may receive, as 200MB or 1.5GB; 0 is no limit."),
    Setting("site_share", 1.0, "Most of a cycle's visits and bytes that one site may take, as a share.", 1e-9, 1),
    Setting("reserve_new", 0.0, "Share of the visits for pages never downloaded; 0 leaves it to the policy.", 0, 1),
    Setting("reserve_pushed", 0.0, "Share of the visits kept for pages that were pushed.", 0, 1),
    Setting("anchors", [], "Pages named as anchors by hand, one a site; see `recrawl anchor`."),
    Setting("seed", 1, "The root of all chance: same seed, same choices.", most=2**31),
)

_SIZE = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)\s*([kmgt]?)b?", re.IGNORECASE)
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}

_TABLE = {setting.name: setting for setting in SETTINGS}


@dataclass(frozen=True, slots=True)
class Seed:
    """A site or page that was added."""

    url: str
    depth: int | None = None
    limit: int | None = None
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    allow_private: bool = False
    delay: float | None = None


@dataclass(frozen=True, slots=True)
class Filter:
    """What is noise on a site; on all sites when `site` is empty (spec C8)."""

    site: str = ""
    selectors: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Alert:
    """Who is told of what: all that is said of the update must be so."""

    name: str
    target: str
    """`feed`, the address of a webhook, or an Apprise address."""
    site: str = ""
    path: str = ""
    """Addresses like this, as in a seed's `include`."""
    selector: str = ""
    """The text of these elements must have changed."""
    text: str = ""
    """Words that were added, or a regular expression after `re:`."""
    divergence: float = 0.0
    significant: bool = False
    outcomes: tuple[str, ...] = ()
    """changed, new, gone; all if empty."""
    secret: str = ""
    """Signs what a webhook gets."""
    digest: str = ""
    """Collect for so long; at once if empty."""
    hold: bool = False
    """Wait two visits, and say nothing if the page is again as it was."""


@dataclass(frozen=True, slots=True)
class Share:
    """What a site gets of every cycle's visits: under 1 a share of the budget, else a number; 0 says nothing."""

    site: str
    at_least: float = 0.0
    at_most: float = 0.0


@dataclass(frozen=True, slots=True)
class Settings:
    """A repository's settings."""

    values: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[Seed, ...] = ()
    filters: tuple[Filter, ...] = ()
    alerts: tuple[Alert, ...] = ()
    shares: tuple[Share, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name, _TABLE[name].default)


_PARTS = ("settings", "seed", "filter", "alert", "share")

TEMPLATE = """\
# What recrawl keeps here, and how. 'recrawl config' lists all settings with their defaults.

[settings]
# contact = "https://example.org/about-our-crawler"
# delay = 1.0
"""


def load(path: Path) -> Settings:
    """Read a recrawl.toml; every mistake in it is named."""
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not valid TOML: {error}") from error
    for part in raw:
        if part not in _PARTS:
            raise UnknownName(f"part of {path.name} called", part, _PARTS)
    said = raw.get("settings", {})
    if not isinstance(said, dict):
        raise UsageError(f"'settings' in {path.name} must be a table: write [settings] above its lines")
    return Settings(
        {name: checked(name, value) for name, value in said.items()},
        _rows(Seed, raw.get("seed", []), f"[[seed]] in {path.name}"),
        _rows(Filter, raw.get("filter", []), f"[[filter]] in {path.name}"),
        _rows(Alert, raw.get("alert", []), f"[[alert]] in {path.name}"),
        _rows(Share, raw.get("share", []), f"[[share]] in {path.name}"),
    )


def checked(name: str, value: Any) -> Any:
    """The value, when the setting exists and the value is of its kind."""
    if name not in _TABLE:
        raise UnknownName("setting", name, _TABLE)
    setting = _TABLE[name]
    default = setting.default
    if isinstance(default, bool) != isinstance(value, bool):
        fits = False
    elif isinstance(default, (int, float)):
        fits = isinstance(value, (int, float) if isinstance(default, float) else int)
    elif isinstance(default, list):
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
    else:
        fits = isinstance(value, str)
    if not fits:
        raise UsageError(f"the setting '{name}' must be like {default!r}, not {value!r}")
    if not isinstance(value, bool) and isinstance(value, (int, float)) and not setting.least <= value <= setting.most:
        raise UsageError(f"the setting '{name}' must be from {setting.least:g} to {setting.most:g}, not {value!r}")
    if name == "order" and value not in ("breadth", "depth"):
        raise UsageError(f"the setting 'order' is breadth or depth, not '{value}'")
    if name == "importance":
        kind_of(value)
    if name == "cost" and value not in COSTS:
        raise UsageError(f"the setting 'cost' is {' or '.join(COSTS)}, not '{value}'")
    if name == "bytes":
        size(value)
    if name == "contact" and not value.isprintable():
        raise UsageError("the setting 'contact' goes into a header: it cannot hold line ends or other controls")
    return float(value) if isinstance(default, float) else value


def size(text: str) -> float:
    """Bytes, as people write them; nothing for 0.

    >>> size("200MB"), size("1.5 GB"), size("4096"), size("0")
    (200000000.0, 1500000000.0, 4096.0, 0.0)
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"'{text}' is no amount of bytes: write 500kB, 200MB, 1.5GB or 0 for no limit")
    return float(match[1]) * _UNITS[match[2].lower()]


def parse_value(name: str, text: str) -> Any:
    """A setting's value as it is written on the command line."""
    if name not in _TABLE:
        raise UnknownName("setting", name, _TABLE)
    default = _TABLE[name].default
    if isinstance(default, bool):
        words = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
        if text.lower() not in words:
            raise UsageError(f"the setting '{name}' is true or false, not '{text}'")
        return words[text.lower()]
    if isinstance(default, list):
        return [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(default, str):
        return checked(name, text)
    try:
        return checked(name, type(default)(text))
    except ValueError as error:
        raise UsageError(f"the setting '{name}' must be like {default!r}, not '{text}'") from error


def write_value(path: Path, name: str, value: Any) -> None:
    """Set a setting in the file, leaving comments and order as they are."""
    write_values(path, {name: value})


def write_values(path: Path, values: Mapping[str, Any]) -> None:
    """Set several settings at once: all of them or none."""
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    if "settings" not in document:
        document["settings"] = tomlkit.table()
    for name, value in values.items():
        document["settings"][name] = value
    _replace(path, tomlkit.dumps(document))


def write_seeds(path: Path, seeds: tuple[Seed, ...]) -> None:
    """Put these seeds in the file instead of those in it."""
    _write_rows(path, "seed", seeds)


def write_filters(path: Path, filters: tuple[Filter, ...]) -> None:
    """Put these noise filters in the file instead of those in it."""
    _write_rows(path, "filter", filters)


def write_alerts(path: Path, alerts: tuple[Alert, ...]) -> None:
    """Put these alerts in the file instead of those in it."""
    _write_rows(path, "alert", alerts)


def _write_rows(path: Path, part: str, rows: Sequence[Any]) -> None:
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    document.pop(part, None)
    if rows:
        tables = tomlkit.aot()
        for row in rows:
            table = tomlkit.table()
            for item in fields(row):
                value = getattr(row, item.name)
                if value != item.default:
                    table[item.name] = list(value) if isinstance(value, tuple) else value
            tables.append(table)
        document[part] = tables
    _replace(path, tomlkit.dumps(document))


def _replace(path: Path, text: str) -> None:
    """Write a file so that a crash leaves either the old one or the new one."""
    draft = path.with_suffix(".toml.new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _rows(kind: type[Any], rows: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(rows, list):
        raise UsageError(f"{where} must be a list of tables: write it with two brackets")
    return tuple(_row(kind, row, where) for row in rows)


_KINDS: dict[str, tuple[type, ...]] = {
    "url": (str,),
    "site": (str,),
    "depth": (int,),
    "limit": (int,),
    "delay": (int, float),
    "at_least": (int, float),
    "at_most": (int, float),
    "allow_private": (bool,),
    "divergence": (int, float),
    "significant": (bool,),
    "hold": (bool,),
    **dict.fromkeys(("name", "target", "path", "selector", "text", "secret", "digest"), (str,)),
}
"""What the entries of [[seed]], [[filter]], [[alert]] and [[share]] must be; all others are lists of text."""


def _row(kind: type[Any], row: Any, where: str) -> Any:
    if not isinstance(row, dict):
        raise UsageError(f"{where} must be a table: write [[...]] above its lines")
    names = {item.name for item in fields(kind)}
    for name, value in row.items():
        if name not in names:
            raise UnknownName(f"entry of {where} called", name, names)
        wanted = _KINDS.get(name)
        if wanted is None:
            fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
        else:
            fits = isinstance(value, wanted) and (bool in wanted or not isinstance(value, bool))
        if not fits or (isinstance(value, (int, float)) and not 0 <= value < 1e15):
            raise UsageError(f"'{name}' in {where} cannot be {value!r}")
    for name in (item.name for item in fields(kind) if item.default is MISSING):
        if name not in row:
            raise UsageError(f"a {where} has no {name}")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})
