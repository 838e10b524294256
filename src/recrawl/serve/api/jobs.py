"""API: uploaded files, long commands run as jobs, and the comparison of policies on the repository's own history."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response

from recrawl import parameters as given
from recrawl.choose import make_policy
from recrawl.errors import UsageError
from recrawl.lab.replays.clairvoyant import Clairvoyant
from recrawl.lab.synth import SyntheticWorld
from recrawl.operations import operation
from recrawl.repository.results.answers import (
    ComparisonAnswer,
    JobAnswer,
    JobResultAnswer,
    ListAnswer,
    RemovedAnswer,
    UploadedFileAnswer,
    listing,
    made,
)
from recrawl.serve.context import Context
from recrawl.serve.jobs.job_specs import COMPARISON, Command, job_spec
from recrawl.serve.jobs.job_specs import comparison as comparison_job
from recrawl.serve.jobs.queue import JOB_RUNNING
from recrawl.serve.problems import Problem
from recrawl.serve.stored_files import SANDBOX
from recrawl.times import duration

_CHECK_INTERVAL = 8_000_000
"""Bytes of an upload between checks of the total size."""
_WORLD = SyntheticWorld()
_MAX_SYNTH_PAGES = 1_000_000
_MAX_CHOICES = 8


IMPORT = Command(name="import", words=("import", "--wait"), reads="files", repository=True)
EXPORT = Command(name="export", words=("export",), writes="file", repository=True)
PLAN = Command(name="plan", words=("cycle", "--dry-run"), repository=True)
LAB_RUN = Command(name="lab run", words=("lab", "run", "--workers=1"), reads="archives", own=True)
LAB_COMPARE = Command(
    name="lab compare",
    words=("lab", "compare", "--workers=1"),
    reads="archives",
    own=True,
    writes="chart",
    option="chart",
)
LAB_PREDICT = Command(name="lab predict", words=("lab", "predict", "--workers=1"), reads="archives", own=True)
LAB_REPRODUCE = Command(
    name="lab reproduce", words=("lab", "reproduce", "--workers=1"), follows="names", files=("archives",)
)
LAB_SYNTH = Command(name="lab synth", words=("lab", "synth"), writes="file")


@operation(http="GET /files")
def files(context: Context) -> ListAnswer[UploadedFileAnswer]:
    """List the uploaded files."""
    return listing(UploadedFileAnswer, context.uploads.entries())


@operation(http="PUT /files/{name}", status=201, writes=True, takes="application/octet-stream")
async def put_file(context: Context, request: Request, *, name: given.FileName) -> UploadedFileAnswer:
    """Upload a file, replacing one of the same name; an incomplete upload leaves no file."""
    uploads = context.uploads
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
    return UploadedFileAnswer(name=name, bytes=size)


@operation(http="GET /files/{name}", returns="application/octet-stream")
async def get_file(context: Context, request: Request, *, name: given.FileName) -> Response:
    """Download an uploaded file as an attachment."""
    del request
    path = context.uploads.find(name)
    if path.is_dir():
        raise UsageError(f"'{name}' is a folder; only files can be downloaded")
    headers = {"content-security-policy": SANDBOX}
    return FileResponse(path, media_type="application/octet-stream", filename=name, headers=headers)


@operation(http="DELETE /files/{name}", writes=True)
def remove_file(context: Context, *, name: given.FileName) -> RemovedAnswer:
    """Delete an uploaded file."""
    context.uploads.remove(name)
    return RemovedAnswer(removed=name)


@operation(http="GET /jobs")
def jobs(context: Context) -> ListAnswer[JobAnswer]:
    """List the jobs, newest first, without their results."""
    return listing(JobAnswer, (one.to_json() for one in context.jobs.newest_first()))


@operation(http="GET /jobs/{job}", name="job")
def one_job(context: Context, *, job: given.JobNumber) -> JobResultAnswer:
    """Get a job with its result."""
    return made(JobResultAnswer, context.jobs.find(job).to_json())


@operation(http="DELETE /jobs/{job}", writes=True)
def cancel(context: Context, *, job: given.JobNumber) -> JobResultAnswer:
    """Cancel a job; its output file is not created."""
    return made(JobResultAnswer, context.jobs.cancel(job).to_json())


@operation(http="POST /jobs/import", status=202, writes=True, commands=("import",), name="import")
def import_files(
    context: Context, *, files: given.ImportedFiles, **options: Unpack[given.ImportOptions]
) -> JobResultAnswer:
    """Import URL lists, Parquet, WARC or git histories from uploaded files."""
    if not files:
        raise UsageError("'files' is empty; name at least one uploaded file")
    return _start(context, IMPORT, {"files": files, **options})


@operation(http="POST /jobs/export", status=202, writes=True, commands=("export",))
def export(context: Context, *, file: given.OutputFile) -> JobResultAnswer:
    """Export all versions (.parquet) or the URLs to a file."""
    return _start(context, EXPORT, {"file": file})


@operation(http="POST /jobs/plan", status=202, writes=True, commands=("cycle",))
def plan(
    context: Context,
    *,
    budget: given.Budget = None,
    bytes: given.Bytes = "",  # noqa: A002
    policy: given.PolicyText = "",
) -> JobResultAnswer:
    """Plan the next cycle without visiting anything."""
    return _start(context, PLAN, {"budget": budget, "bytes": bytes, "policy": policy})


@operation(http="POST /jobs/lab-run", status=202, writes=True, commands=("lab run",))
def lab_run(
    context: Context,
    *,
    policy: given.Policies,
    archives: given.UploadedArchives = (),
    budget: given.ReplayBudget = 0.01,
    cycle: given.CycleLength = "1d",
    seed: given.Seed = 1,
    **replay: Unpack[given.SingleReplay],
) -> JobResultAnswer:
    """Replay histories under policies."""
    asked = {"archives": archives, "policy": policy, "budget": budget, "cycle": cycle, "seed": seed}
    return _start(context, LAB_RUN, {**asked, **replay})


@operation(http="POST /jobs/lab-compare", status=202, writes=True, commands=("lab compare",))
def lab_compare(
    context: Context,
    *,
    policy: given.Policies,
    archives: given.UploadedArchives = (),
    budget: given.ReplayBudgets = None,
    cycle: given.CycleLengths = None,
    seeds: given.SeedCount = 3,
    chart: given.ChartFile = None,
    metric: given.ChartMetric = "change_ratio",
    **replay: Unpack[given.Replay],
) -> JobResultAnswer:
    """Compare policies at several budgets and cycles."""
    asked = {"archives": archives, "policy": policy, "budget": budget, "cycle": cycle, "seeds": seeds}
    return _start(context, LAB_COMPARE, {**asked, "chart": chart, "metric": metric, **replay})


@operation(http="POST /jobs/lab-predict", status=202, writes=True, commands=("lab predict",))
def lab_predict(
    context: Context, *, archives: given.UploadedArchives = (), **predicting: Unpack[given.Predicting]
) -> JobResultAnswer:
    """Measure how well changes can be predicted."""
    return _start(context, LAB_PREDICT, {"archives": archives, **predicting})


@operation(http="POST /jobs/lab-reproduce", status=202, writes=True, commands=("lab reproduce",))
def lab_reproduce(context: Context, **reproducing: Unpack[given.Reproducing]) -> JobResultAnswer:
    """Reproduce published experiments."""
    return _start(context, LAB_REPRODUCE, dict(reproducing))


@operation(http="POST /jobs/lab-synth", status=202, writes=True, commands=("lab synth",))
def lab_synth(context: Context, *, file: given.OutputFile, **synthesis: Unpack[given.Synthesis]) -> JobResultAnswer:
    """Generate a synthetic web history as an archive."""
    if synthesis.get("sites", _WORLD.sites) * synthesis.get("pages", _WORLD.pages) > _MAX_SYNTH_PAGES:
        raise UsageError(f"sites times pages is over {_MAX_SYNTH_PAGES:,}, the limit over HTTP")
    return _start(context, LAB_SYNTH, {"file": file, **synthesis})


@operation(http="GET /lab/comparison", commands=("lab compare",))
def comparison(context: Context) -> ComparisonAnswer:
    """Get the latest comparison of policies on this history."""
    last = context.jobs.last(COMPARISON)
    if last is None:
        return ComparisonAnswer(state="none")
    return ComparisonAnswer(
        state=last.state,
        number=last.number,
        told=last.message,
        error=last.error,
        question=last.request,
        rows=last.result or [],
    )


@operation(http="POST /lab/comparison", commands=("lab compare",), status=202, writes=True)
def compare(
    context: Context,
    *,
    policies: given.ComparedPolicies,
    budgets: given.ComparedBudgets,
    cycle: given.CycleLength = "1d",
) -> ComparisonAnswer:
    """Compare policies and budgets on this history."""
    if not 0 < len(policies) <= _MAX_CHOICES or not 0 < len(budgets) <= _MAX_CHOICES:
        raise UsageError(f"give 1 to {_MAX_CHOICES} policies and 1 to {_MAX_CHOICES} budgets")
    for name in policies:
        if name != Clairvoyant.name:
            make_policy(name, imports=False)  # raises UsageError for an invalid policy
    if not all(0 < budget <= 1e9 for budget in budgets):
        raise UsageError("budgets must be greater than 0 and at most 1e9")
    if duration(cycle) < 60:
        raise UsageError(f"cycle '{cycle}' is too short; use at least 1m")
    if context.jobs.start(comparison_job(context.folder, policies, budgets, cycle)) is None:
        raise Problem(409, JOB_RUNNING)
    return comparison(context)


def _start(context: Context, command: Command, asked: Mapping[str, Any]) -> JobResultAnswer:
    started = context.jobs.start(job_spec(command, asked, context.folder, context.uploads))
    if started is None:
        raise Problem(409, JOB_RUNNING)
    return made(JobResultAnswer, started.to_json())
