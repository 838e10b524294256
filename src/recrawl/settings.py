"""Settings: one table of name, default and help. recrawl.toml, the command line and the docs all read it.

A repository's `recrawl.toml` has three parts: `[settings]`, one `[[seed]]` for each site or page that was added, one
`[[filter]]` for each rule about noise. Whatever is not said there has the default of the table below.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, NamedTuple

import tomlkit

from recrawl.errors import UnknownName, UsageError


class Setting(NamedTuple):
    """One row of the table."""

    name: str
    default: Any
    help: str


SETTINGS: tuple[Setting, ...] = (
    Setting("contact", "", "A URL or mail address for site owners; sent in the User-Agent."),
    Setting("delay", 1.0, "Seconds between two requests to one server (robots.txt may ask for more)."),
    Setting("max_delay", 60.0, "The longest Crawl-delay that is honoured, in seconds."),
    Setting("per_server", 1, "Requests to one server at a time."),
    Setting("per_second", 0.0, "Requests per second over all servers; 0 is no limit."),
    Setting("order", "breadth", "How a crawl goes: breadth or depth first."),
    Setting("max_bytes", 10_000_000, "Largest page, in bytes after decompression."),
    Setting("timeout", 60.0, "Longest download, in seconds."),
    Setting("connect_timeout", 10.0, "Longest wait for a connection, in seconds."),
    Setting("stall", 20.0, "Longest pause within a download, in seconds."),
    Setting("retries", 2, "How often a page is asked for again after 429 or 503."),
    Setting("patience", 120.0, "Longest wait in a run for a server that asks us to hold off, in seconds."),
    Setting("redirects", 5, "Redirects in a row that are followed."),
    Setting(
        "content_types",
        ["text/*", "application/xhtml+xml", "application/xml", "application/json", "application/*+xml"],
        "Content types that are kept.",
    ),
    Setting(
        "tracking",
        ["utm_*", "fbclid", "gclid", "dclid", "msclkid", "mc_cid", "mc_eid", "igshid", "yclid", "_ga", "_gl"],
        "Query parameters that say nothing about the page and are dropped from addresses.",
    ),
    Setting("max_queries", 5000, "Addresses that differ only in their query, for one path, before it is a trap."),
    Setting("max_folder", 50_000, "Pages in one directory before it is a trap."),
    Setting("robots_hours", 24.0, "How long a robots.txt is believed, in hours."),
    Setting("sitemaps", True, "Whether sitemaps are read."),
    Setting("sitemap_hours", 24.0, "How often sitemaps are read, in hours."),
    Setting("gone_hours", 48.0, "How long pages that vanish together must stay away to count as gone, in hours."),
    Setting("readers", 0, "Processes that parse pages; 0 is one less than there are cores."),
    Setting("parse_seconds", 5.0, "Longest time that parsing a page may take."),
    Setting("index", True, "Whether pages can be searched."),
    Setting("warc_megabytes", 1000, "Size at which a new archive file is begun."),
    Setting("policy", "round-robin", "How `cycle` and `run` choose pages; see `recrawl policies`."),
    Setting("budget", 0.1, "Visits a cycle: a share of the pages when under 1, else a number."),
    Setting("seed", 1, "The root of all chance: same seed, same choices."),
)

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
class Settings:
    """A repository's settings."""

    values: dict[str, Any] = field(default_factory=dict)
    seeds: tuple[Seed, ...] = ()
    filters: tuple[Filter, ...] = ()

    def __getitem__(self, name: str) -> Any:
        return self.values.get(name, _TABLE[name].default)


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
        if part not in ("settings", "seed", "filter"):
            raise UnknownName(f"part of {path.name} called", part, ("settings", "seed", "filter"))
    values = {name: checked(name, value) for name, value in raw.get("settings", {}).items()}
    return Settings(
        values,
        tuple(_row(Seed, row, f"[[seed]] in {path.name}") for row in raw.get("seed", [])),
        tuple(_row(Filter, row, f"[[filter]] in {path.name}") for row in raw.get("filter", [])),
    )


def checked(name: str, value: Any) -> Any:
    """The value, when the setting exists and the value is of its kind."""
    if name not in _TABLE:
        raise UnknownName("setting", name, _TABLE)
    default = _TABLE[name].default
    if isinstance(default, bool) != isinstance(value, bool):
        fits = False
    elif isinstance(default, float):
        fits = isinstance(value, (int, float)) and value >= 0
    elif isinstance(default, int):
        fits = isinstance(value, int) and value >= 0
    elif isinstance(default, list):
        fits = isinstance(value, list) and all(isinstance(item, str) for item in value)
    else:
        fits = isinstance(value, str)
    if not fits:
        raise UsageError(f"the setting '{name}' must be like {default!r}, not {value!r}")
    if name == "order" and value not in ("breadth", "depth"):
        raise UsageError(f"the setting 'order' is breadth or depth, not '{value}'")
    return float(value) if isinstance(default, float) and not isinstance(default, bool) else value


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
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    if "settings" not in document:
        document["settings"] = tomlkit.table()
    document["settings"][name] = value
    _replace(path, tomlkit.dumps(document))


def write_seeds(path: Path, seeds: tuple[Seed, ...]) -> None:
    """Put these seeds in the file instead of those in it."""
    document = tomlkit.parse(path.read_text(encoding="utf-8"))
    document.pop("seed", None)
    if seeds:
        rows = tomlkit.aot()
        for seed in seeds:
            table = tomlkit.table()
            for item in fields(seed):
                value = getattr(seed, item.name)
                if value != item.default:
                    table[item.name] = list(value) if isinstance(value, tuple) else value
            rows.append(table)
        document["seed"] = rows
    _replace(path, tomlkit.dumps(document))


def _replace(path: Path, text: str) -> None:
    """Write a file so that a crash leaves either the old one or the new one."""
    draft = path.with_suffix(".toml.new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def _row(kind: type[Any], row: dict[str, Any], where: str) -> Any:
    names = {item.name for item in fields(kind)}
    for name in row:
        if name not in names:
            raise UnknownName(f"entry of {where} called", name, names)
    if kind is Seed and not isinstance(row.get("url"), str):
        raise UsageError(f"a {where} has no url")
    return kind(**{name: tuple(value) if isinstance(value, list) else value for name, value in row.items()})
