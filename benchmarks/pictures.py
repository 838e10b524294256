"""Pictures of the dashboard for the README: `python -m benchmarks.pictures docs/pictures`.

A generated web is crawled and refreshed for three weeks of its own time, which takes a minute or two of ours; the
system's Chromium takes the pictures.
"""

import argparse
import shutil
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from playwright.sync_api import sync_playwright
from tests.living import live

from recrawl.record.store import SqliteStore
from recrawl.serve.service import Service, ServiceConfig

_ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
_PICTURES = (("overview.png", "/", "light"), ("site.png", "/sites/0", "dark"))
_MOST_BYTES = 300_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--days", type=int, default=21, help="how long the web is refreshed")
    given = parser.parse_args()
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("there is no Chromium here: install it (Debian: chromium)")
    given.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="recrawl-pictures-") as scratch:
        living = live(Path(scratch) / "news", sites=5, pages=90, days=given.days, budget=0.3)
        _as_if_running(living.folder)
        with Service(living.folder, ServiceConfig()) as service, sync_playwright() as driver:
            browser = driver.chromium.launch(executable_path=chromium, args=list(_ARGUMENTS))
            for name, path, scheme in _PICTURES:
                context = browser.new_context(viewport={"width": 1280, "height": 860}, color_scheme=scheme)
                page = context.new_page()
                page.goto(service.url.rstrip("/") + path)
                page.screenshot(path=given.folder / name)
                size = (given.folder / name).stat().st_size
                print(f"wrote {given.folder / name}, {size:,} bytes")
                assert size < _MOST_BYTES, f"{name} is too large for a README"
                context.close()
            browser.close()


def _as_if_running(folder: Path) -> None:
    """The web is gone by now: put the next cycle off, so that none is tried while the pictures are taken."""
    with closing(SqliteStore(folder / "recrawl.db")) as store:
        store.meta.set("serve:base", time.time())


if __name__ == "__main__":
    main()
