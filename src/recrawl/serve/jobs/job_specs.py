"""The commands that clients may have run as jobs, and how what they ask for becomes a command line.

A value is always written as `--name=value`, so that none is taken for an option. Files are names on the shelf, which
become paths here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recrawl.choose import make_policy
from recrawl.errors import UsageError
from recrawl.lab.replays.clairvoyant import Clairvoyant
from recrawl.serve.jobs.queue import JobStep, Work
from recrawl.serve.jobs.uploads import Uploads

COMPARISON = "comparison"
"""The job that the Lab of the dashboard runs."""
_OWN = "history.parquet"
_FILED = {"importance": ("file:", "clicks:"), "label": ("relevance:",)}
"""Options whose values may name a file after such a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that can be run as a job."""

    name: str
    words: tuple[str, ...]
    reads: str = ""
    """The member that names files of the shelf which come after the options."""
    own: bool = False
    """Without files, the repository's own history is taken."""
    writes: str = ""
    """The member that names the file which it makes."""
    option: str = ""
    """The option that names that file; it comes after the others, as it is, if empty."""
    follows: str = ""
    """The member whose words come after the options, as they are."""
    repository: bool = False
    """It is about the repository that is served."""
    files: tuple[str, ...] = ()
    """Options that name files of the shelf."""


def work(command: Command, given: Mapping[str, Any], folder: Path, shelf: Uploads) -> Work:
    """What is to be done; complains about what cannot be."""
    asked = {name: value for name, value in given.items() if value is not None}
    policies = asked.get("policy", [])
    for name in policies if isinstance(policies, list) else filter(None, [policies]):
        if name != Clairvoyant.name:
            make_policy(name)  # complains when it is none
    apart = {command.reads, command.writes, command.follows, *command.files}
    options = [part for name, value in asked.items() if name not in apart for part in _option(name, value, shelf)]
    options += [f"--{name}={shelf.find(file)}" for name in command.files for file in asked.get(name, ())]
    read = [str(shelf.find(name)) for name in asked.get(command.reads, ())]
    makes = str(asked.get(command.writes, ""))
    if makes:
        shelf.place(makes)
    begin = ("-C", str(folder), *command.words) if command.repository else command.words

    def steps(scratch: Path) -> list[JobStep]:
        made: list[JobStep] = []
        sources = read
        if command.own and not read:
            made.append(exported(folder, scratch / _OWN))
            sources = [str(scratch / _OWN)]
        target = str(scratch / makes)
        named = [f"--{command.option}={target}"] if makes and command.option else []
        after = [*sources, *asked.get(command.follows, ()), *([target] if makes and not command.option else [])]
        made.append(JobStep("Begun ...", (*begin, *options, *named, "--json", "--", *after)))
        return made

    return Work(command.name, asked, steps, makes)


def comparison(folder: Path, policies: Sequence[str], budgets: Sequence[float], cycle: str) -> Work:
    """What other policies or budgets would have found in the repository's own history."""

    def steps(scratch: Path) -> list[JobStep]:
        file = scratch / _OWN
        chosen = [f"--policy={name}" for name in policies] + [f"--budget={budget!r}" for budget in budgets]
        how = [*chosen, f"--cycle={cycle}", "--seeds=1", "--workers=1", "--json", "--", str(file)]
        compare = JobStep("Replaying it under the policies ...", ("lab", "compare", *how))
        return [exported(folder, file), compare]

    return Work(COMPARISON, {"policies": list(policies), "budgets": list(budgets), "cycle": cycle}, steps)


def exported(folder: Path, file: Path) -> JobStep:
    """The repository's history as a file."""
    return JobStep("Reading the history ...", ("-C", str(folder), "export", "--json", "--", str(file)))


def _option(name: str, value: Any, shelf: Uploads) -> list[str]:
    word = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [word] if value else []
    values = value if isinstance(value, list) else [value]
    return [f"{word}={_inside(name, item, shelf)}" for item in values]


def _inside(name: str, value: Any, shelf: Uploads) -> Any:
    """A value that names a file names one of the shelf."""
    for word in _FILED.get(name, ()):
        if isinstance(value, str) and value.startswith(word):
            return f"{word}{shelf.find(value.removeprefix(word))}"
    return value


def within(folder: Path, importance: str) -> None:
    """Complain about a setting that would have a client name a file outside the repository."""
    kind, colon, path = importance.partition(":")
    if colon and f"{kind}:" in _FILED["importance"]:
        inner = (folder / path).resolve()
        if not inner.is_relative_to(folder.resolve()):
            raise UsageError("over HTTP only files in the repository's own folder can be named")
