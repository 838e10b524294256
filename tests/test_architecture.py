"""The shape of the code, held by machine rather than by hope. Import directions are checked by lint-imports."""

from __future__ import annotations

import ast
import functools
import inspect
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

import recrawl

pytestmark = pytest.mark.xdist_group("architecture")  # all parse the same files
SOURCE = Path(recrawl.__file__).parent
MODULES = sorted(SOURCE.rglob("*.py"))
BLAND = {"utils", "util", "helpers", "helper", "misc", "common", "tools"}


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(tree(path)))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def test_there_is_something_to_check() -> None:
    assert len(MODULES) > 80


def test_the_tests_of_a_group_go_to_one_worker(request: pytest.FixtureRequest) -> None:
    """Where pytest-xdist does not see the groups, each worker makes the shared fixtures again."""
    grouped = getattr(request.config.option, "loadgroup", False)
    assert request.node.nodeid.endswith("@architecture") == grouped


def name(path: Path) -> str:
    return str(path.relative_to(SOURCE))


UPDATES_OF_PAGES = {
    "record/store/sqlite/store.py": "visits, which tell which rows are outdated",
    "record/store/sql/tables/page_states.py": "lists the pages",
    "record/store/sql/tables/pages.py": "writes columns that are not kept",
    "record/store/sql/checks.py": "ends the list, or writes columns that are not kept",
    "record/store/sql/tables/erasing.py": "ends the list",
    "record/schema/migrations.py": "writes columns that are not kept",
    "record/store/postgres/schema.py": "writes columns that are not kept",
    "record/store/postgres/gathered/tables.py": "shards, which keep no columns",
}
"""Modules that update the table `pages`, and why columns kept in a file (`crawl/reports/page_rows`) stay right."""


def test_pages_are_updated_only_where_kept_columns_are_considered() -> None:
    update = re.compile(r"UPDATE\s+(?:\S+\.)?pages\b", re.IGNORECASE)
    found = {name(path) for path in MODULES if update.search(path.read_text(encoding="utf-8"))}
    assert found == UPDATES_OF_PAGES.keys()


def test_folders_list_what_they_hold() -> None:
    inits = [path for path in MODULES if path.name == "__init__.py" and path.parent != SOURCE]
    for init in inits:
        folder = init.parent
        modules = [it.stem for it in sorted(folder.glob("*.py")) if not it.stem.startswith("__")]
        packages = [it.parent.name for it in sorted(folder.glob("*/__init__.py"))]
        listed = set(re.findall(r"\w+", ast.get_docstring(tree(init)) or ""))
        assert [it for it in (*modules, *packages) if it not in listed] == [], folder


def test_module_names_say_something() -> None:
    assert [name(path) for path in MODULES if path.stem in BLAND] == []


def test_no_class_name_is_used_twice() -> None:
    classes = [it.name for path in MODULES for it in nodes(path) if isinstance(it, ast.ClassDef)]
    assert [it for it, times in Counter(classes).items() if times > 1] == []


def test_no_global_and_nothing_caught_blindly() -> None:
    assert [f"{name(path)}:{line}" for path in MODULES for line in blind_lines(nodes(path))] == []


def blind_lines(module: Iterable[ast.AST]) -> Iterator[int]:
    """Lines with a `global` statement, or with an `except` that catches everything and does not raise it again."""
    for node in module:
        if isinstance(node, ast.Global):
            yield node.lineno
        if isinstance(node, ast.ExceptHandler):
            caught = {it.id for it in ast.walk(node.type) if isinstance(it, ast.Name)} if node.type else {"Exception"}
            last = node.body[-1]
            if caught & {"Exception", "BaseException"} and not (isinstance(last, ast.Raise) and last.exc is None):
                yield node.lineno


