"""Pages that need JavaScript, rendered by a real Chromium that has no network of its own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

import recrawl
from tests.crashes import ask
from tests.world import Asked, Page, Reply, Repo, Site, page, text

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: install the package chromium to test rendering")

_NOBODY = 65534
APP = b"""<!doctype html><title>App</title><body><div id=app>Loading</div><script src=/app.js></script></body>"""
SCRIPT = """fetch('/data.json').then(answer => answer.json()).then(data => {
  document.getElementById('app').innerHTML = '<p>' + data.words + '</p><a href="/linked">more</a>';
});"""


def script(words: str) -> Reply:
    return Reply(words.encode(), kind="text/javascript")


def data(words: str) -> Reply:
    return Reply(json.dumps({"words": words}).encode(), kind="application/json")


def app(words: str) -> dict[str, Page]:
    return {"/": APP, "/app.js": script(SCRIPT), "/data.json": data(words), "/linked": page("The linked page.")}


def records(repo: Repo) -> list[tuple[str, str]]:
    """Kind and path of the records, without requests and robots.txt."""
    found = []
    for path in sorted((repo.folder / "archive").iterdir()):
        with path.open("rb") as file:
            for one in ArchiveIterator(file):
                url = one.rec_headers.get_header("WARC-Target-URI") or ""
                if one.rec_type in ("response", "revisit", "conversion") and not url.endswith("robots.txt"):
                    found.append((one.rec_type, "/" + url.partition("://")[2].partition("/")[2]))
    return found


def show(repo: Repo, url: str) -> str:
    return repo.run("show", url).out


def test_the_text_links_and_changes_are_those_after_scripts(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", render="always", requisite_hours=1)
    with Site(app("Words from a script.")) as site:
        repo.crawl(site.url("/"))
        assert "Words from a script." in show(repo, site.url("/"))
        assert repo.found("script") == {site.url("/")}
        assert set(repo.pages()) == {site.url("/"), site.url("/linked")}
        kinds = records(repo)
        for wanted in (("response", "/"), ("conversion", "/"), ("response", "/app.js"), ("response", "/data.json")):
            assert wanted in kinds
        repo.later(hours=2)
        repo.cycle()
        site["/data.json"] = data("Other words entirely.")
        repo.later(hours=2)
        repo.cycle()
        assert repo.outcomes(site.url("/")) == ["new", "unchanged", "changed"]
        assert "Other words entirely." in show(repo, site.url("/"))
        newest = recrawl.open(repo.folder).page(site.url("/")).versions[-1]
        assert b"Loading" in newest.body
        assert "Other words" in repo.run("diff", site.url("/")).out
    assert repo.run("check").code == 0


def test_never_is_the_default_and_a_site_may_differ(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    with Site(app("one")) as one, Site(app("two")) as two:
        repo.add(one.url("/"))
        repo.add(two.url("/"), "--render", "always")
        repo.crawl()
        assert "Loading" in show(repo, one.url("/"))
        assert "two" in show(repo, two.url("/"))
        assert one.asked() == ["/"]


@pytest.mark.parametrize("words", [("config", "render", "often"), ("add", "a.example", "--render", "often")])
def test_an_unknown_value_is_refused(tmp_path: Path, words: tuple[str, ...]) -> None:
    assert "'often'" in Repo.create(tmp_path / "repo").run(*words, code=2).err


def test_auto_stops_where_rendering_makes_no_difference(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", render="auto")
    links = [f"/{number}" for number in range(8)]
    plain = {path: page(f"Page {path}") + b"<script src=/x.js></script>" for path in links}
    with Site({"/": page("Home", *links), **plain, "/x.js": script("1")}) as site, Site(app("Needed.")) as needy:
        repo.crawl(site.url("/"), needy.url("/"))
        kinds = [path for kind, path in records(repo) if kind == "conversion"]
        assert 5 <= len([path for path in kinds if path in ("/", *links)]) <= 8
        learned = json.loads(ask(repo.folder, "SELECT value FROM meta WHERE name = 'rendering'")[0][0])
        assert learned[site.url("")][0] >= 5
        assert learned[site.url("")][1] == 0
        assert learned[needy.url("")][1] > 0
        site["/0"] = page("Page 0 has changed.") + b"<script src=/x.js></script>"
        before = len(records(repo))
        repo.later(hours=2)
        repo.cycle()
        assert ("conversion", "/0") not in records(repo)[before:]


def test_requests_of_a_page_obey_robots_txt_the_address_rules_and_the_limits(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", render="always", render_requests=5)
    with Site() as site, Site({"/secret": page("private")}) as private:
        named = private.url("/secret", host="rebound.localhost")  # a name that turns out to be a private address
        urls = ("/in", "/out/x", private.url("/secret"), "/hop", named, "/5", "/6", "/7")
        fetches = "".join(f"get('{url}');" for url in urls)
        get = "const get = url => fetch(url).then(a => a.text()).then(t => { document.body.append(' got:' + t); });"
        site["/"] = f"<body>start <script>{get}{fetches}</script>".encode()
        site["/in"] = Reply(b"inside", kind="text/plain")
        site["/out/x"] = Reply(b"forbidden", kind="text/plain")
        site["/hop"] = Reply(b"", 302, {"Location": private.url("/secret")})
        for number in (5, 6, 7):
            site[f"/{number}"] = Reply(b"beyond", kind="text/plain")
        site["/robots.txt"] = text("User-agent: *\nDisallow: /out/\n")
        repo.crawl(site.url("/"))
        shown = show(repo, site.url("/"))
        assert "got:inside" in shown
        assert "forbidden" not in shown
        assert "private" not in shown
        assert "beyond" not in shown
        assert set(site.asked()) == {"/", "/in", "/hop"}
        assert private.log == []


HOSTILE = """<body>before<script>
alert('dialog'); window.open('{evil}/window'); navigator.sendBeacon('{evil}/beacon', 'x');
try {{ new WebSocket('{evil}/socket'.replace('http', 'ws')) }} catch (error) {{}}
fetch('{evil}/post', {{method: 'POST', body: 'x'}}).catch(() => 0);
const peer = window.RTCPeerConnection && new RTCPeerConnection({{iceServers: [{{urls: 'stun:127.0.0.1:{port}'}}]}});
if (peer) {{ peer.createDataChannel('x'); peer.createOffer().then(offer => peer.setLocalDescription(offer)); }}
navigator.serviceWorker && navigator.serviceWorker.register('/sw.js').catch(() => 0);
document.body.append(' after'); setTimeout(() => {{ location = '{evil}/away' }}, 10);
</script><iframe src="{evil}/frame"></iframe><a id=a download href="{evil}/download">x</a><script>a.click()</script>"""


def test_the_browser_itself_has_no_network(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", render="always", render_seconds=20)  # the page never comes to rest
    with Site() as site, Site() as evil, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stun:
        stun.bind(("127.0.0.1", 0))
        stun.setblocking(False)
        site["/"] = HOSTILE.format(evil=evil.url(""), port=stun.getsockname()[1]).encode()
        repo.crawl(site.url("/"))
        assert "before after" in " ".join(show(repo, site.url("/")).split())
        assert evil.log == []
        with pytest.raises(BlockingIOError):
            stun.recv(100)
        assert set(site.asked()) == {"/"}


HUNGRY = b"<script>const all = []; for (let n = 0; n < 400; n++) all.push(new Uint8Array(16e6).fill(1));</script>"


def test_a_page_that_hangs_or_takes_all_memory_costs_only_itself(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", render="always", render_seconds=20, change="text", requisite_hours=1)
    bad = {"/loop": page("A loop.") + b"<script>for (;;) ;</script>", "/b": APP, "/hungry": page("Hungry.") + HUNGRY}
    with Site({**app("Fine."), **bad}) as site:
        site["/start"] = page("Start", "/loop", "/hungry", "/b")
        assert repo.crawl(site.url("/start"))["failed"] == 0
        assert "A loop." in show(repo, site.url("/loop"))
        assert "Hungry." in show(repo, site.url("/hungry"))
        assert "Fine." in show(repo, site.url("/b"))
        assert "not rendered: " in repo.run("why", site.url("/loop")).out
        assert "not rendered: " in repo.run("log", "--visits", site.url("/loop")).out
        rendered = {path: repo.json("log", site.url(path))[0]["rendered"] for path in ("/loop", "/b")}
        assert rendered == {"/loop": False, "/b": True}
        assert "new, rendered" in repo.run("log", site.url("/b")).out


def test_a_failed_rendering_of_the_same_bytes_is_no_change(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", render="always", render_seconds=20, change="text", requisite_hours=1)
    with Site(app("Fine.")) as site:
        site["/notes.txt"] = text("no page of a browser")
        repo.crawl(site.url("/"), site.url("/notes.txt"))
        site["/app.js"] = script("for (;;) ;")
        repo.later(hours=2)
        repo.cycle()
        assert "not rendered: " in repo.run("log", "--visits", site.url("/")).out
        for path, words in (("/", "Fine."), ("/notes.txt", "no page of a browser")):
            assert repo.outcomes(site.url(path)) == ["new", "unchanged"]
            assert words in show(repo, site.url(path))
            assert len(repo.json("log", site.url(path))) == 1


def nobody(home: str) -> dict[str, Any]:
    """Arguments that start a process as another user."""
    environment = {**os.environ, "HOME": home, "TMPDIR": home, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return {"user": _NOBODY, "group": _NOBODY, "extra_groups": [], "cwd": home, "env": environment}


def python_of_nobody(home: str) -> str:
    """An interpreter that another user may run with our packages: that of the tests may be in a private folder."""
    test = "import recrawl.cli, playwright, pycurl, lxml, numpy"
    for python in (sys.executable, f"/usr/bin/python3.{sys.version_info.minor}"):
        with contextlib.suppress(OSError):
            if subprocess.run([python, "-c", test], check=False, capture_output=True, **nobody(home)).returncode == 0:
                return python
    pytest.skip("no Python that another user may run")


@pytest.mark.skipif(os.geteuid() != 0, reason="another user can be tried by root alone; the other tests are not root")
def test_without_root_the_sandbox_of_the_browser_stays_on(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as place, Site(app("Words from a script.")) as site:
        repo = Repo.create(Path(place) / "repo", render="always")
        repo.add(site.url("/"))
        reached, go = threading.Event(), threading.Event()

        def slow(_: Asked) -> Reply:
            reached.set()
            return Reply(SCRIPT.encode(), kind="text/javascript", until=go)

        site["/app.js"] = slow
        for path in (Path(place), *Path(place).rglob("*")):
            os.chown(path, _NOBODY, _NOBODY)
        process = subprocess.Popen(
            [python_of_nobody(place), "-m", "recrawl", "-C", str(repo.folder), "crawl", "--allow-private"],
            **nobody(place),
        )
        assert reached.wait(120)
        lines = browsers_of(process.pid).values()
        go.set()
        assert process.wait(120) == 0
        assert lines
        assert not [line for line in lines if b"--no-sandbox" in line]
        assert "Words from a script." in show(repo, site.url("/"))


def browsers_of(ancestor: int) -> dict[int, bytes]:
    """Browser processes that descend from a process, with their command lines; other tests have browsers too."""
    parents, lines = {}, browsers()
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])

    def descends(number: int) -> bool:
        while number and number != ancestor:
            number = parents.get(number, 0)
        return number == ancestor

    return {number: line for number, line in lines.items() if descends(number)}


def browsers() -> dict[int, bytes]:
    """Processes of browsers that crawlers have started, with their command lines."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes()
            if b"host-resolver-rules=MAP * ~NOTFOUND" in line:
                found[int(path.parent.name)] = line
    return found


def test_the_browser_ends_with_its_parent(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", render="always")
    reached, go = threading.Event(), threading.Event()

    def slow(_: Asked) -> Reply:
        reached.set()
        return Reply(b"1", kind="text/javascript", until=go)

    with Site({**app("x"), "/app.js": slow}) as site:
        repo.add(site.url("/"))
        process = repo.start("crawl")
        assert reached.wait(120)
        started = browsers_of(process.pid).keys()
        assert started
        process.kill()
        repo.wait(process)
        deadline = time.monotonic() + 60
        while browsers().keys() & started and time.monotonic() < deadline:
            time.sleep(0.1)
        assert not browsers().keys() & started
        go.set()


def test_without_chromium_a_run_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    repo = Repo.create(tmp_path / "repo", render="always")
    monkeypatch.setattr("recrawl.crawl.render.stage.shutil.which", lambda _: None)
    with Site(app("x")) as site:
        repo.add(site.url("/"))
        assert "Chromium" in repo.run("crawl", code=2).err
