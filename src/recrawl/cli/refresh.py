"""Commands that visit pages: crawl, cycle, recheck, run; serve, and mcp for assistants."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Unpack

import typer

from recrawl.cli.declared import example
from recrawl.cli.terminal.output import AsJson, as_json, count, json_line, note, percent, repository, say, table
from recrawl.cli.terminal.signals import Stop
from recrawl.errors import RepositoryBusy, UsageError
from recrawl.extras import require
from recrawl.parameters import Budget, Bytes, CrawlRules, PolicyText, RunRules, TimeLimit, Wait

_MOST_ROWS = 20
Hosts = Annotated[
    list[str] | None, typer.Option(metavar="NAME", help="Additional host name that browsers may use; repeatable.")
]
Proxies = Annotated[
    list[str] | None,
    typer.Option(metavar="ADDRESS", help="IP address or network of a proxy that sets X-Forwarded-*; repeatable."),
]


@example("Example: recrawl crawl --for 10m")
def crawl(
    ctx: typer.Context,
    time_limit: TimeLimit = None,
    wait: Wait = False,
    json: AsJson = False,
    **rules: Unpack[CrawlRules],
) -> None:
    """Discover and download new pages: known pages that were never visited, and the pages they link to.

    With --for, the next crawl continues where this one stopped.
    """
    from recrawl.cli.terminal.run_report import end_run, watched  # lazy: the help does without

    stop = Stop()
    with repository(ctx) as repo, watched(quiet=json) as watcher:
        report = repo.crawl(time_limit=time_limit, wait=wait, progress=watcher.report, stop=stop, **rules)
    end_run(report, stop, json=json)


@example("Example: recrawl cycle --budget 500 --policy 'round-robin(order=shuffled)'")
def cycle(
    ctx: typer.Context,
    budget: Budget = None,
    bytes: Bytes = "",  # noqa: A002
    policy: PolicyText = "",
    time_limit: TimeLimit = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Print the plan (pages and reasons) without visiting anything.")
    ] = False,
    wait: Wait = False,
    json: AsJson = False,
    **rules: Unpack[RunRules],
) -> None:
    """Refresh once: visit the pages that the policy chooses, within the budget."""
    from recrawl.cli.terminal.run_report import end_run, watched  # lazy: the help does without

    options: dict[str, Any] = {
        "budget": budget,
        "policy": policy or None,
        "bytes": bytes,
        "time_limit": time_limit,
        **rules,
    }
    stop = Stop()
    with repository(ctx) as repo:
        if dry_run:
            plan = repo.plan(**options).as_dict()
            as_json(plan) if json else _print_plan(plan)
            return
        with watched(quiet=json) as watcher:
            report = repo.cycle(**options, wait=wait, progress=watcher.report, stop=stop)
    end_run(report, stop, json=json)


def _print_plan(plan: dict[str, Any]) -> None:
    pages, sites = plan["pages"], plan["sites"]
    say(f"{plan['policy']} would use {count(len(pages), 'visit')} of its budget of {plan['budget']:,}")
    if plan["sure"] < len(pages):
        say(f"the first {plan['sure']:,} are certain; the others assume that those are found unchanged")
    if not pages:
        return
    say()
    table(sites[:_MOST_ROWS], {"site": "site", "visits": ">visits", "pages": ">pages", "at_most": ">at most"})
    say()
    shown = ({**row, "probability": percent(row["probability"])} for row in pages[:_MOST_ROWS])
    columns = {"place": ">no", "url": "page", "probability": ">change probability", "score": ">score"}
    table(shown, {**columns, "reason": "reason"})
    if len(pages) > _MOST_ROWS:
        say(f"... and {len(pages) - _MOST_ROWS:,} more; --json lists all")


@example("Example: recrawl recheck https://example.org/news")
def recheck(
    ctx: typer.Context,
    targets: Annotated[
        list[str] | None,
        typer.Argument(metavar="[URL|SITE]...", help="A page, or a site as example.org: all of its pages."),
    ] = None,
    wait: Wait = False,
    json: AsJson = False,
) -> None:
    """Visit pages now, whatever the policy would choose and beyond the budget of the cycles.

    Without a target, visit what was requested before and pages whose interval ('recrawl add --every') is over. While
    another process works on the repository, the request is stored and the next cycle fulfils it.
    """
    from recrawl.cli.terminal.run_report import print_report, watched  # lazy: the help does without

    stop = Stop()
    with repository(ctx) as repo, watched(quiet=json) as watcher:
        try:
            report = repo.recheck(*(targets or ()), wait=wait, progress=watcher.report, stop=stop)
        except RepositoryBusy as busy:
            note(f"{busy}; the request is stored and the next cycle fulfils it")
            raise
    if json:
        as_json(None if report is None else report.as_dict())
    elif report is None:
        say("nothing to visit")
    else:
        print_report(report)
    stop.end(finished=report is not None and report.finished)


@example("Example: recrawl run --every 6h --budget 500")
def run(
    ctx: typer.Context,
    every: Annotated[
        str, typer.Option(metavar="DURATION", help="Time from one cycle's start to the next. Default: the setting.")
    ] = "",
    budget: Budget = None,
    bytes: Bytes = "",  # noqa: A002
    policy: PolicyText = "",
    sync: Annotated[str, typer.Option(help="When to visit within the period: start, most-at-start or even.")] = "start",
    count: Annotated[int, typer.Option(min=0, help="Stop after this many cycles; 0 runs until stopped.")] = 0,
    json: AsJson = False,
    **rules: Unpack[RunRules],
) -> None:
    """Refresh continuously: now, and at every multiple of the period, crawl new pages, then run a cycle.

    The clock decides: with --every 6h, cycles begin at 00:00, 06:00, 12:00 and 18:00 UTC. Missed periods (a cycle took
    longer, or the machine slept) are skipped. Ctrl-C ends the run cleanly; the next run resumes an unfinished cycle.
    """
    from recrawl.cli.terminal.run_report import print_report, watched  # lazy: the help does without

    with repository(ctx) as repo, watched(quiet=json) as watcher:
        for report in repo.run(
            every=every,
            budget=budget,
            policy=policy or None,
            bytes=bytes,
            sync=sync,
            count=count,
            progress=watcher.report,
            stop=Stop(),
            **rules,
        ):
            watcher.close()
            if json:
                json_line(report.as_dict())
            else:
                print_report(report)


@example("Example: recrawl serve --port 8700")
def serve(
    ctx: typer.Context,
    host: Annotated[str, typer.Option(help="IP address to listen on; outside loopback, clients need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 8700,
    token_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the token that clients must send.")
    ] = None,
    allow_host: Hosts = None,
    trusted_proxy: Proxies = None,
    schedule: Annotated[bool, typer.Option(help="Run cycles on schedule.")] = True,
    mcp_writes: Annotated[
        bool, typer.Option("--mcp-writes", help="Let assistants at /mcp add pages and request visits.")
    ] = False,
    json: AsJson = False,
) -> None:
    """Run the service: scheduled cycles, a dashboard, an HTTP API. Ctrl-C stops it cleanly.

    The settings 'every', 'budget' and 'policy' control the cycles and can be changed while the service runs. Outside
    loopback and behind a trusted proxy, a token is created, printed once and stored in the repository, unless
    --token-file names one.
    """
    from recrawl.repository.opening import check_plugins  # lazy: the help does without

    with repository(ctx) as repo:
        folder = repo.folder
        check_plugins(repo.options(), repo.settings)  # refuse invalid settings before anything starts
    from recrawl.serve import service as running  # lazy: starlette and uvicorn load slowly
    from recrawl.serve.access import sessions  # lazy: only if a token is needed

    token, fresh = _token(token_file), False
    if not token and (trusted_proxy or not running.is_loopback(host)):
        token, fresh = sessions.access_token(folder)
    plan = running.ServiceConfig(
        host=host,
        port=port,
        token=token,
        names=tuple(allow_host or ()),
        proxies=tuple(trusted_proxy or ()),
        schedule=schedule,
        mcp_writes=mcp_writes,
        log=None if json else say,
    )
    service = running.Service(folder, plan)

    service.foreground(lambda: _announce(service, token if fresh else "", json=json))
    note("stopped")


def _token(file: Path | None) -> str:
    if file is None:
        return ""
    token = file.read_text(encoding="utf-8").strip()
    if not token:
        raise UsageError(f"{file} is empty: write a token of at least 16 characters into it")
    return token


def _announce(service: Any, fresh: str, *, json: bool) -> None:
    from recrawl.serve.cycle_log import describe_plan, plan  # lazy: starlette loads slowly

    planned = plan(service.context)
    if json:
        addresses = {"address": service.url, "api": f"{service.url}api/v1/"}
        as_json({**addresses, **({"token": fresh} if fresh else {}), **planned})
        return
    say(f"serving at {service.url}; the API is at {service.url}api/v1/")
    say(describe_plan(planned))
    if fresh:
        say(f"token (stored in serve.token, not shown again): {fresh}")


@example("Example: recrawl mcp --write")
def mcp(
    ctx: typer.Context,
    write: Annotated[
        bool, typer.Option("--write", help="Offer the tools that add pages and request visits, too.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print the entry for the settings of an assistant as JSON, and exit.")
    ] = False,
) -> None:
    """Answer an assistant over standard input and output (Model Context Protocol), until it closes them.

    The tools search the pages, read them as they are or were, compare versions, and tell what changed since the
    assistant last asked. Name this command in the settings of the assistant; it needs the extra 'mcp'. The service
    offers the same tools at /mcp.
    """
    require("mcp")
    from recrawl.cluster.opening import open_repository  # lazy: checked for the extra first
    from recrawl.mcp_server.server import serve_stdio  # lazy: needs the extra `mcp`

    with repository(ctx) as repo:
        folder = repo.folder.resolve()
    if json:
        words = ["-C", str(folder), "mcp", *(["--write"] if write else [])]
        as_json({"mcpServers": {folder.name: {"command": "recrawl", "args": words}}})
        return
    serve_stdio(partial(open_repository, folder), writing=write)
