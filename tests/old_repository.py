"""The site behind tests/data/repository-0.1.tar.gz, and how that file was made.

The repository was written by recrawl 0.1 before the SQL moved behind a store protocol: a crawl and three cycles of the
policy `shock` over four days of March 2024. To make it again, check out that version and run this file with it:

    PYTHONPATH=src:. python tests/old_repository.py repository-0.1.tar.gz

The site has no port in its URLs, so that it can be served again on any free port: `served_at` connects all downloads to
that port, whatever URL they name.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import pycurl

from recrawl.fetch.access import Profile
from recrawl.fetch.http import Client
from tests.world import Page, Repo, Site, page

ORIGIN = "http://garden.localhost"
FIRST_DAY = datetime(2024, 3, 1, tzinfo=UTC).timestamp()
DAYS = 4
PLANTS = ("Aster", "Borage", "Clematis", "Dahlia", "Echinacea", "Foxglove")
NEWS = 6


def pages(day: int) -> dict[str, Page]:
    """The site on a day: the start page changes daily, the third news item on day 2, one plant goes on day 3."""
    plants = [name for name in PLANTS if not (name == "Foxglove" and day >= 3)]
    news = {f"/news/{number}": _item(number, day) for number in range(NEWS)}
    return {
        "/": page(f"Garden diary of day {day}", "/plants/", "/news/", title="Garden"),
        "/plants/": page("All plants in this garden", *(f"/plants/{name}" for name in plants), title="Plants"),
        "/news/": page(f"Latest entry: day {day}", *news, title="News"),
        **{f"/plants/{name}": page(f"{name} likes sun and water", title=name) for name in plants},
        **news,
    }


def _item(number: int, day: int) -> bytes:
    words = "the seedlings were planted out into their beds" if number == 2 and day >= 2 else "quiet as ever"
    return page(f"Entry {number} of the diary: {words}", title=f"Entry {number}")


@contextmanager
def served_at(port: int) -> Iterator[None]:
    """Connect every download to this port of the loopback interface."""
    usual = Client._new_transfer

    def redirected(client: Client, profile: Profile | None = None) -> Any:
        transfer = usual(client, profile)
        transfer.handle.setopt(pycurl.CONNECT_TO, [f"::127.0.0.1:{port}"])
        return transfer

    with mock.patch.object(Client, "_new_transfer", redirected):
        yield


def set_clock(repo: Repo, day: float) -> None:
    """Let commands see this day of the site as the present time."""
    repo.ahead = FIRST_DAY + day * 86400 - time.time()


def write(folder: Path) -> None:
    """Write the repository with the version that runs."""
    repo = Repo.create(folder)
    repo.config(policy="shock")
    with Site(pages(0)) as site, served_at(site.port):
        set_clock(repo, 0)
        repo.crawl(f"{ORIGIN}/")
        for day in range(1, DAYS):
            site.pages = pages(day)
            set_clock(repo, day)
            repo.cycle(12)


def main() -> None:
    """Write the compressed repository to the file that the command line names."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder) / "repository")
        with tarfile.open(sys.argv[1], "w:gz") as archive:
            archive.add(Path(folder) / "repository", "repository")


if __name__ == "__main__":
    main()
