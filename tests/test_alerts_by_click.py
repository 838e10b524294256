"""A watcher from an empty service to an alert, in a browser: at a desk and on a phone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, expect, sync_playwright

from recrawl.serve.service import Service, ServiceConfig
from tests.test_alerts_for_people import shop
from tests.world import Repo, Site

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), "")
pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: install the package chromium to test the dashboard")
WINDOWS: dict[str, dict[str, Any]] = {
    "desk": {"viewport": {"width": 1440, "height": 900}},
    "phone": {"viewport": {"width": 390, "height": 844}, "has_touch": True},
}
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
expect.set_options(timeout=120_000)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        arguments = ["--headless", "--no-sandbox", "--disable-gpu"]
        running = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments, timeout=120_000)
        yield running
        running.close()


def whole(page: Page, name: str, folder: Path) -> None:
    """Nothing is wider than the window."""
    assert page.evaluate(WIDER) <= 0, name
    page.screenshot(path=folder / f"{name}.png", full_page=True)


@pytest.mark.parametrize("window", WINDOWS)
def test_a_watcher_from_the_first_question_to_an_alert(
    browser: Browser, repo: Repo, tmp_path: Path, window: str
) -> None:
    context = browser.new_context(**WINDOWS[window])
    page = context.new_page()
    page.set_default_timeout(120_000)
    with Site({"/": shop("120 €")}) as site, Service(repo.folder, ServiceConfig()) as service:
        page.goto(service.url)
        expect(page.get_by_role("heading", level=1)).to_have_text("Which site or page do you want to keep?")
        whole(page, "first", tmp_path)
        page.get_by_label("Address", exact=True).fill(site.url("/"))
        page.get_by_label("this page only").check()
        page.get_by_role("button", name="Keep it").click()
        allow = page.get_by_role("button", name="Allow private addresses")  # the site is on this machine
        while not allow.is_visible():
            page.wait_for_timeout(500)
            page.reload()
        whole(page, "refused", tmp_path)
        allow.click()
        kettle = page.get_by_role("link", name="Kettle").first
        while not kettle.is_visible():
            page.wait_for_timeout(500)
            page.reload()
        whole(page, "stored", tmp_path)
        site["/"] = shop("99 €", date="tomorrow")
        kettle.click()
        page.get_by_role("button", name="Recheck now").click()
        while page.locator(".timeline li").count() < 2:
            page.wait_for_timeout(500)
            page.reload()
        page.get_by_role("link", name="Alert me").click()
        frame = page.frame_locator("iframe.replay")
        frame.locator(".price").click()
        expect(page.get_by_label("Only these elements")).to_have_value(".price")
        expect(page.get_by_text("Chosen: 99 €")).to_be_visible()
        page.get_by_label("leave out what I click").check()
        frame.locator(".date").click()
        expect(page.get_by_label("Without these elements")).to_have_value(".date")
        page.get_by_label("Only when").fill("below 100")
        page.get_by_role("button", name="Try it on what is recorded").click()
        expect(page.get_by_text("It would have alerted once")).to_be_visible()
        expect(page.get_by_text("120 € → 99 €").first).to_be_visible()
        whole(page, "tried", tmp_path)
        page.get_by_label("Name of the alert").fill("kettle")
        page.get_by_label("Target").fill("feed")
        page.get_by_role("button", name="Save the alert").click()
        expect(page.get_by_role("region", name="Alert rules")).to_contain_text("below 100")
        whole(page, "saved", tmp_path)
    context.close()


def heard(said: list[str], dialog: Dialog) -> None:
    said.append(dialog.message)
    dialog.dismiss()


def test_no_script_of_the_stored_page_runs_where_elements_are_chosen(browser: Browser, repo: Repo) -> None:
    """Nor does what says that it was chosen reach the form as anything but text."""
    harm = b"<title>x</title><p class='a b'>one</p><script>document.title='run'</script><img src=x onerror=alert(1)>"
    with Site({"/": harm}) as site:
        repo.crawl(site.url("/"))
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        page = browser.new_page()
        said: list[str] = []
        page.on("dialog", partial(heard, said))
        page.goto(f"{service.url}alerts?page=0")
        frame = page.frame_locator("iframe.replay")
        frame.locator("p").click()
        expect(page.get_by_label("Only these elements")).to_have_value(".a")
        assert said == []
        (inner,) = [one for one in page.frames if "/replay/" in one.url]
        assert inner.evaluate("document.title") == "x"
        assert inner.evaluate("document.scripts.length") == 1  # ours
        page.close()
