"""The report of a run: a Markdown page, one chart per picture, and JSON with everything.

experiments.md          verdicts with reasons, charts, tables
experiments/NAME.svg    the charts
experiments/NAME.json   rows, published values, claims
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recrawl.lab.experiments import DOCUMENTS
from recrawl.lab.experiments.result import Experiment, Result, Row, Verdict

PAGE = "experiments.md"
FOLDER = "experiments"
_INTRODUCTION = """\
Each experiment repeats a table or figure of a source document: on a world generated from what the document prints and,
where archives were given, on the histories of real sites. Every statement of the document that can be checked is judged
on each of them: it *holds*, it *does not hold*, it *cannot be said*, or it was *built in*: the world was generated from
that very statement and can only agree. No world was adjusted to make a claim hold.

How to read it. The archives are a convenience sample, mostly of present-day project and documentation sites: a claim
about news sites, or about the web of 2002, is not refuted if it does not hold there. Generated worlds rest on
assumptions that the documents do not print; each world's module names them. A reason is *tested*
where it names a separate run that tested it; otherwise it is *assumed*. Some rules of judgement were set after a first
small run: that differences under 2 % decide nothing, what counts as "three times" and "twice", that T's policies run
one sample at a time (in batches the cluster policy could not show any effect of d), and that table 4.1 of Q is
compared as a mean over runs (a single run was up to 12 points off)."""
_FOLD_ROWS = 14
"""Tables with more rows are collapsed."""
_MAX_ROWS = 150
"""Tables with more rows are in the JSON only."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """An experiment, its result, and how long it took."""

    experiment: Experiment
    result: Result
    seconds: float


def as_json(done: FinishedRun) -> dict[str, Any]:
    """Everything about a run, as JSON values."""
    experiment, result = done.experiment, done.result
    value = {
        "name": experiment.name,
        "document": DOCUMENTS[experiment.document],
        "place": experiment.place,
        "title": experiment.title,
        "worlds": result.worlds,
        "claims": [asdict(claim) for claim in result.claims],
        "published": result.published,
        "rows": result.rows,
        "notes": result.notes,
        "seconds": round(done.seconds, 2),
    }
    plain: dict[str, Any] = _json_value(value)
    return plain


def _json_value(value: Any) -> Any:
    """The value without NaN and infinities, which become null."""
    if isinstance(value, Mapping):
        return {str(key): _json_value(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def write(folder: Path, runs: Sequence[FinishedRun], how: str) -> Path:
    """Write the whole report; `how` is a sentence on how it was made. Returns the path of the page."""
    files = folder / FOLDER
    files.mkdir(parents=True, exist_ok=True)
    parts = [_head(runs, how), *(_section(done, files) for done in runs)]
    page = folder / PAGE
    page.write_text("\n\n".join(parts) + "\n", encoding="utf-8")
    return page


def _head(runs: Sequence[FinishedRun], how: str) -> str:
    lines = [
        "# Experiments",
        "",
        how,
        "",
        _INTRODUCTION,
        "",
        "| experiment | of | holds | does not hold | cannot be said | built in |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for done in runs:
        experiment = done.experiment
        verdicts = [claim.verdict for claim in done.result.claims]
        counts = " | ".join(str(verdicts.count(kind)) for kind in Verdict)
        lines.append(
            f"| [{experiment.name}](#{_anchor(_heading(done))}) {experiment.title} "
            f"| {experiment.document} {experiment.place} | {counts} |"
        )
    lines += ["", *(f"{key} = {title}.  " for key, title in DOCUMENTS.items() if _is_used(key, runs))]
    return "\n".join(lines).rstrip()


def _is_used(document: str, runs: Sequence[FinishedRun]) -> bool:
    return any(done.experiment.document == document for done in runs)


def _heading(done: FinishedRun) -> str:
    experiment = done.experiment
    return f"{experiment.name}: {experiment.title}"


def _anchor(heading: str) -> str:
    """The heading's anchor as GitHub makes it.

    >>> _anchor("q-fig2.2: ChangeRatio by sample size")
    'q-fig22-changeratio-by-sample-size'
    """
    kept = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in "-_ ")
    return kept.replace(" ", "-")


def _section(done: FinishedRun, files: Path) -> str:
    experiment, result = done.experiment, done.result
    name = f"{experiment.name}.json"
    (files / name).write_text(json.dumps(as_json(done), ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    lines = [f"## {_heading(done)}", "", f"{experiment.document} {experiment.place}. [All numbers]({FOLDER}/{name})."]
    lines += ["", *(f"- {world}" for world in result.worlds)] if result.worlds else []
    lines += ["", *_claims(result)] if result.claims else []
    for image, title in _charts(done, files):
        lines += ["", f"![{title}]({FOLDER}/{image})"]
    lines += ["", *_table(result.rows, result.table)]
    lines += ["", *(f"{note}\n" for note in result.notes)] if result.notes else []
    return "\n".join(lines).rstrip()


def _claims(result: Result) -> list[str]:
    lines = ["| claim | world | verdict | measured | reason (tested or assumed) |", "|---|---|---|---|---|"]
    for claim in result.claims:
        cells = (f"{claim.says} ({claim.place})", claim.world, f"**{claim.verdict}**", claim.measured, claim.why)
        lines.append(f"| {' | '.join(_escaped(cell) for cell in cells)} |")
    return lines


def _charts(done: FinishedRun, files: Path) -> list[tuple[str, str]]:
    """Draw the pictures; return their file names and titles."""
    from recrawl.lab import charts  # lazy: slow to load, and not every run draws

    made = []
    for number, picture in enumerate(done.result.pictures, 1):
        rows = picture.shown(done.result.rows)
        if rows:
            name = f"{done.experiment.name}{'' if number == 1 else f'-{number}'}.svg"
            charts.save(charts.draw(picture, rows), files / name)
            made.append((name, picture.title))
    return made


def _table(rows: Sequence[Row], columns: Mapping[str, str] | None) -> list[str]:
    if not rows:
        return []
    if len(rows) > _MAX_ROWS:
        return [f"The {len(rows)} rows behind the chart are in the JSON."]
    shown = columns or {key: key for row in rows for key in row}
    lines = [
        "| " + " | ".join(heading.lstrip(">") for heading in shown.values()) + " |",
        "|" + "|".join("--:" if heading.startswith(">") else "---" for heading in shown.values()) + "|",
        *("| " + " | ".join(_cell(row.get(key)) for key in shown) + " |" for row in rows),
    ]
    if len(rows) <= _FOLD_ROWS:
        return lines
    return ["<details>", f"<summary>{len(rows)} rows</summary>", "", *lines, "", "</details>"]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return _escaped(str(value))
    if isinstance(value, int):
        return f"{value:,}"
    return "" if not math.isfinite(value) else f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3f}"


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
