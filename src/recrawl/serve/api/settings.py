"""API: settings, seeds, noise filters and anchors. A change is applied completely or not at all."""

from __future__ import annotations

import threading
from dataclasses import asdict
from typing import Any

from recrawl.choose import make_policy
from recrawl.errors import NotKnown, UsageError
from recrawl.repository.explain.noise import check_filter
from recrawl.repository.opening import options_of
from recrawl.repository.seed_rules import seed_url
from recrawl.repository.seeds import without_seeds
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import Arguments, Operation, rows
from recrawl.serve.api.queries import SITE
from recrawl.serve.context import Context
from recrawl.serve.jobs import filter_preview
from recrawl.serve.jobs.job_specs import check_inside
from recrawl.settings import SETTINGS, Filter, Settings, checked, period_of, write_filters, write_seeds, write_values
from recrawl.times import duration

_NAME = Field(
    "name", "string", "Name of the setting.", required=True, choices=tuple(setting.name for setting in SETTINGS)
)
WRITING = threading.Lock()
"""Held from reading the settings to writing them, so that concurrent changes do not overwrite each other."""


def settings(context: Context, _: Arguments) -> dict[str, Any]:
    """List all settings with their values."""
    values = context.settings()
    return rows(
        [{"name": row.name, "value": values[row.name], "default": row.default, "help": row.help} for row in SETTINGS]
    )


def setting(context: Context, given: Arguments) -> dict[str, Any]:
    """Return one setting."""
    return {"name": given["name"], "value": context.settings()[given["name"]]}


def set_setting(context: Context, given: Arguments) -> dict[str, Any]:
    """Change a setting."""
    name, value = given["name"], checked(given["name"], given["value"])
    if name == "policy" and value != context.settings()["policy"]:
        make_policy(value, imports=False)  # raises UsageError for an invalid policy
    if name == "importance":
        check_inside(context.folder, value)
    with WRITING:
        before = context.settings()
        after = Settings({**before.values, name: value}, before.seeds, before.filters)
        options_of(after)
        period_of(after)
        write_values(context.settings_file, {name: value})
    context.scheduler.wake()
    return setting(context, given)


def seeds(context: Context, _: Arguments) -> dict[str, Any]:
    """List the seeds."""
    return rows([asdict(seed) for seed in context.settings().seeds])


def add_seed(context: Context, given: Arguments) -> dict[str, Any]:
    """Add a site or page with its rules, or change those that are named; `notes` says what changed."""
    options = {name: value for name, value in given.items() if name != "url" and value is not None}
    with WRITING, context.reading() as repository:
        (addition,) = repository.add(given["url"], **options)
    context.scheduler.wake()
    return addition.as_dict()


def remove_seed(context: Context, given: Arguments) -> dict[str, Any]:
    """Remove a seed: the next cycle drops its pages and keeps their versions."""
    with WRITING:
        after, removed = without_seeds(context.settings(), [given["url"]])
        write_seeds(context.settings_file, after.seeds)
    context.scheduler.wake()
    return {"removed": sorted(removed)}


def filters(context: Context, _: Arguments) -> dict[str, Any]:
    """List the noise filters."""
    return rows([{"number": number, **asdict(row)} for number, row in enumerate(context.settings().filters)])


def add_filter(context: Context, given: Arguments) -> dict[str, Any]:
    """Add a noise filter."""
    added = _filter(given)
    with WRITING:
        before = context.settings().filters
        if added in before:
            raise UsageError("this filter already exists")
        write_filters(context.settings_file, (*before, added))
    return {"number": len(before), **asdict(added)}


def preview_filter(context: Context, given: Arguments) -> dict[str, Any]:
    """Return which of the recorded changes a filter would have hidden."""
    return filter_preview.preview_filter(context.folder, _filter(given))


def remove_filter(context: Context, given: Arguments) -> dict[str, Any]:
    """Delete a noise filter."""
    with WRITING:
        before, number = context.settings().filters, given["number"]
        if number >= len(before):
            raise NotKnown(f"there is no filter {number}")
        write_filters(context.settings_file, before[:number] + before[number + 1 :])
    return {"removed": asdict(before[number])}


def noise(context: Context, given: Arguments) -> dict[str, Any]:
    """Suggest noise filters, for a page or for the pages that change at every visit."""
    with context.dedicated() as repository:
        return rows([proposal.as_dict() for proposal in repository.noise_proposals(given["url"])])


def anchors(context: Context, given: Arguments) -> dict[str, Any]:
    """Return the anchor of each site (the page that links its newest pages), and change by link distance from it."""
    period = duration(given["every"])
    if period <= 0:
        raise UsageError("'every' must be longer than 0")
    with context.dedicated() as repository:
        found = repository.anchors(given["site"], every=period, per_minute=given["per_minute"])
        return rows([site.as_dict() for site in found])


