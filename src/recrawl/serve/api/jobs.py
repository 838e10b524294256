"""Files that clients bring and fetch, and the commands that take long, run as jobs."""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response

from recrawl.errors import UsageError
from recrawl.lab.synth import SyntheticWorld
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import Arguments, Operation, as_json, rows
from recrawl.serve.context import Context
from recrawl.serve.jobs.job_specs import Command, work
from recrawl.serve.problems import Problem
from recrawl.serve.stored_files import SANDBOX

_COUNTED = 8_000_000
"""Bytes after which it is looked at again how full the shelf is."""
_WORLD = SyntheticWorld()
_LARGEST_WORLD = 1_000_000
"""Pages of a generated web."""


def files(context: Context, _: Arguments) -> dict[str, Any]:
    """What is on the shelf."""
    return rows(context.shelf.listed())


async def put_file(context: Context, request: Request, given: Arguments) -> Response:
    """Put a file on the shelf, in place of one of the same name; it is there when it is whole, or not at all."""
    shelf, name = context.shelf, given["name"]
    part = await run_in_threadpool(shelf.part, name)
    try:
        with part.open("wb") as out:
            size = counted = 0
            async for piece in request.stream():
                if not size or size - counted > _COUNTED:
                    counted = size
                    if await run_in_threadpool(shelf.used) > context.limits.shelf_bytes:
                        raise Problem(413, "The shelf is full: remove files first.")
                await run_in_threadpool(out.write, piece)
                size += len(piece)
        await run_in_threadpool(shelf.keep, part, name)
    except ClientDisconnect:
        raise Problem(400, "The file ended early.") from None
    finally:
        part.unlink(missing_ok=True)
    return as_json({"name": name, "bytes": size}, 201)


async def get_file(context: Context, request: Request, given: Arguments) -> Response:
    """A file, to be kept and not to be shown."""
    del request
    path = context.shelf.find(given["name"])
    if path.is_dir():
        raise UsageError(f"'{given['name']}' is a folder")
    headers = {"content-security-policy": SANDBOX}
    return FileResponse(path, media_type="application/octet-stream", filename=given["name"], headers=headers)


def remove_file(context: Context, given: Arguments) -> dict[str, Any]:
    """Take a file from the shelf."""
    context.shelf.remove(given["name"])
    return {"removed": given["name"]}


def jobs(context: Context, _: Arguments) -> dict[str, Any]:
    """Jobs, newest first, without their results."""
    found = [asdict(one) for one in context.jobs.listed()]
    return rows([{name: value for name, value in one.items() if name != "result"} for one in found])


def job(context: Context, given: Arguments) -> dict[str, Any]:
    """One job, with its result."""
    return asdict(context.jobs.find(given["job"]))


def cancel(context: Context, given: Arguments) -> dict[str, Any]:
    """End a job; what it would have made is not made."""
    return asdict(context.jobs.cancel(given["job"]))


def begin(context: Context, given: Arguments, *, command: Command) -> dict[str, Any]:
    """Begin a job."""
    if command.name == "import" and not given["files"]:
        raise UsageError("name at least one file of the shelf")
    if command.name == "lab synth" and given["sites"] * given["pages"] > _LARGEST_WORLD:
        raise UsageError(f"over HTTP a generated web has at most {_LARGEST_WORLD:,} pages")
    begun = context.jobs.begin(work(command, given, context.folder, context.shelf))
    if begun is None:
        raise Problem(409, "Another job is under way: wait for it, or cancel it.")
    return asdict(begun)


