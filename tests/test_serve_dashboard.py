"""The dashboard in a real Chromium: every page and action, light, dark and on a phone, on a web that means harm.

One repository and one service for all tests. Each page must come without console errors, without a violation of the
Content-Security-Policy, without anything that axe complains about, and without running what stored pages say.
"""

from __future__ import annotations

import re
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from recrawl.crawl.tally import RunCounts
from recrawl.model import Outcome
from recrawl.record.storage import create
from recrawl.repository.running import shown
from recrawl.serve.jobs import filter_preview
from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import TEMPLATE, Filter, load
from tests.living import Living, live

expect.set_options(timeout=60_000)  # a machine that is busy with other work

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: install the package chromium to test the dashboard")

ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
)
WATCH = """window.violations = [];
document.addEventListener("securitypolicyviolation", event => window.violations.push(event.violatedDirective));"""
PAGES = (
    "/",
    "/sites",
    "/sites?sort=-rate",
    "/sites/0",
    "/pages/0",
    "/pages/0/look",
    "/pages/0/read",
    "/pages/0/text",
    "/pages/0/source",
    "/pages/0/diff",
    "/pages/0/diff?view=side",
    "/pages/0/diff?view=looks",
    "/pages/0/outlook",
    "/changes",
    "/changes?what=new",
    "/search",
    "/search?q=the",
    "/pages",
    "/pages?site=0&state=live",
    "/start",
    "/lab",
    "/settings",
    "/settings/policy",
    "/settings/policy?policy=nutch",
    "/settings/politeness",
    "/settings/discovery",
    "/settings/changes",
    "/settings/limits",
    "/settings/other",
    "/settings/noise",
    "/alerts",
    "/settings/deliveries",
    "/api/docs",
)
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "color_scheme": "light", "has_touch": True},
}


RULES: dict[str, tuple[str, ...]] = {
    "dark": ("color-contrast",),
    "phone": ("link-name", "scrollable-region-focusable", "target-size"),
}


@dataclass
class Watched:
    """A browser tab that remembers everything that went wrong in it."""

    page: Page
    root: str
    wrong: list[str] = field(default_factory=list)

    def go(self, path: str, status: int = 200) -> Page:
        answer = self.page.goto(self.root + path)
        assert answer is not None
        assert answer.status == status, path
        return self.page

    def check(self, *, refused: bool = False, rules: Sequence[str] = ()) -> None:
        """Nothing went wrong; a page that refuses something may be named by the console as refused.

        `rules` are those of axe to go by, all of them if none is named: most say the same of every look.
        """
        wrong = [text for text in self.wrong if not (refused and "status of 400" in text)]
        assert wrong == []
        assert self.page.evaluate("window.violations") == []
        assert self.page.evaluate("window.hacked") is None
        only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else None
        found = Axe().run(self.page, options=only).response["violations"]
        assert [(one["id"], one["nodes"][0]["html"]) for one in found] == []
        self.wrong.clear()


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Living:
    return live(tmp_path_factory.mktemp("dashboard") / "repository", sites=2, pages=20, days=5)


@pytest.fixture(scope="module")
def service(living: Living) -> Iterator[Service]:
    with Service(living.folder, ServiceConfig(schedule=False)) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS.split())
        yield opened
        opened.close()


def tab(browser: Browser, service: Service, **how: Any) -> tuple[BrowserContext, Watched]:
    context = browser.new_context(**{**LOOKS["light"], **how})
    context.set_default_timeout(60_000)
    context.add_init_script(WATCH)
    watched = Watched(context.new_page(), service.url.rstrip("/"))
    watched.page.on(
        "console", lambda told: watched.wrong.append(told.text) if told.type in ("error", "warning") else None
    )
    watched.page.on("pageerror", lambda error: watched.wrong.append(str(error)))
    return context, watched


@pytest.fixture
def watched(browser: Browser, service: Service) -> Iterator[Watched]:
    context, one = tab(browser, service)
    yield one
    context.close()


def harmful(living: Living, name: str = "") -> str:
    """The path of the page that means harm, or of one that it links."""
    with closing(sqlite3.connect(living.folder / "recrawl.db")) as db:
        number = db.execute("SELECT id FROM pages WHERE url = ?", (living.hostile + name,)).fetchone()[0]
    return f"/pages/{number}"


