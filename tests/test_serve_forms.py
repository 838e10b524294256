"""Every form of the dashboard in a real Chromium: what is stored is what was given; an unchanged save changes nothing.

Each field of each form gets 0, nothing, false, its largest value, every choice, and text with quotes. A value that the
form refuses is reported at its field and changes nothing.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Locator, Page, sync_playwright

from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import Seed, load
from tests.test_serve_dashboard import ARGUMENTS, CHROMIUM
from tests.world import Repo, Site, page

pytestmark = pytest.mark.skipif(not CHROMIUM, reason="no Chromium: install the package chromium to test the dashboard")

SEED = 'https://shop.example/it\'s "here"/'
"""A site with quotes in its URL."""
QUOTED = 'it\'s "quoted" & <b>bold</b> \\ 100 %'
TOPICS = ("politeness", "discovery", "changes", "limits", "other")
POLICIES = ("shock", "round-robin", "nutch", "explore", "sampling", "predicted")
FORMS = {
    **{topic: (f"/settings/{topic}", "form.settings") for topic in TOPICS},
    **{f"policy {name}": (f"/settings/policy?policy={name}", "form[aria-labelledby=h-policy]") for name in POLICIES},
    "seed": ("/settings?edit={seed}", "form[aria-labelledby=h-add]"),
    "alert": ("/alerts?edit=prices", "form[aria-labelledby=h-add]"),
}
GOOD = {
    "every": "1w", "quiet_hours": "22:00-06:00", "bytes": "10MB", "digest": "1d", "change": "words:20",
    "include": '/news/*\n/"a b"/*', "exclude": "/it's/*", "path": '/it\'s "here"/*', "contact": "a@b.example",
    "selector": '[data-a="b\'s"]', "target": "https://hook.example/?a='b'&c=\"d\"", "text": 're:"sold\\s+out"',
    "content_types": "text/html\napplication/pdf", "order": "breadth", "importance": "pagerank", "interval": "2d",
}  # fmt: skip
"""Values of texts that not every text is."""
_STATE = """form => {
  const found = {};
  for (const it of form.elements) {
    if (!it.name || it.type === "hidden" || it.tagName === "BUTTON") continue;
    const kind = it.tagName === "SELECT" ? "select" : it.tagName === "TEXTAREA" ? "lines"
      : it.type === "checkbox" ? "check" : it.inputMode === "decimal" ? "number" : it.type;
    if (kind === "check") {
      const row = found[it.name] ??= {kind: kind, value: [], choices: []};
      row.choices.push(it.value);
      if (it.checked) row.value.push(it.value);
    } else found[it.name] = {
      kind: kind, value: it.value, required: it.required, choices: [...(it.options || [])].map(one => one.value),
    };
  }
  return found;
}"""
State = dict[str, dict[str, Any]]


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repo:
    made = Repo.create(tmp_path_factory.mktemp("forms") / "repo")
    with Site({"/": page("one", "/a"), "/a": page("two")}) as site:
        made.crawl(site.url("/"))
    made.run("add", SEED, "--depth", "3", "--every", "6h")
    with (made.folder / "recrawl.toml").open("a") as settings:
        settings.write('\n[[alert]]\nname = "prices"\ntarget = "feed"\n')
    return made


@pytest.fixture(scope="module")
def service(repo: Repo) -> Iterator[Service]:
    with Service(repo.folder, ServiceConfig(schedule=False)) as started:
        yield started


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS.split())
        yield opened
        opened.close()


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(120_000)
    yield context.new_page()
    context.close()


class Filled:
    """A form in a browser that is opened, filled and saved."""

    def __init__(self, tab: Page, service: Service, repo: Repo, path: str, selector: str) -> None:
        seed = next(it.url for it in load(repo.folder / "recrawl.toml").seeds if "shop.example" in it.url)
        self.url = service.url.rstrip("/") + path.replace("{seed}", quote(seed, safe=""))
        self.tab, self.selector, self.file = tab, selector, repo.folder / "recrawl.toml"

    @property
    def form(self) -> Locator:
        return self.tab.locator(self.selector)

    def open(self) -> State:
        answer = self.tab.goto(self.url)
        assert answer is not None
        assert answer.status == 200, self.url
        found: State = self.form.evaluate(_STATE)
        return found

    def fill(self, name: str, row: dict[str, Any], value: Any) -> None:
        fields = self.form.locator(f'[name="{name}"]:not([type=hidden])')
        if row["kind"] == "check":
            for number, choice in enumerate(row["choices"]):
                fields.nth(number).set_checked(choice in value)
        elif row["kind"] == "select":
            fields.select_option(value)
        else:
            fields.fill(value)

    def save(self) -> dict[str, str]:
        """Press the button; the errors by field."""
        with self.tab.expect_navigation():
            self.form.locator("button.main").click()
        rows = self.tab.locator("span.error").evaluate_all("all => all.map(it => [it.id.slice(2), it.innerText])")
        return dict(rows)

    def save_with(self, given: dict[str, Any]) -> dict[str, Any]:
        """Fill the form and save it, without the fields that it refuses; what it took."""
        before, taken, tried = self.open(), dict(given), set[str]()
        while True:
            for name, value in taken.items():
                self.fill(name, before[name], value)
            stored = self.file.read_bytes()
            wrong = self.save()
            if not wrong:
                return taken
            assert self.file.read_bytes() == stored, "it was refused and saved"
            for name, problem in wrong.items():
                assert name in taken, f"{name}: {problem}"
                most = re.search(r"from \S+ to ([0-9,.e+]+)", problem)
                if most and name not in tried:
                    tried.add(name)
                    taken[name] = most[1].rstrip(".").replace(",", "")
                else:
                    del taken[name]
            self.open()


def candidates(state: State) -> Iterator[dict[str, Any]]:
    """What the fields are filled with, one after the other."""
    numbers, texts, long = ("0", "999999999999", "", "7"), ("", QUOTED, "0", ""), ("", f"{QUOTED}\nsecond", "0", "")
    rounds = max([5, *(len(row["choices"]) for row in state.values() if row["kind"] == "select")])
    for turn in range(rounds):
        given: dict[str, Any] = {}
        for name, row in state.items():
            if row["kind"] == "check":
                given[name] = ([], row["choices"], row["choices"][:1], [])[turn % 4]
            elif row["kind"] == "select":
                given[name] = row["choices"][turn % len(row["choices"])]
            else:
                values = {"number": numbers, "lines": long}.get(row["kind"], texts)
                given[name] = GOOD.get(name.removeprefix("param-"), "7") if turn % 5 == 4 else values[turn % 5]
                if not given[name] and row["required"]:
                    del given[name]
        yield given


@pytest.mark.parametrize("name", FORMS)
def test_what_is_stored_is_what_was_given(tab: Page, service: Service, repo: Repo, name: str) -> None:
    filled = Filled(tab, service, repo, *FORMS[name])
    ever: dict[str, set[str]] = {}
    for given in candidates(filled.open()):
        before = {key: row["value"] for key, row in filled.open().items()}
        taken = filled.save_with(given)
        after = {key: row["value"] for key, row in filled.open().items()}
        for key, value in taken.items():
            ever.setdefault(key, set()).add(str(value))
            if key in ("secret", "forget_secret"):
                continue  # neither is shown
            assert shown(after[key]) == shown(value) or is_default(after[key], value), f"{key}: {value!r}"
        assert {key: value for key, value in after.items() if key in before and key not in taken} == {
            key: value for key, value in before.items() if key not in taken
        }
        stored = filled.file.read_bytes()
        tomllib.loads(stored.decode())
        assert filled.save() == {}
        assert filled.file.read_bytes() == stored, "an unchanged save changes nothing"
    least = {"seed": {"depth": "0", "every": "1w", "include": GOOD["include"]}, "alert": {"least": "0", "digest": "1d"}}
    for key, value in least.get(name, {}).items():
        assert value in ever[key], (key, ever[key])


INTERVALS = ("6h", "1w", "0", "", "5", QUOTED, "90m", "36500d", "99999999999d", "")


@pytest.mark.parametrize("path", ["/pages/{page}", "/sites/{site}"])
def test_an_interval_is_stored_as_given_and_harms_no_other_rule(
    tab: Page, service: Service, repo: Repo, path: str
) -> None:
    number, of_site = repo.sql("SELECT id, site FROM pages WHERE url LIKE 'http://127%' ORDER BY id DESC")[0]
    filled = Filled(tab, service, repo, path.format(page=number, site=of_site), "form[action='/interval']")
    kept = [rules_of(seed) for seed in load(filled.file).seeds]
    for value in INTERVALS:
        before = filled.open()["every"]["value"]
        filled.form.locator("[name=every]").fill(value)
        with tab.expect_navigation():
            filled.form.locator("button").click()
        after = filled.open()["every"]["value"]
        assert after == value or (after == before and not is_interval(value)), (value, before, after)
        stored = filled.file.read_bytes()
        with tab.expect_navigation():
            filled.form.locator("button").click()
        assert filled.file.read_bytes() == stored, "an unchanged save changes nothing"
        assert [rules_of(seed) for seed in load(filled.file).seeds if rules_of(seed)[0] in dict(kept)] == kept


def rules_of(seed: Seed) -> tuple[str, Seed]:
    """A seed's URL, and its rules without the interval."""
    return seed.url, replace(seed, every="")


