"""How much code runs for a visit: `python -m benchmarks.visit_size`.

Nine pages change, and `recrawl cycle` refreshes them. Counted are the modules and functions of recrawl that run in the
crawler's process (reader processes apart), the functions that only pass on, and the deepest stack of ours; then those
of the packages that a visit passes, and those that run for one more changed page.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType

from tests.world import Repo, Site, page

import recrawl
from benchmarks.report import Table

SOURCE = Path(recrawl.__file__).parent
VISIT = ("crawl", "fetch", "compare", "discover", "record")
PAGES = 9


class Counted:
    """The functions that ran, and the deepest stack."""

    def __init__(self) -> None:
        self.codes: set[CodeType] = set()
        self.deepest = self._depth = 0

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        code = frame.f_code
        if not code.co_filename.startswith(str(SOURCE)):
            return
        if event == "call":
            self._depth += 1
            self.deepest = max(self.deepest, self._depth)
            self.codes.add(code)
        elif event == "return":
            self._depth -= 1

    def functions(self, packages: tuple[str, ...] = ()) -> set[tuple[str, str, int]]:
        """File, name and line of each function; those of these packages alone, if any are named."""
        found = {(str(Path(it.co_filename).relative_to(SOURCE)), it.co_name, it.co_firstlineno) for it in self.codes}
        found = {it for it in found if not it[1].startswith("<")}
        return {it for it in found if not packages or it[0].startswith(tuple(f"{name}/" for name in packages))}


@contextmanager
def counted() -> Iterator[Counted]:
    """Count what runs."""
    found = Counted()
    sys.setprofile(found)
    try:
        yield found
    finally:
        sys.setprofile(None)


def only_pass_on(functions: set[tuple[str, str, int]]) -> int:
    """The functions whose body is one call, without the docstring."""
    count = 0
    for file in {it[0] for it in functions}:
        lines = {line for path, _, line in functions if path == file}
        for node in ast.walk(ast.parse((SOURCE / file).read_text(encoding="utf-8"))):
            if not isinstance(node, ast.FunctionDef):
                continue
            first = min([node.lineno, *(it.lineno for it in node.decorator_list)])
            body = [it for it in node.body if not (isinstance(it, ast.Expr) and isinstance(it.value, ast.Constant))]
            calls = (
                len(body) == 1 and isinstance(body[0], ast.Return | ast.Expr) and isinstance(body[0].value, ast.Call)
            )
            count += first in lines and calls
    return count


def cycle(changed: int) -> Counted:
    """A cycle that finds so many pages changed."""
    links = [f"/{number}" for number in range(PAGES)]
    with tempfile.TemporaryDirectory() as scratch, Site({"/": page("Front", *links)}) as site:
        for link in links:
            site[link] = page(f"Page {link}, as it was", title=link)
        repo = Repo.create(Path(scratch) / "repo")
        repo.crawl(site.url("/"))
        for link in links[:changed]:
            site[link] = page(f"Page {link} says something else now", title=link)
        repo.later(days=2)
        with counted() as found:
            repo.cycle(PAGES + 1)
    return found


def main() -> None:
    argparse.ArgumentParser(prog="python -m benchmarks.visit_size", description=__doc__.partition("\n")[0]).parse_args()
    cycle(1)  # everything is loaded
    found, none = cycle(PAGES), cycle(0)
    whole, visit = found.functions(), found.functions(VISIT)
    one = visit - none.functions(VISIT)
    rows = []
    parts = {"`recrawl cycle`": whole, "of it, " + ", ".join(VISIT): visit, "if a page changes": one}
    for name, functions in parts.items():
        counts = (len({it[0] for it in functions}), len(functions), only_pass_on(functions))
        rows.append([name, *map(str, counts)])
    Table(f"{PAGES} changed pages", ["what runs", "modules", "functions", "that only pass on"], rows).show()
    print(f"deepest stack of ours: {found.deepest}")


if __name__ == "__main__":
    main()