def name_anchor(context: Context, given: Arguments) -> dict[str, Any]:
    """Set the anchor of a site."""
    with WRITING, context.reading() as repository:
        return {"site": repository.set_anchor("", given["url"]), "url": given["url"]}


def find_anchor(context: Context, given: Arguments) -> dict[str, Any]:
    """Return to automatic detection of a site's anchor."""
    with WRITING, context.reading() as repository:
        return {"site": repository.set_anchor(given["site"])}


def _filter(given: Arguments) -> Filter:
    selectors, patterns = tuple(given["selectors"] or ()), tuple(given["patterns"] or ())
    if not selectors and not patterns:
        raise UsageError("give at least one selector or pattern")
    check_filter(selectors, patterns)
    if given["site"]:
        seed_url(given["site"])
    return Filter(given["site"], selectors, patterns)


_FILTER = (
    Field("site", "string", "URL of the site; empty: all sites.", default=""),
    Field("selectors", "strings", "CSS selectors of elements to ignore."),
    Field("patterns", "strings", "Regular expressions of text to ignore."),
)
_URL = Field("url", "string", "URL of the site or page.", required=True)
OPERATIONS = (
    Operation(
        method="GET",
        path="/settings",
        name="settings",
        verbs=("config",),
        summary="List the settings.",
        answer=settings,
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/settings/{name}",
        name="setting",
        verbs=("config",),
        summary="Get a setting.",
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
        body=(Field("value", "any", "New value, of the type of the default.", required=True),),
    ),
    Operation(method="GET", path="/seeds", name="seeds", summary="List the seeds.", answer=seeds, returns="rows"),
    Operation(
        method="POST",
        path="/seeds",
        name="add",
        verbs=("add",),
        summary="Add a site or page, or change its rules.",
        answer=add_seed,
        status=201,
        body=(
            _URL,
            Field("depth", "integer", "Link depth from the start page; 0: only that page.", least=0, most=10**6),
            Field("limit", "integer", "Page limit of the site.", least=0, most=10**9),
            Field("include", "strings", "Only URLs that match one of these patterns (/docs/*, or re:...)."),
            Field("exclude", "strings", "No URLs that match one of these patterns."),
            Field("allow_private", "boolean", "Allow private and loopback IP addresses."),
            Field("delay", "number", "Seconds between requests to the server.", least=0, most=86400),
            Field("every", "string", "Visit its pages at least this often: 30m, 6h, 1d."),
            Field("change", "string", "What counts as a change there, as the setting `change`."),
            Field("requisites", "string", "What to keep besides the pages, as the setting `requisites`."),
            Field("render", "string", "Whether a browser renders its pages, as the setting `render`."),
            Field("screenshots", "string", "When screenshots are taken, as the setting `screenshots`."),
            Field("clear", "strings", "Rules to remove, by name: limit, depth, include and so on."),
        ),
    ),
    Operation(
        method="DELETE",
        path="/seeds",
        name="rm",
        verbs=("rm",),
        summary="Remove a site or page.",
        answer=remove_seed,
        query=(_URL,),
    ),
    Operation(
        method="GET", path="/filters", name="filters", summary="List the noise filters.", answer=filters, returns="rows"
    ),
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
        summary="Preview which changes a filter would have hidden.",
        answer=preview_filter,
        body=_FILTER,
    ),
    Operation(
        method="DELETE",
        path="/filters/{number}",
        name="remove_filter",
        summary="Delete a noise filter.",
        answer=remove_filter,
    ),
    Operation(
        method="GET",
        path="/noise",
        name="noise",
        verbs=("noise",),
        summary="Suggest noise filters.",
        answer=noise,
        query=(Field("url", "string", "Only this page; empty: the pages that change at every visit.", default=""),),
        returns="rows",
    ),
    Operation(
        method="GET",
        path="/anchors",
        name="anchors",
        summary="List the anchors of sites, and change by link distance.",
        answer=anchors,
        query=(
            SITE,
            Field("every", "string", "Visit interval of pages close to the anchor.", default="6h"),
            Field("per_minute", "number", "Page limit per minute; 0: the settings.", default=0.0, least=0, most=1e9),
        ),
        returns="rows",
        verbs=("anchor",),
    ),
    Operation(
        method="PUT",
        path="/anchors",
        name="name_anchor",
        summary="Set the anchor of a site.",
        answer=name_anchor,
        body=(_URL,),
        verbs=("anchor",),
    ),
    Operation(
        method="DELETE",
        path="/anchors",
        name="find_anchor",
        summary="Detect the anchor of a site automatically again.",
        answer=find_anchor,
        query=(Field("site", "string", "URL of the site.", required=True),),
        verbs=("anchor",),
    ),
)
