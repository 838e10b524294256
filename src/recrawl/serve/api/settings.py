"""Settings, seeds and filters: all of a change or nothing of it; the next cycle takes it up."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

from recrawl.choose import make_policy
from recrawl.compare.noise.filters import Noise
from recrawl.compare.noise.proposals import propose
from recrawl.errors import NotKnown, UsageError
from recrawl.repository.anchors import keep_named, surveyed
from recrawl.repository.lookup import origin_of, page_of
from recrawl.repository.noise import restless, sources
from recrawl.repository.opening import options_of, seed_url
from recrawl.repository.seeds import with_seeds, without_seeds
from recrawl.repository.times import duration
from recrawl.repository.turns import period_of
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import Arguments, Operation, rows
from recrawl.serve.api.queries import SITE
from recrawl.serve.context import Context
from recrawl.serve.jobs.filter_preview import tried
from recrawl.serve.jobs.job_specs import within
from recrawl.settings import SETTINGS, Filter, Seed, Settings, checked, write_filters, write_seeds, write_values

_NAME = Field("name", "string", "A setting.", required=True, choices=tuple(setting.name for setting in SETTINGS))
WRITING = threading.Lock()
"""Held from reading the settings to writing them: two changes at a time must not undo one another."""


def settings(context: Context, _: Arguments) -> dict[str, Any]:
    """All settings with their values."""
    values = context.settings()
    return rows(
        [{"name": row.name, "value": values[row.name], "default": row.default, "help": row.help} for row in SETTINGS]
    )


def setting(context: Context, given: Arguments) -> dict[str, Any]:
    """One setting."""
    return {"name": given["name"], "value": context.settings()[given["name"]]}


def set_setting(context: Context, given: Arguments) -> dict[str, Any]:
    """Change one."""
    name, value = given["name"], checked(given["name"], given["value"])
    if name == "policy":
        make_policy(value)  # complains when it is none
    if name == "importance":
        within(context.folder, value)
    with WRITING:
        before = context.settings()
        after = Settings({**before.values, name: value}, before.seeds, before.filters)
        options_of(after)
        period_of(after)
        write_values(context.settings_file, {name: value})
    context.scheduler.wake()
    return setting(context, given)


def seeds(context: Context, _: Arguments) -> dict[str, Any]:
    """What is followed."""
    return rows([asdict(seed) for seed in context.settings().seeds])


def add_seed(context: Context, given: Arguments) -> dict[str, Any]:
    """Follow a site or page; what is said here is kept for it."""
    seed = Seed(
        url=seed_url(given["url"]),
        depth=given["depth"],
        limit=given["limit"],
        include=tuple(given["include"] or ()),
        exclude=tuple(given["exclude"] or ()),
        allow_private=given["allow_private"],
        delay=given["delay"],
    )
    with WRITING:
        after = with_seeds(context.settings(), [seed])
        write_seeds(context.settings_file, after.seeds)
    context.scheduler.wake()
    return asdict(seed)


def remove_seed(context: Context, given: Arguments) -> dict[str, Any]:
    """Follow it no longer: the next cycle drops its pages, and keeps their versions."""
    with WRITING:
        after, gone = without_seeds(context.settings(), [given["url"]])
        write_seeds(context.settings_file, after.seeds)
    context.scheduler.wake()
    return {"removed": sorted(gone)}


def filters(context: Context, _: Arguments) -> dict[str, Any]:
    """What does not count as change."""
    return rows([{"number": number, **asdict(row)} for number, row in enumerate(context.settings().filters)])


def add_filter(context: Context, given: Arguments) -> dict[str, Any]:
    """Add one."""
    added = _filter(given)
    with WRITING:
        before = context.settings().filters
        if added in before:
            raise UsageError("this filter is there already")
        write_filters(context.settings_file, (*before, added))
    return {"number": len(before), **asdict(added)}


def preview_filter(context: Context, given: Arguments) -> dict[str, Any]:
    """What a filter would have hidden of the changes that were seen."""
    return tried(context.folder, _filter(given))


def remove_filter(context: Context, given: Arguments) -> dict[str, Any]:
    """Take one away."""
    with WRITING:
        before, number = context.settings().filters, given["number"]
        if number >= len(before):
            raise NotKnown("there is no such filter")
        write_filters(context.settings_file, before[:number] + before[number + 1 :])
    return {"removed": asdict(before[number])}


def noise(context: Context, given: Arguments) -> dict[str, Any]:
    """Filters that suggest themselves, for a page or for those that change at every visit."""
    with context.apart() as repository:
        pages = [page_of(repository, given["url"])["id"]] if given["url"] else restless(repository)
        found = [sources(repository, page) for page in pages]
    return rows([{"url": url, **asdict(proposal)} for url, texts in found for proposal in propose(texts)])


def anchors(context: Context, given: Arguments) -> dict[str, Any]:
    """The page that links a site's newest pages, and how change falls off from it."""
    period = duration(given["every"])
    if period <= 0:
        raise UsageError("'every' is a time over zero")
    with context.apart() as repository:
        where = origin_of(repository, given["site"])
        return rows(surveyed(repository, context.settings(), context.clock(), period, given["per_minute"], where))


