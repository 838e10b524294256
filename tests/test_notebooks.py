"""The notebooks of examples/notebooks: whole, without stored outputs, and every code cell runs, in order."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = sorted((Path(__file__).resolve().parents[1] / "examples" / "notebooks").glob("*.ipynb"))
RUNNER = """
import ast, json, sys
cells = [cell for cell in json.loads(open(sys.argv[1]).read())["cells"] if cell["cell_type"] == "code"]
for number, cell in enumerate(cells):
    body = ast.parse("".join(cell["source"]), f"cell {number}")
    shown = body.body.pop() if body.body and isinstance(body.body[-1], ast.Expr) else None
    exec(compile(body, f"cell {number}", "exec"), globals())
    if shown is not None:
        print(repr(eval(compile(ast.Expression(shown.value), f"cell {number}", "eval"), globals())))
"""
"""Runs the cells as `__main__` and shows the value of a cell's last expression, as a notebook does."""


def read(notebook: Path) -> Any:
    return json.loads(notebook.read_text(encoding="utf-8"))


def test_both_are_there() -> None:
    assert [notebook.stem for notebook in NOTEBOOKS] == ["comparing-policies", "first-repository"]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_it_is_a_notebook_without_outputs(notebook: Path) -> None:
    content = read(notebook)
    assert content["nbformat"] == 4
    ids = [cell["id"] for cell in content["cells"]]
    assert len(set(ids)) == len(ids)
    assert content["cells"][0]["cell_type"] == "markdown"
    for cell in content["cells"]:
        assert "".join(cell["source"]).strip()
        assert cell["cell_type"] == "markdown" or (cell["outputs"], cell["execution_count"]) == ([], None)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_its_cells_run(notebook: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUNNER, str(notebook)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    expected = {"first-repository": "updates", "comparing-policies": "__main__:Restless(prior=0.1)"}
    assert expected[notebook.stem] in done.stdout
