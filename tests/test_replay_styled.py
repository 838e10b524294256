"""Independent replay tools, pywb and ReplayWeb.page, show a styled page with its images from our WARC and WACZ files.

Both are shown in a real browser that can reach nothing else: the site is gone by then. ReplayWeb.page comes from npm
once, into the user's cache folder; where that is not possible, its test is skipped.
"""

from __future__ import annotations

import fcntl
import functools
import http.server
import io
import os
import re
import shutil
import socket
import subprocess
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from playwright.sync_api import Browser, FrameLocator, Page, expect

from tests.test_replay_pywb import _manage, python
from tests.test_serve_dashboard import CHROMIUM, browser
from tests.test_serve_replay import article, png, sheet
from tests.world import Reply, Repo, Site

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: install the package chromium to test replay")
__all__ = ["browser", "python"]
_REPLAYWEB = "replaywebpage@2.4.6"
_SERVE = """
from gevent.monkey import patch_all
patch_all()
import sys
from gevent.pywsgi import WSGIServer
from pywb.apps.frontendapp import FrontEndApp
WSGIServer(("127.0.0.1", int(sys.argv[1])), FrontEndApp(), log=None).serve_forever()
"""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Path], str]:
    """The archive of a styled page as WARC and as WACZ, and the URL of the page; its server is gone."""
    repo = Repo.create(tmp_path_factory.mktemp("styled") / "repo", requisites="all")
    pages = {"/red.png": png(255, 0, 0), "/set.png": png(0, 255, 0), "/bg.png": png(0, 0, 255)}
    with Site({"/": article("Words."), "/css/site.css": sheet("rgb(200, 0, 0)"), **pages}) as site:
        site["/css/more.css"] = Reply(b"p { font-weight: 700 }", kind="text/css")
        repo.crawl(site.url("/"))
        packed = tmp_path_factory.mktemp("packed") / "copy.wacz"
        repo.run("export", packed)
        (archive,) = (repo.folder / "archive").iterdir()
        return {"warc.gz": archive, "wacz": packed}, site.url("/")


def is_styled(frame: FrameLocator) -> None:
    """The page is there with its stylesheets, the one that is imported too, and with its images."""
    expect(frame.locator("#words")).to_have_text("Words.")
    expect(frame.locator("h1")).to_have_css("color", "rgb(200, 0, 0)")
    expect(frame.locator("#words")).to_have_css("font-weight", "700")
    for name in ("red", "set"):
        expect(frame.locator(f"#{name}")).to_have_js_property("naturalWidth", 8)
    expect(frame.locator("#bg")).to_have_css("background-image", re.compile("bg.png"))


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    context = browser.new_context()
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("kind", ["warc.gz", "wacz"])
def test_pywb_shows_a_styled_page(
    python: Path, crawled: tuple[dict[str, Path], str], tmp_path: Path, tab: Page, kind: str
) -> None:
    files, url = crawled
    _manage(python, tmp_path, "init", "copy")
    _manage(python, tmp_path, "add", *(("--unpack-wacz",) if kind == "wacz" else ()), "copy", str(files[kind]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    words = [str(python), "-W", "ignore", "-c", _SERVE, str(port)]
    server = subprocess.Popen(words, cwd=tmp_path, env=alone, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_for(f"http://127.0.0.1:{port}/copy/", server)
        tab.goto(f"http://127.0.0.1:{port}/copy/{url}")
        is_styled(tab.frame_locator("iframe"))
    finally:
        server.kill()
        server.wait()


@pytest.mark.parametrize("kind", ["warc.gz", "wacz"])
def test_replayweb_page_shows_a_styled_page(
    crawled: tuple[dict[str, Path], str], replayweb: Path, tmp_path: Path, tab: Page, kind: str
) -> None:
    files, url = crawled
    (tmp_path / "replay").mkdir()
    shutil.copy(replayweb / "ui.js", tmp_path)
    shutil.copy(replayweb / "sw.js", tmp_path / "replay")
    shutil.copy(files[kind], tmp_path / f"copy.{kind}")
    element = f'<replay-web-page source="/copy.{kind}" url="{url}" embed="replayonly"></replay-web-page>'
    (tmp_path / "index.html").write_text(f"<!doctype html><script src=ui.js></script><body>{element}</body>")
    # The inner page is asked for before the service worker is sure to answer for it: without a file of its own, what
    # came was now and then the server's list of the folder, and stayed.
    inner = "<!doctype html><script src=/ui.js></script><body><replay-app-main></replay-app-main></body>"
    (tmp_path / "replay" / "index.html").write_text(inner)
    with Served(tmp_path) as root:
        tab.goto(f"{root}/index.html")
        is_styled(tab.frame_locator("replay-web-page iframe").frame_locator("iframe"))


@pytest.fixture(scope="module")
def replayweb() -> Path:
    """The files of ReplayWeb.page, downloaded once."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "recrawl"
    folder = cache / _REPLAYWEB.replace("@", "-")
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "package" / "ui.js").exists():
            folder.mkdir(exist_ok=True)
            npm = shutil.which("npm")
            if npm is None:
                pytest.skip("no npm: install it to test ReplayWeb.page")
            words = [npm, "pack", "--silent", _REPLAYWEB]
            ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
            if ended.returncode:
                pytest.skip(f"ReplayWeb.page cannot be downloaded: {ended.stderr.strip().splitlines()[-1:]}")
            with tarfile.open(folder / ended.stdout.strip().splitlines()[-1]) as packed:
                packed.extractall(folder, filter="data")
    return folder / "package"


class Served:
    """A folder over HTTP; a service worker needs an origin of its own."""

    def __init__(self, folder: Path) -> None:
        handler = functools.partial(_Quiet, directory=str(folder))
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)

    def __enter__(self) -> str:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return f"http://127.0.0.1:{self._server.server_port}"

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files, and parts of them: a WACZ is read from its end."""

    def log_message(self, *_: object) -> None:
        pass

    def send_head(self) -> Any:
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if asked is None:
            return super().send_head()
        whole = Path(self.translate_path(self.path)).read_bytes()
        first = int(asked[1]) if asked[1] else max(0, len(whole) - int(asked[2]))
        last = min(int(asked[2]), len(whole) - 1) if asked[1] and asked[2] else len(whole) - 1
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(whole)}")
        self.send_header("Content-Length", str(last - first + 1))
        self.send_header("Accept-Ranges", "bytes")
        self.end_headers()
        return io.BytesIO(whole[first : last + 1])


def _wait_for(url: str, server: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        assert server.poll() is None, "pywb has ended"
        try:
            with urlopen(url, timeout=10):
                return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("pywb does not answer")
