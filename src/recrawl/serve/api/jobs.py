"""API: uploaded files, and long commands run as jobs."""

from __future__ import annotations

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
from recrawl.serve.jobs.job_specs import Command, job_spec
from recrawl.serve.jobs.queue import JOB_RUNNING
from recrawl.serve.problems import Problem
from recrawl.serve.stored_files import SANDBOX

_CHECK_INTERVAL = 8_000_000
"""Bytes of an upload between checks of the total size."""
_WORLD = SyntheticWorld()
_MAX_SYNTH_PAGES = 1_000_000


def files(context: Context, _: Arguments) -> dict[str, Any]:
    """List the uploaded files."""
    return rows(context.uploads.entries())


async def put_file(context: Context, request: Request, given: Arguments) -> Response:
    """Upload a file, replacing one of the same name; an incomplete upload leaves no file."""
    uploads, name = context.uploads, given["name"]
    partial_file = await run_in_threadpool(uploads.partial, name)
    try:
        with partial_file.open("wb") as out:
            size = checked = 0
            async for piece in request.stream():
                if not size or size - checked > _CHECK_INTERVAL:
                    checked = size
                    if await run_in_threadpool(uploads.used_bytes) > context.limits.uploads_bytes:
                        raise Problem(413, "No space left for uploads: delete files first.")
                await run_in_threadpool(out.write, piece)
                size += len(piece)
        await run_in_threadpool(uploads.commit, partial_file, name)
    except ClientDisconnect:
        raise Problem(400, "The upload is incomplete.") from None
    finally:
        partial_file.unlink(missing_ok=True)
    return as_json({"name": name, "bytes": size}, 201)


async def get_file(context: Context, request: Request, given: Arguments) -> Response:
    """Download a file as an attachment."""
    del request
    path = context.uploads.find(given["name"])
    if path.is_dir():
        raise UsageError(f"'{given['name']}' is a folder; only files can be downloaded")
    headers = {"content-security-policy": SANDBOX}
    return FileResponse(path, media_type="application/octet-stream", filename=given["name"], headers=headers)


def remove_file(context: Context, given: Arguments) -> dict[str, Any]:
    """Delete an uploaded file."""
    context.uploads.remove(given["name"])
    return {"removed": given["name"]}


def jobs(context: Context, _: Arguments) -> dict[str, Any]:
    """List the jobs, newest first, without their results."""
    found = [one.to_json() for one in context.jobs.newest_first()]
    return rows([{name: value for name, value in one.items() if name != "result"} for one in found])


def job(context: Context, given: Arguments) -> dict[str, Any]:
    """Return a job with its result."""
    return context.jobs.find(given["job"]).to_json()


def cancel(context: Context, given: Arguments) -> dict[str, Any]:
    """Cancel a job; its output file is not created."""
    return context.jobs.cancel(given["job"]).to_json()


def start(context: Context, given: Arguments, *, command: Command) -> dict[str, Any]:
    """Start a job."""
    if command.name == "import" and not given["files"]:
        raise UsageError("'files' is empty; name at least one uploaded file")
    if command.name == "lab synth" and given["sites"] * given["pages"] > _MAX_SYNTH_PAGES:
        raise UsageError(f"sites times pages is over {_MAX_SYNTH_PAGES:,}, the limit over HTTP")
    started = context.jobs.start(job_spec(command, given, context.folder, context.uploads))
    if started is None:
        raise Problem(409, JOB_RUNNING)
    return started.to_json()