def name_anchor(context: Context, given: Arguments) -> dict[str, Any]:
    """Say by hand which page is the anchor of its site."""
    with WRITING, context.reading() as repository:
        return {"site": keep_named(repository, "", given["url"]), "url": given["url"]}


def find_anchor(context: Context, given: Arguments) -> dict[str, Any]:
    """Let the anchor of a site be found again."""
    with WRITING, context.reading() as repository:
        return {"site": keep_named(repository, given["site"], "")}


def _filter(given: Arguments) -> Filter:
    selectors, patterns = tuple(given["selectors"] or ()), tuple(given["patterns"] or ())
    if not selectors and not patterns:
        raise UsageError("name an element or a pattern")
    Noise(selectors, patterns).check()
    if given["site"]:
        seed_url(given["site"])
    return Filter(given["site"], selectors, patterns)


_FILTER = (
    Field("site", "string", "Its address; empty for all sites.", default=""),
    Field("selectors", "strings", "CSS selectors of what is left out."),
    Field("patterns", "strings", "Regular expressions of text that is left out."),
)
_URL = Field("url", "string", "The address.", required=True)
OPERATIONS = (
    Operation(
        method="GET",
        path="/settings",
        name="settings",
        verbs=("config",),
        summary="All settings.",
        answer=settings,
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/settings/{name}",
        name="setting",
        verbs=("config",),
        summary="One setting.",
        answer=setting,
        about={"name": _NAME},
    ),
    Operation(
        method="PUT",
        path="/settings/{name}",
        name="set",
        verbs=("config",),
        summary="Change a setting.",
        answer=set_setting,
        about={"name": _NAME},
        body=(Field("value", "any", "Its new value, of the kind of its default.", required=True),),
    ),
    Operation(method="GET", path="/seeds", name="seeds", summary="What is followed.", answer=seeds, returns="rows"),
    Operation(
        method="POST",
        path="/seeds",
        name="add",
        verbs=("add",),
        summary="Follow a site or page.",
        answer=add_seed,
        status=201,
        body=(
            _URL,
            Field("depth", "integer", "Links away from the start; 0 keeps only that page.", least=0, most=10**6),
            Field("limit", "integer", "Most pages to keep.", least=0, most=10**9),
            Field("include", "strings", "Keep only addresses like these (/docs/*, or re:...)."),
            Field("exclude", "strings", "Leave out addresses like these."),
            Field("allow_private", "boolean", "Allow private and loopback addresses.", default=False),
            Field("delay", "number", "Seconds between requests to its server.", least=0, most=86400),
        ),
    ),
    Operation(
        method="DELETE",
        path="/seeds",
        name="rm",
        verbs=("rm",),
        summary="Follow it no longer.",
        answer=remove_seed,
        query=(_URL,),
    ),
    Operation(method="GET", path="/filters", name="filters", summary="Noise filters.", answer=filters, returns="rows"),
    Operation(
        method="POST",
        path="/filters",
        name="add_filter",
        summary="Add a noise filter.",
        answer=add_filter,
        status=201,
        body=_FILTER,
    ),
    Operation(
        method="POST",
        path="/filters/preview",
        name="preview_filter",
        summary="What a filter would have hidden.",
        answer=preview_filter,
        body=_FILTER,
    ),
    Operation(
        method="DELETE",
        path="/filters/{number}",
        name="remove_filter",
        summary="Take a filter away.",
        answer=remove_filter,
    ),
    Operation(
        method="GET",
        path="/noise",
        name="noise",
        verbs=("noise",),
        summary="Filters that suggest themselves.",
        answer=noise,
        query=(Field("url", "string", "A page; those that always change if not given.", default=""),),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/anchors",
        name="anchors",
        summary="Anchors of sites, and change by depth.",
        answer=anchors,
        query=(
            SITE,
            Field("every", "string", "How often what is close is to be visited.", default="6h"),
            Field("per_minute", "number", "Most pages a minute; 0: the settings.", default=0.0, least=0, most=1e9),
        ),
        returns="rows",
        verbs=("anchor",),
    ),
    Operation(
        method="PUT",
        path="/anchors",
        name="name_anchor",
        summary="Name the anchor of a site by hand.",
        answer=name_anchor,
        body=(_URL,),
        verbs=("anchor",),
    ),
    Operation(
        method="DELETE",
        path="/anchors",
        name="find_anchor",
        summary="Let the anchor of a site be found again.",
        answer=find_anchor,
        query=(Field("site", "string", "The site.", required=True),),
        verbs=("anchor",),
    ),
)