# -- every page ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("look", ["light", "phone"])
def test_every_page_is_whole(browser: Browser, service: Service, living: Living, tmp_path: Path, look: str) -> None:
    context, watched = tab(browser, service, **LOOKS[look])
    bad = harmful(living)
    for path in (
        *PAGES,
        bad,
        f"{bad}/read",
        f"{bad}/text",
        f"{bad}/source",
        f"{bad}/diff",
        f"{bad}/diff?view=side",
        f"{bad}/outlook",
    ):
        page = watched.go(path)
        assert page.locator("main h1").count() == 1, path
        watched.check(rules=RULES.get(look, ()))
        if look == "light":  # a phone shows the same colours
            page.emulate_media(color_scheme="dark")  # other colours, and nothing else
            watched.check(rules=RULES["dark"])
            page.emulate_media(color_scheme="light")
        wider = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wider <= 0, f"{path} is wider than the window"
        picture = page.screenshot(full_page=True, path=tmp_path / "page.png")
        assert len(picture) > 5000
    context.close()


def test_pages_are_whole_without_script(browser: Browser, service: Service) -> None:
    context, watched = tab(browser, service, java_script_enabled=False)
    for path in PAGES:
        page = watched.go(path)
        assert page.locator("main h1").inner_text(), path
    page.goto(f"{watched.root}/changes")
    page.get_by_label("Outcome").select_option("new")
    page.get_by_role("button", name="Filter").click()
    assert "what=new" in page.url
    context.close()


def test_an_empty_repository_says_what_to_do(browser: Browser, tmp_path: Path) -> None:
    create(tmp_path / "empty", TEMPLATE)
    with Service(tmp_path / "empty", ServiceConfig(schedule=False)) as service:
        context, watched = tab(browser, service)
        expect(watched.go("/").get_by_role("heading", name="Which site or page do you want to keep?")).to_be_visible()
        watched.check()
        for path in ("/sites", "/changes", "/search?q=word", "/lab", "/settings", "/settings/noise"):
            watched.go(path)
            watched.check()
        context.close()


# -- hostile pages -------------------------------------------------------------------------------------


def test_harm_is_shown_as_text(watched: Watched, living: Living) -> None:
    path = harmful(living)
    page = watched.go(path)
    expect(page.locator("h1")).to_contain_text("<script>window.hacked = 1</script>")
    page = watched.go(f"{path}/diff?view=side")
    expect(page.locator(".diff")).to_contain_text("<script>window.hacked")
    page = watched.go(f"{path}/source")
    expect(page.locator("pre").last).to_contain_text("<title>&lt;script>")
    page = watched.go("/search?q=harmless")
    expect(page.locator(".stream")).to_contain_text("<script>")
    page = watched.go("/changes?path=%3Cscript%3Ealert(1)%3C/script%3E")
    expect(page.get_by_label("URL contains")).to_have_value("<script>alert(1)</script>")
    watched.check()


def test_a_page_that_is_not_there(watched: Watched) -> None:
    page = watched.go("/pages/999999", 404)
    expect(page.locator("h1")).to_have_text("Not found")
    for path in (
        "/sites/999999",
        f"/sites/{10**30}",
        f"/pages/{10**30}",
        "/pages/0/text?version=x",
        "/pages/0/diff?old=-1",
    ):
        watched.go(path, 404)
    for path in ("/changes?after=nan_1", f"/changes?site={10**30}", "/changes?least=nan", "/search?q=a&from=x"):
        watched.go(path, 400)


# -- moving about --------------------------------------------------------------------------------------


def test_the_keyboard_is_enough(watched: Watched) -> None:
    page = watched.go("/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Search pages").first).to_be_focused()
    page.keyboard.press("Escape")
    page.locator("main").focus()
    page.keyboard.press("g")
    page.keyboard.press("f")
    page.wait_for_url("**/search")
    page.locator("main").focus()
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_visible()
    watched.check()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Keyboard")).to_be_hidden()
    page.locator("main").focus()
    page.keyboard.press("/")
    expect(page.get_by_label("Words, ")).to_be_focused()
    page.keyboard.type("the")
    page.keyboard.press("Enter")
    expect(page.locator("mark").first).to_be_visible()
    watched.check()


