"""Commands that create a repository and say what it tracks: init, add, rm, tag, config, access."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Unpack

import typer

from recrawl.cli.declared import example
from recrawl.cli.terminal import completions
from recrawl.cli.terminal.output import AsJson, as_json, count, repository, say, table
from recrawl.errors import UnknownName, UsageError
from recrawl.parameters import Clear, SiteRules, StartUrl

_ALL = "all"
Site = Annotated[
    str, typer.Argument(metavar="[SITE]", help="A site, or 'all' for all others. Default: list the rules.")
]
Entries = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ENTRY=VALUE]...", help="Entries to set; repeat headers, cookies and login_fields."),
]
AccessClear = Annotated[list[str] | None, typer.Option(metavar="ENTRY", help="Remove this entry; repeatable.")]


@example("Example: recrawl init news")
def init(
    ctx: typer.Context,
    folder: Annotated[Path | None, typer.Argument(help="Folder of the repository. Default: the current one.")] = None,
    store: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Keep the facts in PostgreSQL: 'postgresql://user:${NAME}@host/database?schema=NAME'."
        ),
    ] = "",
    archive: Annotated[
        str,
        typer.Option(
            metavar="URL", help="Keep archive files and models in an object store: 's3://bucket/prefix?endpoint=URL'."
        ),
    ] = "",
    shards: Annotated[
        int,
        typer.Option(
            metavar="NUMBER", help="Divide the repository into shards for many machines; needs --store and --archive."
        ),
    ] = 0,
    json: AsJson = False,
) -> None:
    """Create a repository: a folder with settings, database, archive and search index.

    With --store, sites, pages, visits and versions are in a schema of a PostgreSQL database; archive, index and models
    stay in the folder. The password is a reference: ${NAME} for an environment variable, ${file:PATH} for a file that
    only you can read.

    With --archive, finished archive files and models are in a bucket of an S3 API; the folder has a cache of them. The
    keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.

    With --shards, the repository is a cluster: its sites are divided into so many shards, which the workers of several
    machines crawl and refresh with one budget. The number never changes: take four to eight times as many as machines.
    """
    from recrawl.repository.repository import Repository  # lazy: the help does without

    where = folder or ctx.obj or Path()
    if shards:
        from recrawl.cluster.layout import create_cluster  # lazy: needs the extra `postgres`

        create_cluster(where, store=store, archive=archive, shards=shards)
    else:
        Repository.create(where, store=store, archive=archive).close()
    if json:
        as_json({"folder": str(where)} | ({"shards": shards} if shards else {}))
        return
    say(f"created a {'cluster' if shards else 'repository'} in {where}")
    say("next: recrawl add https://example.org, then recrawl crawl")


@example("Example: recrawl add https://example.org/docs/ --include '/docs/*' --limit 500")
def add(
    ctx: typer.Context, *urls: StartUrl, clear: Clear = (), json: AsJson = False, **rules: Unpack[SiteRules]
) -> None:
    """Add sites or pages to track, or change their rules.

    The options are stored with the URL; add it again to change those that you name. A page never loosens the rules of
    its site: add the site again to change them.
    """
    with repository(ctx) as repo:
        added = repo.add(*urls, clear=clear or (), **rules)
    if json:
        as_json([addition.as_dict() for addition in added])
        return
    for addition in added:
        say(str(addition))


@example("Example: recrawl rm https://example.org")
def rm(
    ctx: typer.Context,
    urls: Annotated[list[str], typer.Argument(metavar="URL...", help="URL as it was added.")],
    json: AsJson = False,
) -> None:
    """Stop tracking a site or page. Its versions stay in the archive; it is no longer visited or searchable."""
    with repository(ctx) as repo:
        removal = repo.remove(*urls)
    if json:
        as_json(removal.as_dict())
    else:
        say(f"{count(removal.pages, 'page')} no longer tracked")


@example("Example: recrawl tag prices https://example.org/shop example.net")
def tag(
    ctx: typer.Context,
    name: Annotated[str, typer.Argument(metavar="[TAG]", help="The tag; without one, list all tags.")] = "",
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[URL|SITE]...", help="A page, or a site as example.org: all of its pages."),
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the tag from them.")] = False,
    json: AsJson = False,
) -> None:
    """Put a tag on pages or sites, or list the tags. 'recrawl changes --tag' lists the changes of tagged pages."""
    if name and not targets:
        raise UsageError(f"name the pages or sites to tag '{name}': recrawl tag {name} URL")
    with repository(ctx) as repo:
        if name:
            (repo.untag if remove else repo.tag)(name, *(targets or ()))
        tags = [{"tag": tag, "sites": sites, "pages": pages} for tag, sites, pages in repo.tags()]
    if json:
        as_json(tags)
    elif name:
        say(f"{'removed' if remove else 'tagged'} {count(len(targets or ()), 'target')}: {name}")
    else:
        table(tags, {"tag": "tag", "sites": ">sites", "pages": ">pages"})


@example("Example: recrawl config delay 2.5")
def config(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(autocompletion=completions.settings, help="A setting. Default: list all of them.")
    ] = None,
    value: Annotated[str | None, typer.Argument(help="Its new value; write lists as a,b,c.")] = None,
    json: AsJson = False,
) -> None:
    """List, show or change settings. They are stored in recrawl.toml, which you can also edit."""
    from recrawl.settings import SETTINGS, parse_value  # lazy: the help does without

    names = [setting.name for setting in SETTINGS]
    if name is not None and name not in names:
        raise UnknownName("setting", name, names)
    with repository(ctx) as repo:
        if name is not None and value is not None:
            repo.configure(**{name: parse_value(name, value)})
        values = repo.settings
    rows = [
        {"name": setting.name, "value": values[setting.name], "help": setting.help}
        for setting in SETTINGS
        if name in (None, setting.name)
    ]
    if json:
        as_json(rows)
    elif name is not None:
        say(_config_text(rows[0]["value"]))
    else:
        table(
            ({**row, "value": _config_text(row["value"])} for row in rows),
            {"name": "name", "value": "value", "help": "meaning"},
        )


def _config_text(value: object) -> str:
    """A value in the form that `recrawl config` accepts."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return ",".join(value) if isinstance(value, list) else str(value)


