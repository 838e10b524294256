"""The report of experiments: a Markdown page, one chart per picture, and JSON with everything.

experiments.md          verdicts with reasons, charts, tables
experiments/NAME.svg    the charts
experiments/NAME.json   rows, published values, claims, and how it was run

Each experiment is added when it is finished, and the page is made from the JSON of all that the folder holds. So an
interrupted run keeps what it has finished, and one report can be made in several runs.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from recrawl.durable_files import replace_file
from recrawl.lab.experiments import DOCUMENTS, EXPERIMENTS
from recrawl.lab.experiments.result import Experiment, Picture, Result, Row, Verdict

Saved = Mapping[str, Any]
"""An experiment in a report: the values of its JSON file."""

PAGE = "experiments.md"
FOLDER = "experiments"
_INTRODUCTION = """\
Each experiment repeats a table or figure of a source document: on a world generated from what the document prints and,
where archives were given, on the histories of real sites. Every statement of the document that can be checked is judged
on each of them: it *holds*, it *does not hold*, it *cannot be said*, or it was *built in*: the world was generated from
that very statement and can only agree. No world was adjusted to make a claim hold.

How to read it. The archives are a convenience sample, mostly of present-day project and documentation sites: a claim
about news sites, or about the web of 2002, is not refuted if it does not hold there. Generated worlds rest on
assumptions that the documents do not print; each world's module names them. A reason is *tested* or *measured* where
this run, or a separate one that it names, showed it; it holds *by construction* where the generated world makes it so;
otherwise it is *assumed*. Some rules of judgement were set after a first small run: that differences under 2 % decide
nothing, what counts as "three times" and "twice", that T's policies run one sample at a time (in batches the cluster
policy could not show any effect of d), and that table 4.1 of Q is compared as a mean over runs (a single run was up to
12 points off)."""
_FOLD_ROWS = 14
"""Tables with more rows are collapsed."""
_NUMBERS = re.compile(r"\[\n\s*(?:(?:-?[0-9.eE+-]+|null),?\s+)+\]")
_MAX_ROWS = 150
"""Tables with more rows are in the JSON only."""


@dataclass(frozen=True, slots=True)
class FinishedRun:
    """An experiment, its result, how long it took, and how it was run."""

    experiment: Experiment
    result: Result
    seconds: float
    run: Mapping[str, Any] = field(default_factory=dict)
    """Version, scale, seeds, processes, and whether there were archives."""


def as_json(done: FinishedRun) -> dict[str, Any]:
    """Everything about a run, as JSON values."""
    experiment, result = done.experiment, done.result
    value = {
        "name": experiment.name,
        "document": DOCUMENTS[experiment.document],
        "place": experiment.place,
        "title": experiment.title,
        "run": done.run,
        "worlds": result.worlds,
        "claims": [asdict(claim) for claim in result.claims],
        "published": result.published,
        "rows": result.rows,
        "table": result.table,
        "charts": [[name, picture.title] for name, picture in _charts(done)],
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


def add(folder: Path, done: FinishedRun) -> Path:
    """Add a finished experiment to the report, in place of an earlier run of it. Returns the path of the page."""
    from recrawl.lab import charts  # lazy: slow to load, and not every run draws

    files = folder / FOLDER
    files.mkdir(parents=True, exist_ok=True)
    for name, picture in _charts(done):
        charts.save(charts.draw(picture, picture.shown(done.result.rows)), files / name)
    path = files / f"{done.experiment.name}.json"
    replace_file(path, _json_text(as_json(done)))
    page = folder / PAGE
    saved = stored_runs(folder)
    replace_file(page, "\n\n".join([_head(saved), *map(_section, saved)]) + "\n")
    return page


def _json_text(value: Any) -> str:
    """Indented JSON, with lists of numbers on one line.

    >>> _json_text({"by_seed": [1, 2.5, None]})
    '{\\n "by_seed": [1, 2.5, null]\\n}\\n'
    """
    text = json.dumps(value, ensure_ascii=False, indent=1)
    return _NUMBERS.sub(lambda found: " ".join(found[0].split()).replace("[ ", "[").replace(" ]", "]"), text) + "\n"


def stored_runs(folder: Path) -> list[Saved]:
    """The experiments that a report holds, as JSON values, in the order of the documents; files of others are left."""
    files = [folder / FOLDER / f"{name}.json" for name in EXPERIMENTS]
    return [json.loads(file.read_text(encoding="utf-8")) for file in files if file.is_file()]


def _head(saved: Sequence[Saved]) -> str:
    lines = [
        "# Experiments",
        "",
        *_provenance(saved),
        "",
        _INTRODUCTION,
        "",
        "| experiment | of | holds | does not hold | cannot be said | built in |",
        "|---|---|--:|--:|--:|--:|",
    ]
    for one in saved:
        verdicts = [claim["verdict"] for claim in one["claims"]]
        counts = " | ".join(str(verdicts.count(kind)) for kind in Verdict)
        lines.append(
            f"| [{one['name']}](#{_anchor(_heading(one))}) {one['title']} | {_letter(one)} {one['place']} | {counts} |"
        )
    used = set(map(_letter, saved))
    lines += ["", *(f"{key} = {title}.  " for key, title in DOCUMENTS.items() if key in used)]
    return "\n".join(lines).rstrip()


def _provenance(saved: Sequence[Saved]) -> list[str]:
    """How the experiments were run, one sentence for those run alike; without paths, which mean nothing elsewhere."""
    alike: dict[str, list[Saved]] = {}
    for one in saved:
        alike.setdefault(json.dumps(one["run"], sort_keys=True), []).append(one)
    lines = []
    for ran in alike.values():
        run, minutes = ran[0]["run"], sum(one["seconds"] for one in ran) / 60
        which = f"{', '.join(one['name'] for one in ran)}: written" if len(alike) > 1 else "Written"
        lines.append(
            f"{which} by `recrawl lab reproduce` {run['version']}: scale {run['scale']:g}, seeds {run['seeds']}, "
            f"{'real archives' if run['archives'] else 'no archives'}, {minutes:.1f} minutes on {run['workers']} "
            "processes (cached replays are not repeated)."
        )
    return lines


def _letter(one: Saved) -> str:
    """The document's letter."""
    return next(key for key, title in DOCUMENTS.items() if title == one["document"])