def test_light_and_dark_can_be_chosen(watched: Watched) -> None:
    page = watched.go("/changes?what=new")
    page.get_by_role("button", name="Dark").click()
    assert page.url.endswith("/changes?what=new")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    body = page.locator("body")
    expect(body).not_to_have_css("background-color", "rgba(0, 0, 0, 0)")  # until the stylesheet is loaded
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_role("button", name="Light").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    expect(body).not_to_have_css("background-color", dark)
    watched.go("/theme?to=dark&back=//elsewhere.example/")
    assert page.url == f"{watched.root}/"


def test_sites_sort_and_lead_to_pages(watched: Watched) -> None:
    page = watched.go("/sites")
    page.locator("thead").get_by_role("link", name="Pages").click()
    expect(page.locator("th[aria-sort]")).to_have_attribute("aria-sort", "descending")
    numbers = [int(text.replace(",", "")) for text in page.locator("tbody tr td:nth-child(2)").all_inner_texts()]
    assert numbers == sorted(numbers, reverse=True)
    page.locator("tbody th a").first.click()
    expect(page.get_by_role("heading", name="Directories")).to_be_visible()
    page.locator(".tree a:visible").first.click()
    expect(page.get_by_role("heading", name="Versions")).to_be_visible()
    watched.check()


def test_a_page_from_its_versions_to_a_difference(watched: Watched) -> None:
    page = watched.go("/changes?what=changed")
    page.get_by_role("link", name="difference").first.click()
    expect(page.locator(".diff .in, .diff .out").first).to_be_visible()
    page.get_by_label("View", exact=True).select_option("side by side")
    page.get_by_role("button", name="Compare").click()
    expect(page.locator(".diff.side-by-side")).to_be_visible()
    page.get_by_role("link", name="Why and when").click()
    expect(page.get_by_role("heading", name="Change probability")).to_be_visible()
    page.get_by_role("link", name="Text", exact=True).click()
    expect(page.locator("article .reading")).to_be_visible()
    watched.check()


# -- charts --------------------------------------------------------------------------------------------


def test_charts_name_their_axes_and_explain_each_column(watched: Watched) -> None:
    page = watched.go("/?range=all")
    chart = page.locator("svg.chart[data-zoom]").nth(1)
    expect(chart).to_contain_text("Updates (pages)")
    expect(chart).to_contain_text("Start of the cycle (UTC)")
    assert re.search(r"\d\d:\d\d", chart.text_content() or ""), "times of day"
    chart.hover()
    expect(page.locator(".tip")).to_contain_text("expected")
    chart.focus()
    page.keyboard.press("ArrowLeft")
    last = page.locator(".tip").inner_text()
    page.keyboard.press("ArrowLeft")
    assert page.locator(".tip").inner_text() != last
    page.keyboard.press("Escape")
    expect(page.locator(".tip")).to_be_hidden()
    watched.check()


def test_a_time_range_and_a_zoom_leave_fewer_cycles(watched: Watched) -> None:
    page = watched.go("/?range=all")
    dots = page.locator("svg.chart circle")
    every = dots.count()
    chart = page.locator("svg.chart[data-zoom]").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * 0.4, middle)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.8, middle, steps=4)
    page.mouse.up()
    page.wait_for_url("**/?from=*")
    assert 0 < dots.count() < every
    expect(page.locator(".ranges")).to_contain_text("reset zoom")
    watched.check()
    page.get_by_role("link", name="Last day").click()
    page.wait_for_url("**/?range=day")
    expect(page.get_by_role("link", name="Last day")).to_have_attribute("aria-current", "true")
    assert dots.count() < every
    for path in ("/?from=9&to=1", "/?range=x", "/?from=1e9&to=nan", "/pages/0?range=all", "/sites/0?range=day"):
        watched.go(path)


def test_the_heat_map_is_as_wide_as_its_card(watched: Watched) -> None:
    page = watched.go("/sites/0?range=all")
    card, chart = page.locator(".heat").bounding_box(), page.locator(".heat svg").bounding_box()
    rights = [
        box["x"] + box["width"] for box in (one.bounding_box() for one in page.locator(".heat rect").all()) if box
    ]
    assert card is not None
    assert chart is not None
    assert chart["width"] == pytest.approx(card["width"], abs=1)
    assert max(rights) > card["x"] + 0.97 * card["width"]


# -- asking --------------------------------------------------------------------------------------------


