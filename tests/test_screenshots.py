"""Screenshots kept on request, by a real Chromium: stored once, compared, shown by command line, API and dashboard."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image
from playwright.sync_api import Browser, expect
from warcio.archiveiterator import ArchiveIterator

import recrawl
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.test_serve_dashboard import CHROMIUM, LOOKS, browser, tab
from tests.world import Reply, Repo, Site, text

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: install the package chromium to test screenshots")
__all__ = ["browser"]


def article(words: str, colour: str = "navy", extra: str = "") -> bytes:
    return f"""<!doctype html><title>News</title><style>body {{ margin: 0; font: 20px sans-serif }}
h1 {{ background: {colour}; color: white; margin: 0; height: 80px }} p {{ margin: 40px; height: 40px }}</style>
<h1>News</h1><p>{words}</p><p>A line that stays.</p>{extra}""".encode()


TALL = article("Long", extra="<div style='height: 20000px; background: linear-gradient(red, blue)'></div>")
NOISY = article(
    "Noise",
    extra="""<canvas width=1280 height=3000></canvas><script>
const box = document.querySelector('canvas'), pen = box.getContext('2d'), data = pen.createImageData(1280, 3000);
for (let at = 0, seed = 1; at < data.data.length; at++) data.data[at] = (seed = seed * 16807 % 2147483647) & 255;
pen.putImageData(data, 0, 0);</script>""",
)
BLINK = (
    """<script>fetch('/colour').then(it => it.text()).then(it => { document.body.style.background = it })</script>"""
)


@dataclass
class Taken:
    """A repository with screenshots of two sites: of new versions, and at every visit."""

    repo: Repo
    news: str
    live: str


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Taken]:
    folder = tmp_path_factory.mktemp("screenshots") / "repo"
    repo = Repo.create(folder, screenshots="changed", screenshot_bytes="300kB", requisite_hours=1, change="text")
    with Site() as news, Site() as live:
        links = "".join(f"<a href={path}></a>" for path in ("/twin", "/tall", "/noisy", "/notes.txt"))
        news.pages.update({"/": article("First words.", extra=links), "/tall": TALL, "/noisy": NOISY})
        news["/twin"] = article("First words.", extra="<b hidden>another page</b>")
        news["/notes.txt"] = text("no page of a browser")
        live["/"] = article("Always the same text.", extra=BLINK)
        live["/colour"] = Reply(b"white", kind="text/plain")
        repo.add(news.url("/"))
        repo.add(live.url("/"), "--screenshots", "always")
        repo.crawl()
        repo.later(hours=3)
        repo.cycle()  # nothing has changed
        news["/"], live["/colour"] = article("Other words.", extra=links), Reply(b"yellow", kind="text/plain")
        repo.later(hours=3)
        repo.cycle()
        yield Taken(repo, news.url("/"), live.url("/"))


def resources(repo: Repo) -> list[tuple[str, str]]:
    """Address and media type of the resource records."""
    found = []
    for path in sorted((repo.folder / "archive").iterdir()):
        with path.open("rb") as file:
            for one in ArchiveIterator(file, check_digests="raise"):
                if one.rec_type == "resource":
                    one.content_stream().read()
                    headers = one.rec_headers
                    found.append((headers.get_header("WARC-Target-URI"), headers.get_header("Content-Type")))
    return found


def size(picture: bytes) -> tuple[int, int]:
    with Image.open(io.BytesIO(picture)) as image:
        return image.size


def test_each_new_version_has_a_picture_and_equal_pictures_are_stored_once(taken: Taken) -> None:
    repo = taken.repo
    taken_of = dict(repo.sql("SELECT p.url, count(*) FROM screenshots s JOIN pages p ON p.id = s.page GROUP BY p.url"))
    assert taken_of[taken.news] == 2
    assert taken_of[taken.news + "twin"] == 1
    assert taken.news + "notes.txt" not in taken_of
    addresses = [address for address, kind in resources(repo) if kind == "image/png"]
    assert addresses.count(f"urn:fullPage:{taken.news}") + addresses.count(f"urn:fullPage:{taken.news}twin") == 2
    assert repo.sql("SELECT count(*) FROM screenshots WHERE record != id") == [(1,)]


def test_always_sees_what_the_text_does_not_tell_and_keeps_no_equal_ones(taken: Taken) -> None:
    repo = taken.repo
    assert repo.outcomes(taken.live) == ["new", "unchanged", "unchanged"]
    rows = repo.sql("SELECT s.version FROM screenshots s JOIN pages p ON p.id = s.page WHERE p.url = ?", taken.live)
    assert len(rows) == 2
    assert len(set(rows)) == 1


def test_pictures_are_limited_in_height_and_bytes(taken: Taken) -> None:
    repo = taken.repo
    heights = dict(repo.sql("SELECT p.url, s.height FROM screenshots s JOIN pages p ON p.id = s.page"))
    assert heights[taken.news + "tall"] == 8000
    assert repo.sql("SELECT max(size) <= 300000 FROM screenshots") == [(1,)]
    assert taken.news + "noisy" not in heights
    assert "screenshot_bytes" in repo.run("log", taken.news + "noisy", "--visits").out


def test_show_and_diff_write_files(taken: Taken, tmp_path: Path) -> None:
    repo, page = taken.repo, recrawl.open(taken.repo.folder).page(taken.news)
    repo.run("show", taken.news, "--at", "1", "--screenshot", tmp_path / "one.png")
    assert size((tmp_path / "one.png").read_bytes()) == (1280, 720)
    assert (tmp_path / "one.png").read_bytes() == page.versions[0].screenshot
    assert "1 changed region" in repo.run("diff", taken.news, "--visual", tmp_path / "two.png").out
    assert size((tmp_path / "two.png").read_bytes()) == (2 * 1280 + 48, 720 + 32)
    (box,) = page.visual_diff().boxes.after
    assert (box.left, 80 < box.top < box.bottom < 200) == (40, True)
    assert repo.json("diff", taken.news, "--visual", tmp_path / "two.png")["regions"] == 1
    assert "no screenshot" in repo.run("show", taken.news + "notes.txt", "--screenshot", tmp_path / "x", code=2).err
    assert "cannot write" in repo.run("show", taken.news, "--screenshot", tmp_path / "no/x.png", code=2).err


def test_check_finds_them_sound_and_a_damaged_one(taken: Taken, tmp_path: Path) -> None:
    assert taken.repo.run("check").code == 0
    warc = next((taken.repo.folder / "archive").iterdir())
    whole = warc.read_bytes()
    ((start, length),) = taken.repo.sql("SELECT start, length FROM screenshots WHERE record = id ORDER BY id LIMIT 1")
    try:
        warc.write_bytes(whole[: start + length // 2] + b"XXXX" + whole[start + length // 2 + 4 :])
        assert "the screenshot of" in taken.repo.run("check", code=1).out
    finally:
        warc.write_bytes(whole)


def test_other_tools_find_them_in_the_index(taken: Taken, tmp_path: Path) -> None:
    taken.repo.run("export", tmp_path / "out.cdxj")
    lines = [line for line in (tmp_path / "out.cdxj").read_text().splitlines() if "image/png" in line]
    assert any(f"urn:fullPage:{taken.news}" in line for line in lines)


@pytest.mark.parametrize("look", ["light", "phone"])
def test_the_dashboard_shows_and_compares_them(browser: Browser, taken: Taken, look: str) -> None:
    (number,) = taken.repo.sql("SELECT id FROM pages WHERE url = ?", taken.news)[0]
    with Service(taken.repo.folder, ServiceConfig(schedule=False)) as service:
        picture = Asker(service).get(f"/api/v1/pages/{number}/visual-diff")
        assert (picture.status, size(picture.body)) == (200, (2 * 1280 + 48, 720 + 32))
        context, watched = tab(browser, service, **LOOKS[look])
        here = watched.go(f"/pages/{number}/look")
        here.get_by_role("link", name="Screenshot", exact=True).click()
        shot = here.locator(".screenshot img")
        expect(shot).to_have_count(1)
        assert shot.evaluate("it => it.decode().then(() => it.naturalWidth)") == 1280
        here.get_by_role("link", name="compare with the version before").click()
        expect(here.locator(".looks rect")).to_have_count(2)
        expect(here.get_by_text("1 region differs")).to_be_visible()
        here.get_by_label("Drag to compare").fill("20")
        assert here.locator(".wipe-top").evaluate("it => it.style.getPropertyValue('--wipe')") == "20%"
        assert here.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        watched.check()
        watched.go(f"/settings?edit={quote(taken.live, safe='')}")
        expect(here.get_by_label("Screenshots")).to_have_value("always")
        expect(here.get_by_label("Rendering")).to_have_value("")
        watched.check()
        context.close()