def _heading(one: Saved) -> str:
    return f"{one['name']}: {one['title']}"


def _anchor(heading: str) -> str:
    """The heading's anchor as GitHub makes it.

    >>> _anchor("q-fig2.2: ChangeRatio by sample size")
    'q-fig22-changeratio-by-sample-size'
    """
    kept = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in "-_ ")
    return kept.replace(" ", "-")


def _section(one: Saved) -> str:
    place = f"{_letter(one)} {one['place']}"
    lines = [f"## {_heading(one)}", "", f"{place}. [All numbers]({FOLDER}/{one['name']}.json)."]
    lines += ["", *(f"- {world}" for world in one["worlds"])] if one["worlds"] else []
    lines += ["", *_claims(one["claims"])] if one["claims"] else []
    for image, title in one["charts"]:
        lines += ["", f"![{title}]({FOLDER}/{image})"]
    lines += ["", *_table(one["rows"], one["table"])]
    lines += ["", *(f"{note}\n" for note in one["notes"])] if one["notes"] else []
    return "\n".join(lines).rstrip()


def _claims(claims: Sequence[Row]) -> list[str]:
    read = ["reading"] * any(claim.get("reading") for claim in claims)
    headings = ["claim", "world", *read, "verdict", "measured", "reason (tested or assumed)"]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for claim in claims:
        says, verdict = f"{claim['says']} ({claim['place']})", f"**{claim['verdict']}**"
        cells = (says, claim["world"], *(claim[one] for one in read), verdict, claim["measured"], claim["why"])
        lines.append(f"| {' | '.join(_escaped(cell) for cell in cells)} |")
    return lines


def _charts(done: FinishedRun) -> list[tuple[str, Picture]]:
    """The pictures that show any rows, and the names of their files."""
    shown = [(n, it) for n, it in enumerate(done.result.pictures, 1) if it.shown(done.result.rows)]
    return [(f"{done.experiment.name}{'' if n == 1 else f'-{n}'}.svg", it) for n, it in shown]


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