def test_changes_are_filtered_and_mistakes_named(watched: Watched) -> None:
    page = watched.go("/changes")
    page.get_by_label("Since").fill("yesterday-ish")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("#e-since")).to_contain_text("invalid time")
    expect(page.get_by_label("Since")).to_have_value("yesterday-ish")
    watched.check(refused=True)
    page.get_by_label("Since").fill("")
    page.get_by_label("Words changed").fill("5")
    page.get_by_label("Outcome").select_option("changed")
    page.get_by_role("button", name="Filter").click()
    shares = page.locator(".stream .head").all_inner_texts()
    assert shares
    assert all(float(re.search(r"([\d.]+)\s%", text)[1]) >= 5 for text in shares)  # type: ignore[index]
    page = watched.go("/changes")
    first = page.locator(".stream a.title").first.get_attribute("href")
    page.get_by_role("link", name="Older").click()
    assert page.locator(".stream a.title").count()
    assert "after=" in page.url
    assert first


def test_search_by_site_and_time(watched: Watched) -> None:
    page = watched.go("/search?q=the")
    everywhere = page.locator(".stream > li").count()
    site = page.get_by_label("Site").locator("option").nth(1).inner_text()
    page.get_by_label("Site").select_option(site)
    page.get_by_role("button", name="Search").click()
    urls = page.locator(".stream .url").all_inner_texts()
    assert all(url.startswith(site) for url in urls)
    assert len(urls) <= everywhere
    watched.go("/search?q=the&since=1990-01-01&until=1990-01-02")
    expect(page.get_by_text("Nothing found")).to_be_visible()
    watched.check()
    watched.go("/search?q=%22%28", 400)
    expect(page.locator("#e-q")).to_contain_text("cannot be read")


def test_why_not_visited(watched: Watched, living: Living) -> None:
    page = watched.go("/pages")
    page.get_by_label("Go to the page").fill(living.hostile)
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="Why and when").click()
    reasons = page.get_by_role("region", name="Why it was visited or not")
    expect(reasons).to_contain_text("Last visit:")
    expect(reasons).to_contain_text("The next cycle")
    watched.check()
    page = watched.go("/pages")
    page.get_by_label("Go to the page").fill("https://nowhere.example/")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#e-url")).to_contain_text("is not known here")


# -- changing ------------------------------------------------------------------------------------------


def test_a_site_is_added_and_removed(watched: Watched, living: Living) -> None:
    before = load(living.folder / "recrawl.toml")
    page = watched.go("/settings")
    page.get_by_label("URL", exact=True).fill("not an address")
    page.get_by_label("Page limit").fill("many")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("#e-url")).to_contain_text("is not a valid URL")
    expect(page.locator("#e-limit")).to_contain_text("invalid integer 'many'")
    expect(page.get_by_label("Page limit")).to_have_value("many")
    watched.check(refused=True)
    assert load(living.folder / "recrawl.toml") == before
    page.get_by_label("URL", exact=True).fill("new.example/docs")
    page.get_by_label("Page limit").fill("12")
    page.get_by_label("Exclude").fill("/docs/old/*\n/docs/tmp/*")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    seed = load(living.folder / "recrawl.toml").seeds[-1]
    assert (seed.url, seed.limit, seed.exclude) == ("https://new.example/docs", 12, ("/docs/old/*", "/docs/tmp/*"))
    page.get_by_label("URL", exact=True).fill("new.example/docs")
    page.get_by_label("Link depth").fill("3")
    page.get_by_label("Allow private and loopback IP addresses").check()
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_contain_text("depth: none → 3; allow private: no → yes")
    again = load(living.folder / "recrawl.toml").seeds[-1]
    assert again == replace(seed, depth=3, allow_private=True)
    page.get_by_role("button", name="remove https://new.example/docs").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    assert load(living.folder / "recrawl.toml") == before
    watched.check()