_ARCHIVES = Field("archives", "strings", "Uploaded archives; empty: the repository's own history.", default=[])
_POLICY = Field("policy", "strings", "Policies, as round-robin or greedy(sample=20).", required=True)
_OUT = Field("file", "string", "Name of the output file.", required=True)
_SEED = Field("seed", "integer", "Random seed.", default=1, least=0, most=2**31)
_REPLAY = (
    _ARCHIVES,
    _POLICY,
    Field("bytes", "string", "Byte budget per cycle, as 200MB; 0: no limit.", default="0"),
    Field("cycles", "integer", "Number of cycles; omitted: the length of the archives.", least=1, most=10**6),
    Field("skip", "string", "Skip the start of each site's history, as 365d.", default="0d"),
    Field("change", "string", "A change is: text, raw, significant, divergence:0.1, words:20.", default="text"),
    Field("discover", "string", "How new pages are discovered.", default="births", choices=("births", "links")),
    Field("at_start", "number", "Share of a cycle's visits made at its start.", default=1.0, least=0, most=1),
    Field("failures", "number", "Share of visits that fail.", default=0.0, least=0, most=1),
    Field("late", "number", "Share of each batch whose outcomes come with a later one.", default=0.0, least=0, most=1),
    Field("hints", "string", "Simulated hints, as sitemap:honest.", default=""),
    Field(
        "importance",
        "string",
        "Page importance: even, pagerank, file:NAME or clicks:NAME of an uploaded file.",
        default="even",
    ),
    Field("cost", "string", "Cost of a visit in the policy's view.", default="visit", choices=("visit", "bytes")),
)
_COMMANDS: tuple[tuple[Command, str, tuple[Field, ...]], ...] = (
    (
        Command(name="import", words=("import", "--wait"), reads="files", repository=True),
        "Import URL lists, Parquet, WARC or git histories from uploaded files.",
        (
            Field(
                "files",
                "strings",
                "Uploaded files: URL lists, Parquet, WARC, or a folder with a git repository.",
                required=True,
            ),
            Field("base_url", "string", "git: URL at which the pages are published."),
            Field("branch", "string", "git: branch; omitted: the current one."),
            Field("root", "string", "git: folder that holds the site."),
            Field("since", "string", "git, WARC: start at this time, with the pages as they were then."),
            Field("until", "string", "git, WARC: stop at this time."),
            Field("limit", "integer", "git, WARC: page limit; the oldest pages are kept.", least=1, most=10**9),
        ),
    ),
    (
        Command(name="export", words=("export",), writes="file", repository=True),
        "Export all versions (.parquet) or the URLs to a file.",
        (_OUT,),
    ),
    (
        Command(name="plan", words=("cycle", "--dry-run"), repository=True),
        "Plan the next cycle without visiting anything.",
        (
            Field("budget", "number", "Visit budget; below 1: a share of the pages.", least=1e-9, most=1e15),
            Field("bytes", "string", "Byte budget, as 200MB; empty: the setting.", default=""),
            Field("policy", "string", "Policy; empty: the setting.", default=""),
        ),
    ),
    (
        Command(name="lab run", words=("lab", "run", "--workers=1"), reads="archives", own=True),
        "Replay histories under policies.",
        (
            *_REPLAY,
            Field(
                "budget", "number", "Visits per cycle; below 1: a share of the pages.", default=0.01, least=0, most=1e15
            ),
            Field("cycle", "string", "Cycle length: 6h, 1d, 2w.", default="1d"),
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
            Field("budget", "numbers", "Visits per cycle, or shares of the pages.", default=[0.0025, 0.01, 0.04]),
            Field("cycle", "strings", "Cycle length: 6h, 1d, 2w.", default=["1d"]),
            Field("seeds", "integer", "Number of random seeds.", default=3, least=1, most=100),
            Field("chart", "string", "Name of a chart file to create, ending in .png, .svg or .html."),
            Field("metric", "string", "Metric of the chart.", default="change_ratio"),
        ),
    ),
    (
        Command(name="lab predict", words=("lab", "predict", "--workers=1"), reads="archives", own=True),
        "Measure how well changes can be predicted.",
        (
            _ARCHIVES,
            Field(
                "method", "string", "Method: frequency, 1d, 2d, 3d, union, bagging, boosting, pooled, ...", default="3d"
            ),
            Field("experts", "string", "How related pages are selected.", default="xcorr"),
            Field("k", "integer", "Number of related pages (experts) per page.", default=20, least=1, most=1000),
            Field("train", "integer", "Training days per prediction.", default=50, least=1, most=10**5),
            Field(
                "label",
                "string",
                "Label: text, significant, new-link, divergence:X, words:N, relevance:FILE.",
                default="text",
            ),
            Field("window", "integer", "Days covered by the features.", default=1, least=1, most=1000),
            Field("interval", "integer", "Prediction horizon in days.", default=1, least=1, most=1000),
            Field("observe", "number", "Share of pages visited each day.", default=1.0, least=0, most=1),
            Field("lags", "string", "Days by which a related page may lead: first-last, as 1-20.", default="0-7"),
            Field("words", "integer", "Words per page that xcorr and dtw compare.", default=24, least=1, most=10**5),
            Field("omega", "string", "Weight of a word: last, changes, moves or even.", default="last"),
            Field(
                "alpha", "number", "Only pages whose label flips on this share of days.", default=0.0, least=0, most=1
            ),
            Field("pages", "integer", "Sample size in pages; omitted: all pages.", least=1, most=10**9),
            Field("days", "integer", "Number of days to predict.", default=30, least=1, most=10**5),
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
        "Reproduce published experiments.",
        (
            Field("names", "strings", "Experiments, or papers for all experiments of a paper.", default=[]),
            Field("all", "boolean", "Run all experiments.", default=False),
            Field("list", "boolean", "Only list the experiments.", default=False),
            Field("archives", "strings", "Uploaded archives to run on as well.", default=[]),
            Field("scale", "number", "Scale of the synthetic webs, from 0 to 1.", default=1.0, least=1e-6, most=1),
            Field("seeds", "integer", "Number of random seeds.", default=2, least=1, most=100),
            Field("change", "string", "What counts as a change in archives.", default="text"),
        ),
    ),
    (
        Command(name="lab synth", words=("lab", "synth"), writes="file"),
        "Generate a synthetic web history as an archive.",
        (
            _OUT,
            _SEED,
            Field("sites", "integer", "Number of sites.", default=_WORLD.sites, least=1, most=10_000),
            Field("pages", "integer", "Pages per site at the start.", default=_WORLD.pages, least=10, most=1_000_000),
            Field("days", "number", "Length of the history in days.", default=_WORLD.days, least=0.01, most=3650),
            Field("kinds", "string", "Kinds of sites with weights, as news=2,blog=1."),
            Field("set", "strings", "Other parameters, as NAME=VALUE.", default=[]),
        ),
    ),
)
_NAME = Field("name", "string", "Name of the file.", required=True)
OPERATIONS = (
    Operation(
        method="GET", path="/files", name="files", summary="List the uploaded files.", answer=files, returns="rows"
    ),
    Operation(
        method="PUT",
        path="/files/{name}",
        name="put_file",
        summary="Upload a file.",
        handler=put_file,
        about={"name": _NAME},
        takes="application/octet-stream",
        status=201,
    ),
    Operation(
        method="GET",
        path="/files/{name}",
        name="get_file",
        summary="Download an uploaded file.",
        handler=get_file,
        about={"name": _NAME},
        returns="application/octet-stream",
    ),
    Operation(
        method="DELETE",
        path="/files/{name}",
        name="remove_file",
        summary="Delete an uploaded file.",
        answer=remove_file,
        about={"name": _NAME},
    ),
    Operation(method="GET", path="/jobs", name="jobs", summary="List the jobs.", answer=jobs, returns="rows"),
    Operation(method="GET", path="/jobs/{job}", name="job", summary="Get a job with its result.", answer=job),
    Operation(method="DELETE", path="/jobs/{job}", name="cancel", summary="Cancel a job.", answer=cancel),
    *(
        Operation(
            method="POST",
            path=f"/jobs/{command.name.replace(' ', '-')}",
            name=command.name.replace(" ", "_"),
            summary=summary,
            answer=partial(start, command=command),
            body=fields,
            status=202,
            verbs=("cycle",) if command.name == "plan" else (command.name,),
        )
        for command, summary, fields in _COMMANDS
    ),
)