def test_imports_inside_functions_are_documented_as_lazy() -> None:
    """An import inside a function costs nothing at start-up, and is allowed where a comment `# lazy: why` says so."""
    wrong = []
    for path in MODULES:
        lines = path.read_text(encoding="utf-8").splitlines()
        wrong += [
            f"{name(path)}:{node.lineno}"
            for function in functions(path)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom) and "# lazy: " not in lines[node.lineno - 1]
        ]
    assert wrong == []


def test_everything_public_has_a_docstring() -> None:
    missing = [name(path) for path in MODULES if tree(path).body and not ast.get_docstring(tree(path))]
    assert missing == []
    silent = [f"{name(path)}:{it}" for path in MODULES for it in undocumented(tree(path).body)]
    assert [it for it in silent if not it.startswith(("record/store/sql", "record/store/postgres"))] == []


def test_every_method_of_a_store_is_documented_in_its_protocol() -> None:
    from recrawl.record.store.sql import store as tables
    from recrawl.record.store.sqlite.store import SqliteStore

    classes = [it for it in vars(tables).values() if inspect.isclass(it) and it.__name__.startswith("Sql")]
    classes.append(SqliteStore)
    assert len(classes) >= 10
    methods = [(it, name) for it in classes for name in vars(it) if not name.startswith("_")]
    assert [f"{it.__name__}.{name}" for it, name in methods if not inspect.getdoc(getattr(it, name))] == []


def undocumented(body: list[ast.stmt]) -> Iterator[str]:
    """Public classes, functions and methods that say nothing about themselves."""
    for node in body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None:
            yield node.name
        if isinstance(node, ast.ClassDef):
            yield from (f"{node.name}.{name}" for name in undocumented(node.body))


def test_commands_and_service_do_not_reach_through_a_repository() -> None:
    """Import contracts cannot see `repo.storage.store`; what lies beneath the API is for `recrawl.repository` alone."""
    reached = [
        f"{name(path)}:{node.lineno}"
        for path in MODULES
        if name(path).startswith(("cli/", "serve/"))
        for node in nodes(path)
        if isinstance(node, ast.Attribute) and node.attr in ("storage", "store", "opened")
    ]
    assert reached == []


SQL = re.compile(r"\s*(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|ALTER|PRAGMA)\s+[\w*(]")
SQL_CALLS = {"execute", "executemany", "executescript"}


def sql_lines(module: Iterable[ast.AST]) -> Iterator[int]:
    """Lines that import sqlite3, hold an SQL statement or run one."""
    for node in module:
        if isinstance(node, ast.Import) and any(it.name.partition(".")[0] == "sqlite3" for it in node.names):
            yield node.lineno
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "sqlite3":
            yield node.lineno
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and SQL.match(node.value):
            yield node.lineno
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in SQL_CALLS:
            yield node.lineno


def test_all_sql_is_in_the_store() -> None:
    """Other packages call methods of `record.store.protocol.Store`; they never see a connection."""
    outside = [path for path in MODULES if not name(path).startswith("record/")]
    assert [f"{name(path)}:{line}" for path in outside for line in sql_lines(nodes(path))] == []
    assert list(sql_lines(ast.walk(ast.parse('import sqlite3\ndb.execute(f"SELECT {x} FROM y")')))) != []


def test_nothing_is_left_to_do() -> None:
    promises = {"TODO", "FIXME", "XXX", "HACK"}
    left = []
    for path in MODULES:
        text = path.read_text(encoding="utf-8")
        if not any(promise in text for promise in promises):
            continue
        left += [
            f"{name(path)}:{token.start[0]}"
            for token in tokenize.generate_tokens(io.StringIO(text).readline)
            if token.type == tokenize.COMMENT and promises & set(token.string.replace(":", " ").split())
        ]
    assert left == []


def test_every_verb_has_its_function() -> None:
    from recrawl.cli import GROUPS, MODULES, VERBS, command_of

    assert set(MODULES) == set(VERBS)
    assert [verb for verb in VERBS if verb not in GROUPS and not command_of(verb).example] == []


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