def test_policy_and_limits_are_set_whole_or_not_at_all(watched: Watched, living: Living) -> None:
    before = load(living.folder / "recrawl.toml")
    page = watched.go("/settings/policy")
    page.get_by_label("batches").fill("many")
    page.get_by_label("budget").fill("77")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#e-param-batches")).to_contain_text("invalid value 'many'")
    expect(page.get_by_label("batches")).to_have_value("many")
    assert load(living.folder / "recrawl.toml") == before, "the budget was right, but nothing is half done"
    watched.check(refused=True)
    page.locator("#chosen").select_option("round-robin")
    page.wait_for_url("**/settings/policy?policy=round-robin")
    page.get_by_label("budget").fill("77")
    page.get_by_label("quiet hours").fill("22:00-06:00")
    page.get_by_label("sat").check()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    after = load(living.folder / "recrawl.toml")
    assert (after["policy"], after["budget"]) == ("round-robin", 77)
    assert (after["quiet_hours"], after["weekdays"]) == ("22:00-06:00", ["sat"])
    watched.go("/settings/policy?policy=shock")
    page.get_by_label("batches").fill("12")
    page.get_by_label("objective").select_option("age")
    page.get_by_label("quiet hours").fill("")
    page.get_by_label("sat").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    after = load(living.folder / "recrawl.toml")
    assert (after["policy"], after["weekdays"]) == ("shock(objective=age, batches=12)", [])
    watched.go("/settings/politeness")
    page.get_by_label("delay", exact=True).fill("-1")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("#e-delay")).to_contain_text("use 0 to")
    page.get_by_label("delay", exact=True).fill("2.5")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    assert load(living.folder / "recrawl.toml")["delay"] == 2.5


def test_the_rules_of_a_site_are_edited(watched: Watched, living: Living) -> None:
    page = watched.go("/settings")
    page.get_by_label("URL", exact=True).fill("edited.example")
    page.get_by_label("Page limit").fill("12")
    page.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("link", name="edit https://edited.example/").click()
    expect(page.get_by_label("Page limit")).to_have_value("12")
    page.get_by_label("Page limit").fill("")
    page.get_by_label("Delay").fill("2.5")
    page.get_by_label("Interval").fill("often")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("main")).to_contain_text("duration")
    watched.check(refused=True)
    page.get_by_label("Interval").fill("6h")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    seed = load(living.folder / "recrawl.toml").seeds[-1]
    assert (seed.url, seed.limit, seed.delay, seed.every) == ("https://edited.example/", None, 2.5, "6h")
    watched.check()
    page.get_by_role("button", name="remove https://edited.example/").click()


def test_a_page_is_rechecked_tagged_and_given_an_interval(watched: Watched, living: Living) -> None:
    before = load(living.folder / "recrawl.toml").seeds
    page = watched.go(harmful(living))
    expect(page.locator(".bar")).to_contain_text("Its interval is that of its site.")
    path, url = harmful(living, "a%3Cscript%3E"), f"{living.hostile}a%3Cscript%3E"
    page = watched.go(path)
    page.get_by_label("Tag").fill("prices")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.locator(".tag.label")).to_contain_text("prices")
    page.get_by_label("Visit at least every").fill("6h")
    page.get_by_role("button", name="Set").click()
    expect(page.get_by_label("Visit at least every")).to_have_value("6h")
    seeds = load(living.folder / "recrawl.toml").seeds
    assert (seeds[:-1], seeds[-1].url, seeds[-1].every, seeds[-1].depth) == (before, url, "6h", 0)
    page.get_by_role("button", name="Recheck now").click()
    expect(page.get_by_role("status").first).to_contain_text("A visit is requested")
    watched.check()
    watched.go("/changes?tag=prices")
    assert page.locator(".stream > li").count() > 0
    assert set(page.locator(".stream .url").all_inner_texts()) == {url}
    watched.go(path)
    page.get_by_role("button", name="Remove the tag prices").click()
    expect(page.locator(".tag.label")).to_have_count(0)
    page.get_by_label("Visit at least every").fill("")
    page.get_by_role("button", name="Set").click()
    expect(page.get_by_label("Visit at least every")).to_have_value("")


def test_changes_are_marked_as_read_and_filters_saved(watched: Watched) -> None:
    page = watched.go("/changes?what=new")
    before = page.locator(".stream > li.unread").count()
    page.get_by_role("button", name=re.compile("^mark as read")).first.click()
    expect(page.locator(".stream > li.unread")).to_have_count(before - 1)
    page.get_by_label("Save this filter as").fill("new pages")
    page.get_by_role("button", name="Save filter").click()
    expect(page.get_by_role("link", name="new pages")).to_have_attribute("aria-current", "true")
    watched.check()
    page.get_by_role("button", name="Mark all as read").click()
    expect(page.locator(".stream > li.unread")).to_have_count(0)
    watched.go("/changes?unread=1")
    expect(page.get_by_text("No change matches these filters.")).to_be_visible()
    page.get_by_role("link", name="new pages").click()
    page.wait_for_url("**/changes?what=new")
    page.get_by_role("button", name="Delete the filter new pages").click()
    expect(page.get_by_role("link", name="new pages")).to_have_count(0)


