"""API: settings, seeds, noise filters and anchors. A change is applied completely or not at all."""

from __future__ import annotations

from typing import Any, Unpack

from recrawl import parameters as given
from recrawl.choose import make_policy
from recrawl.errors import UnknownName, UsageError
from recrawl.operations import operation
from recrawl.repository.explain.noise import noise_filter
from recrawl.repository.opening import options_of
from recrawl.repository.seeds import without_seeds
from recrawl.serve.api.answers import (
    AddedSeedAnswer,
    DescribedSettingAnswer,
    FilterPreviewAnswer,
    ListAnswer,
    NamedAnchorAnswer,
    RemovedSeedsAnswer,
    SettingAnswer,
    SiteAnchorAnswer,
    listing,
    made,
)
from recrawl.serve.context import Context
from recrawl.serve.jobs import filter_preview
from recrawl.serve.jobs.job_specs import check_inside, level_inside
from recrawl.settings import (
    SETTINGS,
    Seed,
    Settings,
    changing,
    checked,
    period_of,
    write_seeds,
    write_values,
)
from recrawl.times import duration


@operation(http="GET /settings", commands=("config",))
def settings(context: Context) -> ListAnswer[DescribedSettingAnswer]:
    """List the settings with their values."""
    values = context.settings()
    return listing(
        DescribedSettingAnswer,
        ({"name": row.name, "value": values[row.name], "default": row.default, "help": row.help} for row in SETTINGS),
    )


@operation(http="GET /settings/{name}", commands=("config",))
def setting(context: Context, *, name: given.SettingName) -> SettingAnswer:
    """Get a setting."""
    return made(SettingAnswer, {"name": name, "value": context.settings()[_known(name)]})


@operation(http="PUT /settings/{name}", commands=("config",), writes=True, name="set")
def set_setting(context: Context, *, name: given.SettingName, value: given.SettingValue) -> SettingAnswer:
    """Change a setting."""
    new: Any = checked(_known(name), value)
    if name == "change":
        new = level_inside(context.folder, new)
    if name == "policy" and new != context.settings()["policy"]:
        make_policy(new, imports=False)  # raises UsageError for an invalid policy
    if name == "importance":
        check_inside(context.folder, new)
    with changing(context.settings_file):
        before = context.settings()
        after = Settings({**before.values, name: new}, before.seeds, before.filters)
        options_of(after)
        period_of(after)
        write_values(context.settings_file, {name: new})
    context.scheduler.wake()
    return setting(context, name=name)


@operation(http="GET /seeds")
def seeds(context: Context) -> ListAnswer[Seed]:
    """List the seeds."""
    return ListAnswer(items=list(context.settings().seeds))


@operation(http="POST /seeds", commands=("add",), status=201, writes=True, name="add")
def add_seed(
    context: Context, *, url: given.SeedUrl, clear: given.Clear = (), **rules: Unpack[given.SiteRules]
) -> AddedSeedAnswer:
    """Add a site or page with its rules, or change those that are named."""
    with changing(context.settings_file), context.reading() as repository:
        (addition,) = repository.add(url, clear=clear, **rules)
    context.scheduler.wake()
    return made(AddedSeedAnswer, addition.as_dict())


@operation(http="DELETE /seeds", commands=("rm",), writes=True, name="rm")
def remove_seed(context: Context, *, url: given.SeedUrl) -> RemovedSeedsAnswer:
    """Remove a site or page: the next cycle drops its pages and keeps their versions."""
    with changing(context.settings_file):
        after, removed = without_seeds(context.settings(), [url])
        write_seeds(context.settings_file, after.seeds)
    context.scheduler.wake()
    return RemovedSeedsAnswer(removed=sorted(removed))


@operation(http="POST /filters/preview")
def preview_filter(context: Context, **noise: Unpack[given.NoiseFilter]) -> FilterPreviewAnswer:
    """Preview which of the recorded changes a filter would have hidden."""
    return made(FilterPreviewAnswer, filter_preview.preview_filter(context.folder, noise_filter(**noise)))


@operation(http="GET /anchors", commands=("anchor",))
def anchors(
    context: Context,
    *,
    site: given.Site = "",
    every: given.AnchorEvery = "6h",
    per_minute: given.PerMinute = 0.0,
) -> ListAnswer[SiteAnchorAnswer]:
    """Get the anchor of each site (the page that links its newest pages), and change by link distance from it."""
    period = duration(str(every))
    if period <= 0:
        raise UsageError("'every' must be longer than 0")
    with context.dedicated() as repository:
        found = repository.anchors(site, every=period, per_minute=per_minute)
        return listing(SiteAnchorAnswer, (row.as_dict() for row in found))


@operation(http="PUT /anchors", commands=("anchor",), writes=True)
def name_anchor(context: Context, *, url: given.AnchorUrl) -> NamedAnchorAnswer:
    """Set the anchor of a site."""
    with changing(context.settings_file), context.reading() as repository:
        return NamedAnchorAnswer(site=repository.set_anchor("", url), url=url)


@operation(http="DELETE /anchors", commands=("anchor",), writes=True)
def find_anchor(context: Context, *, site: given.AnchorSite) -> NamedAnchorAnswer:
    """Detect the anchor of a site automatically again."""
    with changing(context.settings_file), context.reading() as repository:
        return NamedAnchorAnswer(site=repository.set_anchor(site))


def _known(name: str) -> str:
    names = [row.name for row in SETTINGS]
    if name not in names:
        raise UnknownName("setting", name, names)
    return name
