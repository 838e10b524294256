"""The shape of the code, held by machine rather than by hope. Import directions are checked by lint-imports."""

from __future__ import annotations

import ast
import statistics
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

import recrawl

SOURCE = Path(recrawl.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
NAMES = [str(path.relative_to(SOURCE)) for path in MODULES]
BLAND = {"utils", "util", "helpers", "helper", "misc", "common", "tools"}


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def code_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Its length without its docstring."""
    length = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    if ast.get_docstring(node) is not None:
        length -= (first.end_lineno or first.lineno) - first.lineno + 1
    return length


def test_there_is_something_to_check() -> None:
    assert len(MODULES) > 80


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_module_is_short(path: Path) -> None:
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400


def test_most_modules_are_shorter() -> None:
    lengths = [len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES if path.name != "__init__.py"]
    assert statistics.median(lengths) <= 150


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_functions_are_short(path: Path) -> None:
    assert {node.name: code_lines(node) for node in functions(path) if code_lines(node) > 60} == {}


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_names_say_something(path: Path) -> None:
    assert path.stem not in BLAND


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_no_global_and_nothing_caught_blindly(path: Path) -> None:
    for node in ast.walk(tree(path)):
        assert not isinstance(node, ast.Global), f"line {node.lineno}"
        if isinstance(node, ast.ExceptHandler):
            assert node.type is not None, f"line {node.lineno}"
            caught = {name.id for name in ast.walk(node.type) if isinstance(name, ast.Name)}
            assert not caught & {"Exception", "BaseException"}, f"line {node.lineno}"


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_imports_stand_at_the_top(path: Path) -> None:
    for function in functions(path):
        for node in ast.walk(function):
            assert not isinstance(node, ast.Import | ast.ImportFrom), f"line {node.lineno}"


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_everything_public_has_a_docstring(path: Path) -> None:
    module = tree(path)
    if not (path.name == "__init__.py" and not module.body):
        assert ast.get_docstring(module), "the module"
    assert list(undocumented(module.body)) == []


def undocumented(body: list[ast.stmt]) -> Iterator[str]:
    """Public classes, functions and methods that say nothing about themselves."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None:
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{name}" for name in undocumented(node.body))


@pytest.mark.parametrize("path", MODULES, ids=NAMES)
def test_nothing_is_left_to_do(path: Path) -> None:
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                assert not {"TODO", "FIXME", "XXX", "HACK"} & set(token.string.replace(":", " ").split()), token.line


def test_every_verb_has_its_file() -> None:
    from recrawl.cli import VERBS

    files = {path.stem for path in (SOURCE / "cli").glob("*.py")}
    assert {verb for verb in VERBS if not files & {verb, f"{verb}s", f"{verb}ning"}} == set()


def test_public_names_are_sorted() -> None:
    """All of them are there; a person can see in one place what may be relied on."""
    names = vars(recrawl).get("__all__", [])
    assert names == sorted(names)
    assert len(names) == len(set(names))
    assert all(hasattr(recrawl, name) for name in names)
    assert 1 <= len(names) <= 30


def test_every_list_of_public_names_is_true() -> None:
    for path in MODULES:
        for node in tree(path).body:
            if isinstance(node, ast.Assign) and any(
                isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets
            ):
                names = ast.literal_eval(node.value)
                assert len(names) == len(set(names)), path