def is_interval(text: str) -> bool:
    """Whether a text is an interval that a seed may have."""
    return text in ("", "6h", "1w", "90m", "36500d")


TAGS = ("0", "false", "ä" * 64, "日本 tag", "a/b: c + d-e.f", "  spaces  ")
NO_TAGS = (QUOTED, "a\u202eb", "  ", "x" * 65)


def test_tags_are_stored_as_given_and_go_again(tab: Page, service: Service, repo: Repo) -> None:
    number = repo.sql("SELECT id FROM pages WHERE url LIKE 'http://127%' ORDER BY id")[0][0]
    url = f"{service.url.rstrip('/')}/pages/{number}"
    for name in TAGS:
        for _ in range(2):  # again changes nothing
            tab.goto(url)
            tab.locator("#tag").fill(name)
            with tab.expect_navigation():
                tab.locator(".tags form:last-child button").click()
        assert repo.sql("SELECT name FROM tags") == [(name.strip(),)]
        tab.goto(url)
        assert tab.locator(".tags span.tag").count() == 1
        with tab.expect_navigation():
            tab.locator(".tags button.plain").click()
        assert repo.sql("SELECT name FROM tags") == []
    for name in NO_TAGS:
        tab.goto(url)
        tab.locator("#tag").evaluate("it => it.removeAttribute('maxlength')")
        tab.locator("#tag").fill(name)
        with tab.expect_navigation():
            tab.locator(".tags form:last-child button").click()
        assert "Invalid tag" in tab.inner_text("body")
        assert repo.sql("SELECT name FROM tags") == []


