"""Command lines of jobs, built from API requests.

A value is always passed as `--name=value`, so that no value is taken for an option. Files are names of uploads; only
this module turns them into paths.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.choose import make_policy
from recrawl.errors import UsageError
from recrawl.lab.replays.clairvoyant import Clairvoyant
from recrawl.lab.replays.hint_sources import is_simulated
from recrawl.serve.jobs.queue import JobSpec, JobStep
from recrawl.serve.jobs.uploads import Uploads
from recrawl.settings import LEVEL_FILES

COMPARISON = "comparison"
"""Name of the job that the Lab of the dashboard runs."""
_OWN_HISTORY = "history.parquet"
_FILE_PREFIXES = {"importance": ("file:", "clicks:"), "label": LEVEL_FILES, "change": LEVEL_FILES}
"""Options whose values may name a file after such a prefix."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that can run as a job."""

    name: str
    words: tuple[str, ...]
    reads: str = ""
    """Request field with the uploaded files to pass as positional arguments."""
    own: bool = False
    """Use the repository's own history if the request names no files."""
    writes: str = ""
    """Request field with the name of the output file."""
    option: str = ""
    """Option for the output file; if empty, it is the last positional argument."""
    follows: str = ""
    """Request field with other positional arguments."""
    repository: bool = False
    """The command works on the served repository (-C)."""
    files: tuple[str, ...] = ()
    """Options whose values are names of uploaded files."""


def job_spec(command: Command, given: Mapping[str, Any], folder: Path, uploads: Uploads) -> JobSpec:
    """Return the job for a request; raise UsageError if a policy or file is invalid."""
    request = {name: value for name, value in given.items() if value is not None}
    policies = request.get("policy", [])
    for name in policies if isinstance(policies, list) else filter(None, [policies]):
        if name != Clairvoyant.name:
            make_policy(name, imports=False)  # raises UsageError for an invalid policy
    if request.get("hints") and not is_simulated(str(request["hints"])):
        raise UsageError(
            f"invalid hints '{request['hints']}'; over HTTP use a simulated sitemap such as sitemap:honest"
        )
    special = {command.reads, command.writes, command.follows, *command.files}
    options = [part for name, value in request.items() if name not in special for part in _option(name, value, uploads)]
    options += [f"--{name}={uploads.find(file)}" for name in command.files for file in request.get(name, ())]
    inputs = [str(uploads.find(name)) for name in request.get(command.reads, ())]
    output = str(request.get(command.writes, ""))
    if output:
        uploads.path_for(output)
    start = ("-C", str(folder), *command.words) if command.repository else command.words

    def steps(scratch: Path) -> list[JobStep]:
        made: list[JobStep] = []
        sources = inputs
        if command.own and not inputs:
            made.append(export_step(folder, scratch / _OWN_HISTORY))
            sources = [str(scratch / _OWN_HISTORY)]
        target = str(scratch / output)
        named = [f"--{command.option}={target}"] if output and command.option else []
        after = [*sources, *request.get(command.follows, ()), *([target] if output and not command.option else [])]
        made.append(JobStep("Started ...", (*start, *options, *named, "--json", "--", *after)))
        return made

    return JobSpec(command.name, request, steps, output)


def comparison(folder: Path, policies: Sequence[str], budgets: Sequence[float], cycle: str) -> JobSpec:
    """Return the job that replays the repository's own history under several policies and budgets."""

    def steps(scratch: Path) -> list[JobStep]:
        file = scratch / _OWN_HISTORY
        chosen = [f"--policy={name}" for name in policies] + [f"--budget={budget!r}" for budget in budgets]
        how = [*chosen, f"--cycle={cycle}", "--seeds=1", "--workers=1", "--json", "--", str(file)]
        compare = JobStep("Replaying the history ...", ("lab", "compare", *how))
        return [export_step(folder, file), compare]

    return JobSpec(COMPARISON, {"policies": list(policies), "budgets": list(budgets), "cycle": cycle}, steps)


def export_step(folder: Path, file: Path) -> JobStep:
    """Return the step that exports the repository's history to a file."""
    return JobStep("Exporting the history ...", ("-C", str(folder), "export", "--json", "--", str(file)))


def _option(name: str, value: Any, uploads: Uploads) -> list[str]:
    word = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [word] if value else []
    values = value if isinstance(value, list) else [value]
    return [f"{word}={_with_path(name, item, uploads)}" for item in values]


def _with_path(name: str, value: Any, uploads: Uploads) -> Any:
    """Replace the name of an uploaded file in a value by its path."""
    for word in _FILE_PREFIXES.get(name, ()):
        if isinstance(value, str) and value.startswith(word):
            return f"{word}{uploads.find(value.removeprefix(word))}"
    return value


def check_inside(folder: Path, importance: str) -> None:
    """Raise UsageError if the setting `importance` names a file outside the repository's folder."""
    kind, colon, path = importance.partition(":")
    if colon and f"{kind}:" in _FILE_PREFIXES["importance"]:
        _inside(folder, path)


def level_inside(folder: Path, change: str) -> str:
    """Return a level of change with the path of its file, which must be inside the repository's folder."""
    kind, colon, path = change.partition(":")
    return f"{kind}:{_inside(folder, path)}" if colon and f"{kind}:" in LEVEL_FILES else change


def _inside(folder: Path, path: str) -> Path:
    inner = (folder / path).resolve()
    if not inner.is_relative_to(folder.resolve()):
        raise UsageError(f"'{path}' is outside the repository; over HTTP use a file inside its folder")
    return inner