def test_a_phone_has_the_menu_within_reach(browser: Browser, service: Service) -> None:
    context, watched = tab(browser, service, **LOOKS["phone"])
    page = watched.go("/sites")
    menu = page.locator(".bottom-menu")
    box = menu.bounding_box()
    assert box is not None
    assert box["y"] + box["height"] == pytest.approx(844, abs=1), "at the lower edge of the screen"
    for link in menu.locator("> a").all():
        size = link.bounding_box()
        assert size is not None
        assert min(size["width"], size["height"]) >= 44
    menu.get_by_text("More").tap()
    menu.get_by_role("link", name="Settings").tap()
    page.wait_for_url("**/settings")
    menu.get_by_text("More").tap()
    watched.check()
    menu.get_by_role("button", name="Dark").tap()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    context.close()


def test_focus_can_be_seen(watched: Watched) -> None:
    for path in ("/", "/changes", "/settings"):
        page = watched.go(path)
        for _ in range(14):
            page.keyboard.press("Tab")
            seen = page.evaluate(
                "(() => { const one = getComputedStyle(document.activeElement);"
                " return document.activeElement === document.body || parseFloat(one.outlineWidth) > 0; })()"
            )
            assert seen, page.evaluate("document.activeElement.outerHTML")


def test_the_api_is_documented(watched: Watched) -> None:
    page = watched.go("/api/docs")
    page.locator("#recheck summary").click()
    expect(page.locator("#recheck")).to_contain_text("URL of a page, or a site")
    expect(page.locator("#recheck pre")).to_contain_text("curl -X POST")
    assert page.locator(".api details").count() > 50
    watched.check()


def test_what_runs_is_followed_until_it_ends(browser: Browser, tmp_path: Path) -> None:
    """In a repository of its own: the end of a visit that another test has requested would end this run too."""
    create(tmp_path / "own", TEMPLATE)
    tally = RunCounts(url="https://x.example/<script>", received=5000)
    tally.outcomes[Outcome.CHANGED] = 3
    with Service(tmp_path / "own", ServiceConfig(schedule=False)) as service:
        context, watched = tab(browser, service)
        page = watched.go("/")
        expect(page.locator(".run")).to_have_count(0)
        with shown(tmp_path / "own", "cycle", 12, lambda _: None) as report:
            report(tally)
            expect(page.locator(".run")).to_contain_text("Visiting https://x.example/<script>")
            expect(page.locator(".run progress")).to_have_attribute("value", "3")
            page.reload()
            expect(page.locator(".run")).to_contain_text("of 12")
            watched.check()
            other = watched.go("/sites")
            expect(other.locator(".run-brief")).to_contain_text("Cycle 25")
            watched.go("/")
        expect(page.locator(".run")).to_have_count(0)
        context.close()


def test_a_noise_filter_is_tried_kept_and_removed(watched: Watched, living: Living) -> None:
    page = watched.go("/settings/noise")
    page.get_by_label("CSS selectors").fill("p[[")
    page.get_by_label("Regular expressions").fill("(")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#e-selectors")).to_contain_text("use a CSS selector")
    expect(page.locator("#e-patterns")).to_contain_text("invalid noise pattern")
    watched.check(refused=True)
    page.get_by_label("CSS selectors").fill("body")
    page.get_by_label("Regular expressions").fill("")
    page.get_by_role("button", name="Preview").click()
    told = page.get_by_role("status").inner_text()
    hidden, of = map(int, re.search(r"hidden (\d+) of (\d+) changes", told).groups())  # type: ignore[union-attr]
    assert 0 < hidden == of, "a filter that hides everything hides every change"
    assert load(living.folder / "recrawl.toml").filters == ()
    watched.check()
    page.get_by_label("CSS selectors").fill("#clock")
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    assert load(living.folder / "recrawl.toml").filters == (Filter("", ("#clock",), ()),)
    page.get_by_role("button", name="remove filter 1").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    assert load(living.folder / "recrawl.toml").filters == ()