@example("Example: recrawl access https://example.org user=reader 'password=${EXAMPLE_PASSWORD}'")
def access(
    ctx: typer.Context,
    site: Site = "",
    entries: Entries = None,
    clear: AccessClear = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the rule of the site.")] = False,
    attempt: Annotated[bool, typer.Option("--try", help="Request SITE (any URL of it) with its rule.")] = False,
    json: AsJson = False,
) -> None:
    """List, set or try how the crawler gets in to sites: headers, cookies, passwords, form logins, proxies.

    The entries are listed in the settings reference. Secrets are references: ${NAME} for an environment variable,
    ${file:PATH} for a file that only you can read. They are looked up when a run begins, and are never stored, logged
    or exported.
    """
    if not site and (clear or remove or attempt):
        raise UsageError("name the site: recrawl access https://example.org ..., or 'all' for all others")
    with repository(ctx) as repo:
        where = "" if site == _ALL else site
        if attempt:
            _show(repo.try_access(site), json=json)
            return
        if remove:
            repo.remove_access(where)
        elif entries or clear:
            repo.set_access(where, clear=clear or (), **_parsed(entries or []))
        rules = [{name: value for name, value in asdict(rule).items() if value} for rule in repo.settings.access]
    _print(rules, site if entries or clear or remove else "", json=json)


def _parsed(entries: list[str]) -> dict[str, Any]:
    """Entries by name, as text; all values of an entry that is named several times."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        name, sign, value = entry.partition("=")
        if not sign:
            raise UsageError("write entries as ENTRY=VALUE, such as proxy=http://127.0.0.1:3128")
        found.setdefault(name.strip(), []).append(value)
    return found


def _show(found: Any, *, json: bool) -> None:
    if json:
        as_json(found.as_dict())
    else:
        leads = f", redirects to {found.location}" if found.location else f", {count(found.bytes, 'byte')}"
        say(f"{found.url}: {found.failure or f'HTTP {found.status}{leads}'}")
    if found.failure or found.status >= 400:
        raise typer.Exit(1)


def _print(rules: list[dict[str, Any]], changed: str, *, json: bool) -> None:
    if json:
        as_json(rules)
    elif changed:
        say(f"changed the access rule of {changed}")
    else:
        table(
            (
                {"site": rule.get("site", "all others"), "entry": name, "value": _access_text(value)}
                for rule in rules
                for name, value in rule.items()
                if name != "site"
            ),
            {"site": "site", "entry": "entry", "value": "value"},
        )


def _access_text(value: object) -> str:
    return "; ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