_ARCHIVES = Field("archives", "strings", "Archives on the shelf; the repository's own history if none.", default=[])
_POLICY = Field("policy", "strings", "Policies, as round-robin or greedy(sample=20).", required=True)
_OUT = Field("file", "string", "The file to make on the shelf.", required=True)
_SEED = Field("seed", "integer", "Another seed, another outcome.", default=1, least=0, most=2**31)
_REPLAY = (
    _ARCHIVES,
    _POLICY,
    Field("bytes", "string", "Most bytes a cycle, as 200MB; 0: any.", default="0"),
    Field("cycles", "integer", "How many cycles; as many as the archives last if not given.", least=1, most=10**6),
    Field("skip", "string", "Leave out so much of each site's beginning, as 365d.", default="0d"),
    Field("change", "string", "What counts: text, raw, significant, or divergence:0.1.", default="text"),
    Field("discover", "string", "How pages born later become known.", default="births", choices=("births", "links")),
    Field("at_start", "number", "Share of a cycle's visits made at its start.", default=1.0, least=0, most=1),
    Field("failures", "number", "Share of visits that fail.", default=0.0, least=0, most=1),
    Field("late", "number", "Share of answers that come late.", default=0.0, least=0, most=1),
    Field("hints", "string", "What the sites volunteer: sitemap:honest and the like.", default=""),
    Field("importance", "string", "even, pagerank, or file: and clicks: with a file on the shelf.", default="even"),
    Field("cost", "string", "What a visit costs policies.", default="visit", choices=("visit", "bytes")),
)
_COMMANDS: tuple[tuple[Command, str, tuple[Field, ...]], ...] = (
    (
        Command(name="import", words=("import", "--wait"), reads="files", repository=True),
        "Take in addresses or histories that are on the shelf.",
        (
            Field("files", "strings", "URL lists, Parquet, WARC, or a folder with a git repository.", required=True),
            Field("base_url", "string", "git: the address at which the pages are published."),
            Field("branch", "string", "git: the branch; the current one if not given."),
            Field("root", "string", "git: the folder that holds the site."),
            Field("since", "string", "git, WARC: begin with the pages as they were then."),
            Field("until", "string", "git, WARC: leave out what came later."),
            Field("limit", "integer", "git, WARC: only so many pages, the oldest.", least=1, most=10**9),
        ),
    ),
    (
        Command(name="export", words=("export",), writes="file", repository=True),
        "Write all versions (.parquet), or the addresses, to a file on the shelf.",
        (_OUT,),
    ),
    (
        Command(name="plan", words=("cycle", "--dry-run"), repository=True),
        "What the next cycle would visit, and why.",
        (
            Field("budget", "number", "Most visits; under 1, a share of the pages.", least=1e-9, most=1e15),
            Field("bytes", "string", "Most bytes, as 200MB; as the setting says if empty.", default=""),
            Field("policy", "string", "How to choose pages; as the setting says if empty.", default=""),
        ),
    ),
    (
        Command(name="lab run", words=("lab", "run", "--workers=1"), reads="archives", own=True),
        "Replay histories under policies.",
        (
            *_REPLAY,
            Field("budget", "number", "Visits a cycle; under 1, a share.", default=0.01, least=0, most=1e15),
            Field("cycle", "string", "How long a cycle is: 6h, 1d, 2w.", default="1d"),
            _SEED,
        ),
    ),
    (
        Command(
            name="lab compare",
            words=("lab", "compare", "--workers=1"),
            reads="archives",
            own=True,
            writes="chart",
            option="chart",
        ),
        "Compare policies at several budgets and cycles.",
        (
            *_REPLAY,
            Field("budget", "numbers", "Visits a cycle, or shares.", default=[0.0025, 0.01, 0.04]),
            Field("cycle", "strings", "How long a cycle is: 6h, 1d, 2w.", default=["1d"]),
            Field("seeds", "integer", "How many seeds.", default=3, least=1, most=100),
            Field("chart", "string", "A chart to make on the shelf: a name ending in .png, .svg or .html."),
            Field("metric", "string", "What the chart shows.", default="change_ratio"),
        ),
    ),
    (
        Command(name="lab predict", words=("lab", "predict", "--workers=1"), reads="archives", own=True),
        "How well change can be foretold.",
        (
            _ARCHIVES,
            Field("method", "string", "frequency, 1d, 2d, 3d, union, bagging, boosting, pooled, ...", default="3d"),
            Field("experts", "string", "How related pages are found.", default="xcorr"),
            Field("k", "integer", "How many experts a page has.", default=20, least=1, most=1000),
            Field("train", "integer", "Days that each prediction learns from.", default=50, least=1, most=10**5),
            Field("label", "string", "text, significant, new-link, divergence:0.1, relevance:FILE.", default="text"),
            Field("window", "integer", "Days that features look back.", default=1, least=1, most=1000),
            Field("interval", "integer", "Days ahead that are predicted.", default=1, least=1, most=1000),
            Field("observe", "number", "Share of pages seen each day.", default=1.0, least=0, most=1),
            Field("alpha", "number", "Only pages that flip on this share of days.", default=0.0, least=0, most=1),
            Field("pages", "integer", "Only a sample of that many pages.", least=1, most=10**9),
            Field("days", "integer", "How many days are predicted.", default=30, least=1, most=10**5),
            _SEED,
        ),
    ),
    (
        Command(
            name="lab reproduce",
            words=("lab", "reproduce", "--workers=1"),
            follows="names",
            files=("archives",),
        ),
        "Repeat published experiments.",
        (
            Field("names", "strings", "Experiments, or all of a document.", default=[]),
            Field("all", "boolean", "All of them.", default=False),
            Field("list", "boolean", "List them and do nothing else.", default=False),
            Field("archives", "strings", "Run on these archives of the shelf too.", default=[]),
            Field("scale", "number", "Size of generated worlds, as a share.", default=1.0, least=1e-6, most=1),
            Field("seeds", "integer", "How often what depends on chance is repeated.", default=2, least=1, most=100),
            Field("change", "string", "What counts as change in archives.", default="text"),
        ),
    ),
    (
        Command(name="lab synth", words=("lab", "synth"), writes="file"),
        "Generate a living web, as an archive on the shelf.",
        (
            _OUT,
            _SEED,
            Field("sites", "integer", "Number of sites.", default=_WORLD.sites, least=1, most=10_000),
            Field("pages", "integer", "Pages of a site at the start.", default=_WORLD.pages, least=10, most=1_000_000),
            Field("days", "number", "How long it is watched.", default=_WORLD.days, least=0.01, most=3650),
            Field("kinds", "string", "Kinds of site with weights, as news=2,blog=1."),
            Field("set", "strings", "Any parameter, as NAME=VALUE.", default=[]),
        ),
    ),
)
_NAME = Field("name", "string", "The file's name.", required=True)
OPERATIONS = (
    Operation(method="GET", path="/files", name="files", summary="The shelf.", answer=files, returns="rows"),
    Operation(
        method="PUT",
        path="/files/{name}",
        name="put_file",
        summary="Put a file on the shelf.",
        handler=put_file,
        about={"name": _NAME},
        takes="application/octet-stream",
        status=201,
    ),
    Operation(
        method="GET",
        path="/files/{name}",
        name="get_file",
        summary="A file of the shelf.",
        handler=get_file,
        about={"name": _NAME},
        returns="application/octet-stream",
    ),
    Operation(
        method="DELETE",
        path="/files/{name}",
        name="remove_file",
        summary="Take a file from the shelf.",
        answer=remove_file,
        about={"name": _NAME},
    ),
    Operation(method="GET", path="/jobs", name="jobs", summary="Jobs.", answer=jobs, returns="rows"),
    Operation(method="GET", path="/jobs/{job}", name="job", summary="A job, with its result.", answer=job),
    Operation(method="DELETE", path="/jobs/{job}", name="cancel", summary="End a job.", answer=cancel),
    *(
        Operation(
            method="POST",
            path=f"/jobs/{command.name.replace(' ', '-')}",
            name=command.name.replace(" ", "_"),
            summary=summary,
            answer=partial(begin, command=command),
            body=fields,
            status=202,
            verbs=("cycle",) if command.name == "plan" else (command.name,),
        )
        for command, summary, fields in _COMMANDS
    ),
)