FILTERS = (
    {"selectors": '#clock\n[data-a="b\'s"]', "patterns": ""},
    {"selectors": "", "patterns": "0"},
    {"selectors": "#x", "patterns": " \\d+ \"visitors\" & 'more' \n<b>|\\\\"},
    {"selectors": "a:not(.b)\np > b", "patterns": "(?i)false"},
)


def test_noise_filters_are_stored_as_given_and_go_again(tab: Page, service: Service, repo: Repo) -> None:
    filled = Filled(tab, service, repo, "/settings/noise", "form[action='/settings/noise']")
    site = next(name for name in filled.open()["site"]["choices"] if name)
    for number, given in enumerate(FILTERS):
        filled.open()
        for name, value in {**given, "site": site if number % 2 else ""}.items():
            filled.fill(name, {"kind": "select" if name == "site" else "lines"}, value)
        stored = filled.file.read_bytes()
        with tab.expect_navigation():
            filled.form.locator("button:not(.main)").click()
        assert filled.file.read_bytes() == stored, "a preview changes nothing"
        assert filled.form.evaluate(_STATE)["patterns"]["value"] == given["patterns"]
        assert filled.save() == {}
        added = load(filled.file).filters[-1]
        assert ("\n".join(added.selectors), "\n".join(added.patterns)) == (given["selectors"], given["patterns"])
        assert added.site == (site if number % 2 else "")
    assert filled.open()["patterns"]["value"] == ""
    for left in range(len(FILTERS) - 1, -1, -1):
        with tab.expect_navigation():
            tab.locator("form[action='/settings/noise/remove'] button").first.click()
        assert len(load(filled.file).filters) == left


def test_the_lab_shows_what_it_was_given(tab: Page, service: Service, repo: Repo) -> None:
    filled = Filled(tab, service, repo, "/lab", "form[action='/lab']")
    stored = filled.file.read_bytes()
    for budget, wrong in (("0", True), ("", True), (QUOTED, True), ("nan", True), ("1e999", True), ("-1", True)):
        filled.open()
        filled.fill("budget", {"kind": "text"}, budget)
        assert bool(filled.save()) is wrong, budget
        assert filled.form.evaluate(_STATE)["budget"]["value"] == budget
    for policies in ([], ["greedy", "shock"]):
        row = filled.open()["policy"]
        filled.fill("policy", row, policies)
        filled.fill("budget", {"kind": "text"}, "1234567, 0.1234567, 1000000000")
        filled.fill("cycle", {"kind": "text"}, "36h")
        assert bool(filled.save()) is (not policies)
    after = filled.open()
    assert after["budget"]["value"] == "1234567, 0.1234567, 1000000000"
    assert (after["cycle"]["value"], after["policy"]["value"]) == ("36h", ["greedy", "shock"])
    assert filled.file.read_bytes() == stored


def shown(value: Any) -> Any:
    """A value as it is compared."""
    if isinstance(value, list):
        return sorted(value)
    try:
        return float(value)
    except ValueError:
        return value.strip().replace("\r\n", "\n")


def is_default(after: Any, given: Any) -> bool:
    """Whether a field was emptied and shows its default."""
    return bool(given == "" and after != "")
