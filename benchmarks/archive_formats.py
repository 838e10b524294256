"""What the formats of the archive take: bytes a version and CPU time, `python -m benchmarks.archive_formats`.

Every round crawls the benchmark's site with each format in turn, then refreshes it after a tenth of the pages has
changed. `--archive FILE` imports the history of a real site instead, with `recrawl import`. Ratios are taken within a
round.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import recrawl
from benchmarks import ours
from benchmarks.measure import Cost
from benchmarks.report import Table, number
from benchmarks.web import Web, running

FORMATS = ("warc.gz", "warc.zst")
CHANGED = 0.1
_FEWEST = 100
"""Pages of the generated site where it is not crawled."""


@dataclass(frozen=True)
class Taken:
    """What one run has taken."""

    versions: int
    stored: int
    cpu: float

    @property
    def bytes(self) -> float:
        return self.stored / self.versions

    @property
    def microseconds(self) -> float:
        return 1e6 * self.cpu / self.versions


def crawled(web: Web, folder: Path, archive_format: str) -> Taken:
    """Crawl and refresh the benchmark's site."""
    web.generation(0, 0.0)
    web.reset()
    repository = _made(web, folder, archive_format)
    repository.add()
    cost = repository.crawl().cpu
    web.generation(1, CHANGED)
    return _taken(folder, cost + repository.cycle(web.pages).cpu)


def imported(web: Web, folder: Path, archive_format: str, archive: Path) -> Taken:
    """Import a history."""
    cost: Cost = _made(web, folder, archive_format).measured("import", str(archive))
    return _taken(folder, cost.cpu)


def _made(web: Web, folder: Path, archive_format: str) -> ours.Repository:
    repository = ours.Repository(folder, web)
    repository.init(index=False, archive_format=archive_format)
    return repository


def _taken(folder: Path, cpu: float) -> Taken:
    with recrawl.open(folder) as repository:
        versions = sum(1 for _ in repository.versions())
    return Taken(versions, sum(file.stat().st_size for file in (folder / "archive").iterdir()), cpu)


def rounds(web: Web, archives: list[Path], repeats: int, work: Path) -> dict[str, list[dict[str, Taken]]]:
    """By source, and round by round: what each format has taken."""
    sources = {archive.name: archive for archive in archives} or {f"{web.pages:,} generated pages": None}
    found: dict[str, list[dict[str, Taken]]] = {name: [] for name in sources}
    for at in range(repeats):
        for name, archive in sources.items():
            taken = {}
            for archive_format in FORMATS[:: 1 if at % 2 else -1]:
                with _folder(work) as folder:
                    made = (web, folder, archive_format)
                    taken[archive_format] = crawled(*made) if archive is None else imported(*made, archive)
            found[name].append(taken)
    return found


@contextmanager
def _folder(work: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=work) as scratch:
        yield Path(scratch) / "repository"


def table(found: dict[str, list[dict[str, Taken]]]) -> Table:
    """Bytes and CPU time of a version, and the ratios to gzip."""
    rows = []
    for name, taken in found.items():
        for archive_format in FORMATS:
            of = [one[archive_format] for one in taken]
            ratios = [one[archive_format].cpu / one["warc.gz"].cpu for one in taken]
            size = statistics.median(one.bytes for one in of)
            rows.append(
                [
                    f"{name}, {archive_format}",
                    f"{of[0].versions:,}",
                    f"{size:,.0f}",
                    number(size / statistics.median(one["warc.gz"].bytes for one in taken)),
                    f"{statistics.median(one.microseconds for one in of):.0f}",
                    f"{number(statistics.median(ratios))} ({number(min(ratios))} to {number(max(ratios))})",
                ]
            )
    heads = ["source and format", "versions", "bytes a version", "ratio", "CPU us a version", "ratio (range)"]
    return Table("Formats of the archive", heads, rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.archive_formats", description=__doc__.partition("\n")[0]
    )
    parser.add_argument("--pages", type=int, default=3000, help="pages of the generated site")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--archive", type=Path, action="append", default=[], help="history to import; repeatable")
    parser.add_argument("--work", type=Path, default=None, help="folder for the repositories")
    chosen = parser.parse_args()
    with (
        running(chosen.pages if not chosen.archive else _FEWEST) as web,
        tempfile.TemporaryDirectory(dir=chosen.work) as work,
    ):
        table(rounds(web, chosen.archive, chosen.rounds, Path(work))).show()


if __name__ == "__main__":
    main()
