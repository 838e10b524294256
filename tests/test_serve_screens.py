"""The Difference page of real pages whose menus changed, measured in a browser, inline and side by side."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from recrawl.extras import pq
from recrawl.serve.service import Service, ServiceConfig
from tests.screen_measures import wrong_boxes
from tests.test_serve_dashboard import ARGUMENTS, CHROMIUM
from tests.world import Repo, Site

SITES = Path(__file__).parents[1].parent / "shared" / "data" / "sites"
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: install the package chromium to test the dashboard")

WIDTHS = {"wide": (1440, 900), "phone": (390, 844)}
VIEWS = ("", "&view=side", "&view=looks")


def _menu(words: list[str]) -> str:
    links = "".join(f'<li><a href="/{word}">{word.replace("-", " ")}</a></li>' for word in words)
    return f"<nav><ul>{links}</ul></nav>"


def _made() -> list[tuple[str, str]]:
    """Two versions of pages whose menu has grown, with long words, tables, code and other scripts."""
    before = [f"topic-{number}" for number in range(30)]
    after = [
        *before[:10],
        "what-is-new",
        "a-very-long-entry-of-a-menu-that-nobody-would-write-but-somebody-did",
        *before[12:],
    ]
    bodies = {
        "plain": "<p>One sentence of text. " * 40,
        "words": f"<p>{'unbroken' * 60}</p><p>https://a.example/{'path/' * 60}</p>",
        "table": "<table>" + "".join(f"<tr><td>{n}<td>{'cell ' * 9}<td>{n * n}</tr>" for n in range(30)) + "</table>",
        "code": "<pre>" + "\n".join(f"if x == {n}:{' ' * n}return {'y' * n}" for n in range(60)) + "</pre>",
        "arabic": "<p dir=rtl>" + "هذا نص عربي طويل. " * 40,
        "chinese": "<p>" + "气温今天很高，明天会下雨。" * 40,
    }
    return [
        (
            f"<title>{name}</title>{_menu(before)}<main>{body}<p>The price is 10 EUR.</main>",
            f"<title>{name}</title>{_menu(after)}<main>{body}<p>The price is 12 EUR.</main>",
        )
        for name, body in bodies.items()
    ]


def _real(most: int = 6) -> list[tuple[str, str]]:
    """Pages of real sites, each with its next version, whose menus differ."""
    found: list[tuple[str, str]] = []
    for path in sorted(SITES.glob("*.parquet"))[:: max(1, len(list(SITES.glob("*.parquet"))) // most)]:
        if path.stat().st_size > 20_000_000:
            continue
        rows: dict[str, list[Any]] = pq.read_table(path, columns=["url", "html"]).to_pydict()
        by_url: dict[str, list[bytes]] = {}
        for url, html in zip(rows["url"], rows["html"], strict=True):
            if html:
                by_url.setdefault(url, []).append(html)
        for versions in by_url.values():
            pair = next(((one, two) for one, two in pairwise(versions) if _menus(one) != _menus(two)), None)
            if pair:
                found.append((pair[0].decode("utf-8", "replace"), pair[1].decode("utf-8", "replace")))
                break
    return found


def _menus(html: bytes) -> list[bytes]:
    return [part.partition(b"</nav>")[0] for part in html.split(b"<nav")[1:]]


@pytest.fixture(scope="module", params=["made", "real"])
def pages(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Service, int]]:
    """A service, and how many pages there are besides the first."""
    if request.param == "real" and not SITES.is_dir():
        pytest.skip("no shared/data beside the checkout")
    pairs = _made() if request.param == "made" else _real()
    assert pairs
    repo = Repo.create(tmp_path_factory.mktemp("screens") / "repo")
    with Site({f"/{n}.html": one.encode() for n, (one, _) in enumerate(pairs)}) as site:
        site["/"] = "".join(f'<a href="/{n}.html">{n}</a> ' for n in range(len(pairs))).encode()
        repo.add(site.url(), "--depth", "1", "--include", "/*.html")
        repo.run("crawl")
        repo.later(hours=40)
        for number, (_, two) in enumerate(pairs):
            site[f"/{number}.html"] = two.encode()
        repo.run("cycle", "--budget", "1000", "--policy", "round-robin")
        with Service(repo.folder, ServiceConfig(schedule=False)) as started:
            yield started, len(pairs)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS.split())
        yield opened
        opened.close()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("view", VIEWS, ids=["inline", "side", "looks"])
def test_a_difference_with_changed_menus_is_laid_out_well(
    browser: Browser, pages: tuple[Service, int], width: str, view: str, tmp_path: Path
) -> None:
    service, number = pages
    wide, high = WIDTHS[width]
    context = browser.new_context(viewport={"width": wide, "height": high})
    context.set_default_timeout(120_000)
    tab = context.new_page()
    wrong: dict[str, list[str]] = {}
    seen = 0
    for page in range(1, number + 1):
        url = f"{service.url.rstrip('/')}/pages/{page}/diff?{view.removeprefix('&')}"
        answer = tab.goto(url)
        assert answer is not None
        if answer.status == 404:
            continue
        seen += bool(tab.locator("ins, del").count()) or view == VIEWS[2]
        found = wrong_boxes(tab)
        if found:
            tab.screenshot(path=tmp_path / f"{page}.png", full_page=True)
            wrong[f"{page}, in {tmp_path}"] = found
    context.close()
    assert seen
    assert wrong == {}