def test_a_preview_that_takes_long_is_given_up(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_preview, "_TIME_LIMIT", 0.01)
    page = watched.go("/settings/noise")
    page.get_by_label("Regular expressions").fill("(a+)+$")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator("#e-patterns")).to_contain_text("took more than")


def test_an_alert_is_made_changed_and_removed(watched: Watched, living: Living) -> None:
    page = watched.go("/alerts")
    page.get_by_label("Name").fill("two words")
    page.get_by_label("Target", exact=True).fill("nowhere")
    page.get_by_label("Only these elements").fill("p[[")
    page.get_by_text("More conditions, templates and the secret of a webhook").click()
    page.get_by_label("Added text").fill("re:(")
    page.get_by_label("Words changed").fill("lots")
    page.get_by_label("Collect for").fill("a while")
    page.get_by_role("button", name="Save the alert").click()
    for name in ("name", "target", "selector", "text", "least", "digest"):
        expect(page.locator(f"#e-{name}")).to_be_visible()
    assert load(living.folder / "recrawl.toml").alerts == ()
    watched.check(refused=True)
    page.goto(f"{watched.root}/alerts")
    page.get_by_label("Name").fill("prices")
    page.get_by_label("Only these elements").fill(".price")
    page.get_by_text("More conditions, templates and the secret of a webhook").click()
    page.get_by_label("Words changed").fill("10")
    page.get_by_label("gone", exact=True).check()
    page.get_by_label("ignore changes that revert").check()
    page.get_by_role("button", name="Save the alert").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    (rule,) = load(living.folder / "recrawl.toml").alerts
    assert (rule.name, rule.target, rule.selector, rule.divergence) == ("prices", "feed", ".price", 0.1)
    assert (rule.outcomes, rule.hold, rule.significant) == (("gone",), True, False)
    watched.check()
    page.get_by_role("button", name="remove prices").click()
    expect(page.get_by_role("status")).to_contain_text("Saved")
    assert load(living.folder / "recrawl.toml").alerts == ()


# -- in the background ---------------------------------------------------------------------------------


def test_what_happens_is_shown_as_it_happens(watched: Watched, service: Service) -> None:
    page = watched.go("/")
    expect(page.locator("[data-live-note]")).to_contain_text("Connected")
    service.context.events.publish("visit", {"at": 0.0, "outcome": "changed", "url": "https://x.example/<script>"})
    expect(page.locator("[data-live] li").first).to_contain_text("https://x.example/<script>")
    expect(page.locator("[data-live] li .tag").first).to_have_text("changed")
    watched.check()


def test_the_lab_compares_policies_on_our_own_history(watched: Watched) -> None:
    page = watched.go("/lab")
    for name in ("shock", "clairvoyant"):
        page.get_by_label(name, exact=True).uncheck()
    page.get_by_label("round-robin", exact=True).uncheck()
    page.get_by_label("Budgets").fill("few")
    page.get_by_role("button", name="Replay").click()
    expect(page.locator("#e-policy")).to_contain_text("at least one")
    expect(page.locator("#e-budget")).to_contain_text("use numbers")
    watched.check(refused=True)
    page.get_by_label("round-robin", exact=True).check()
    page.get_by_label("clairvoyant", exact=True).check()
    page.get_by_label("Budgets").fill("0.2, 0.4")
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("heading", name="Replay in progress")).to_be_visible()
    expect(page.get_by_label("Replay", exact=True).and_(page.locator("progress"))).to_be_visible()
    expect(page.get_by_role("heading", name="Results")).to_be_visible(timeout=60_000)
    names = page.locator("tbody th").all_inner_texts()
    found = [int(text) for text in page.locator("tbody td:nth-child(3)").all_inner_texts()]
    assert sorted(names) == ["clairvoyant", "clairvoyant", "round-robin", "round-robin"]
    assert found[names.index("clairvoyant")] >= found[names.index("round-robin")] > 0
    expect(page.locator(".best").first).to_contain_text("round-robin found most")
    expect(page.locator("svg.rows text.name").first).to_have_text(
        re.compile(r"^(clairvoyant|round-robin), \d+ visits$")
    )
    watched.check()
