"""Settings: one table, read from recrawl.toml and the command line; every mistake is named."""

from __future__ import annotations

import contextlib
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from recrawl.errors import UnknownName, UsageError
from recrawl.settings import (
    SETTINGS,
    TEMPLATE,
    Filter,
    Seed,
    checked,
    load,
    parse_value,
    write_filters,
    write_seeds,
    write_value,
    write_values,
)
from tests.complaints import complaint
from tests.world import Repo, Site, page

DEFAULTS = {setting.name: setting.default for setting in SETTINGS}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "recrawl.toml"
    path.write_text(TEMPLATE)
    return path


# -- the table -----------------------------------------------------------------------------------------------


def test_table_is_whole() -> None:
    assert len(DEFAULTS) == len(SETTINGS)
    for setting in SETTINGS:
        assert setting.help.endswith("."), setting.name
        assert setting.name == setting.name.lower()


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_pass_their_own_check(name: str, file: Path) -> None:
    assert checked(name, DEFAULTS[name]) == DEFAULTS[name]
    write_value(file, name, DEFAULTS[name])
    assert load(file)[name] == DEFAULTS[name]


def test_template_is_the_defaults(file: Path) -> None:
    values = load(file)
    assert {name: values[name] for name in DEFAULTS} == DEFAULTS
    assert not values.seeds
    assert not values.filters


# -- the file ------------------------------------------------------------------------------------------------


SEEDS = st.builds(
    Seed,
    url=st.text(max_size=20),
    depth=st.none() | st.integers(0, 100),
    limit=st.none() | st.integers(0, 10**9),
    include=st.lists(st.text(max_size=10), max_size=3).map(tuple),
    exclude=st.lists(st.text(max_size=10), max_size=3).map(tuple),
    allow_private=st.booleans(),
    delay=st.none() | st.floats(0, 1e6),
)


NUMBERS = [setting.name for setting in SETTINGS if isinstance(setting.default, float) and setting.most > 1]


@given(st.lists(SEEDS, max_size=4))
@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_seeds_are_read_as_they_were_written(file: Path, seeds: list[Seed]) -> None:
    write_seeds(file, tuple(seeds))
    assert load(file).seeds == tuple(seeds)


@given(st.sampled_from(NUMBERS), st.floats(1, 1000))
@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_numbers_are_read_as_they_were_written(file: Path, name: str, value: float) -> None:
    write_value(file, name, value)
    assert load(file)[name] == value


def test_comments_and_order_stay(file: Path) -> None:
    file.write_text('# mine\n[settings]\ndelay = 2.0  # slow\n\n[[seed]]\nurl = "https://a.example/"\n')
    write_value(file, "timeout", 9.0)
    write_seeds(file, (Seed("https://b.example/"),))
    lines = file.read_text().splitlines()
    assert lines[:3] == ["# mine", "[settings]", "delay = 2.0  # slow"]
    assert load(file)["timeout"] == 9.0
    assert [seed.url for seed in load(file).seeds] == ["https://b.example/"]


def test_no_draft_is_left(file: Path) -> None:
    write_value(file, "delay", 2.0)
    assert [path.name for path in file.parent.iterdir()] == ["recrawl.toml"]


MISTAKES: dict[str, tuple[str, list[str]]] = {
    "no TOML": ("[settings\n", ["TOML", "line 1"]),
    "part": ("[setings]\n", ["did you mean 'settings'"]),
    "setting": ("[settings]\ndelai = 1\n", ["did you mean 'delay'"]),
    "settings a number": ("settings = 3\n", ["settings"]),
    "seed a number": ("seed = 3\n", ["seed"]),
    "seed a table": ("[seed]\nurl = 'https://a.example/'\n", ["[[seed]]"]),
    "seed without url": ("[[seed]]\ndepth = 1\n", ["url"]),
    "url a number": ("[[seed]]\nurl = 3\n", ["url"]),
    "seed's entry": ("[[seed]]\nurl = 'https://a.example/'\ndepht = 1\n", ["did you mean 'depth'"]),
    "depth a text": ("[[seed]]\nurl = 'https://a.example/'\ndepth = 'deep'\n", ["depth", "deep"]),
    "depth a flag": ("[[seed]]\nurl = 'https://a.example/'\ndepth = true\n", ["depth"]),
    "depth a fraction": ("[[seed]]\nurl = 'https://a.example/'\ndepth = 1.5\n", ["depth"]),
    "limit negative": ("[[seed]]\nurl = 'https://a.example/'\nlimit = -1\n", ["limit"]),
    "include a text": ("[[seed]]\nurl = 'https://a.example/'\ninclude = '/a/*'\n", ["include", "/a/*"]),
    "include numbers": ("[[seed]]\nurl = 'https://a.example/'\ninclude = [3]\n", ["include"]),
    "allow_private a text": ("[[seed]]\nurl = 'https://a.example/'\nallow_private = 'no'\n", ["allow_private"]),
    "delay negative": ("[[seed]]\nurl = 'https://a.example/'\ndelay = -1\n", ["delay"]),
    "delay no number": ("[[seed]]\nurl = 'https://a.example/'\ndelay = nan\n", ["delay"]),
    "filter's site a number": ("[[filter]]\nsite = 3\n", ["site"]),
    "selectors a text": ("[[filter]]\nselectors = '#a'\n", ["selectors"]),
    "patterns numbers": ("[[filter]]\npatterns = [1]\n", ["patterns"]),
    "nan": ("[settings]\ndelay = nan\n", ["delay"]),
    "endless": ("[settings]\ndelay = inf\n", ["delay"]),
    "kind": ("[settings]\nindex = 1\n", ["index"]),
    "list": ("[settings]\ntracking = 'utm_*'\n", ["tracking"]),
    "negative": ("[settings]\nretries = -1\n", ["retries"]),
    "flag for number": ("[settings]\nretries = true\n", ["retries"]),
    "nothing may be loaded": ("[settings]\nmax_bytes = 0\n", ["max_bytes"]),
    "no time to load": ("[settings]\ntimeout = 0\n", ["timeout"]),
    "no budget": ("[settings]\nbudget = 0\n", ["budget"]),
    "line break in contact": ('[settings]\ncontact = "a\\r\\nX-Evil: 1"\n', ["contact"]),
    "huge": ("[settings]\nseed = 99999999999999999999999\n", ["seed"]),
}


@pytest.mark.parametrize("kind", MISTAKES)
def test_mistakes_in_the_file(file: Path, kind: str) -> None:
    content, words = MISTAKES[kind]
    file.write_text(content)
    with pytest.raises(UsageError) as caught:
        load(file)
    for word in words:
        assert word in str(caught.value)


def test_no_text_at_all(file: Path) -> None:
    file.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UsageError, match="TOML"):
        load(file)


@pytest.mark.parametrize("rule", ["selectors = ['::nonsense((']", "patterns = ['(']"])
def test_filters_that_cannot_work(repo: Repo, rule: str) -> None:
    file = repo.folder / "recrawl.toml"
    file.write_text(file.read_text() + f"\n[[filter]]\n{rule}\n")
    complaint(repo.run("cycle", code=None), rule.partition("'")[2].partition("'")[0])


@given(st.text(max_size=60))
@examples(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_read_or_refused(file: Path, content: str) -> None:
    file.write_bytes(content.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(UsageError):
        load(file)


JSONISH = st.recursive(
    st.booleans() | st.integers(-10, 10) | st.floats(-1, 1) | st.sampled_from(["", "x", "https://a.example/"]),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["url", "depth", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.sampled_from([*DEFAULTS, "nonsense"]), JSONISH)
def test_any_value_is_taken_or_refused(name: str, value: Any) -> None:
    try:
        kept = checked(name, value)
    except UsageError:
        return
    assert type(kept) is type(DEFAULTS[name])
    assert checked(name, kept) == kept


# -- the command line ----------------------------------------------------------------------------------------


@given(st.sampled_from(list(DEFAULTS)), st.text(max_size=12))
def test_any_word_is_taken_or_refused(name: str, text: str) -> None:
    try:
        value = parse_value(name, text)
    except UsageError:
        return
    assert checked(name, value) == value


def test_unknown_setting_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean 'robots_hours'"):
        parse_value("robots_hour", "1")


def test_config_lists_all(repo: Repo) -> None:
    rows = repo.json("config")
    assert [row["name"] for row in rows] == list(DEFAULTS)
    lines = repo.run("config").out.splitlines()
    assert [line.split("\t")[0] for line in lines] == ["name", *DEFAULTS]


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("delay", "2.5", 2.5),
        ("delay", "3", 3.0),
        ("retries", "4", 4),
        ("index", "off", False),
        ("index", "Yes", True),
        ("order", "depth", "depth"),
        ("tracking", "a, b,,c_*", ["a", "b", "c_*"]),
        ("tracking", "", []),
        ("contact", "https://a.example/bot", "https://a.example/bot"),
        ("policy", "round-robin(order=shuffled)", "round-robin(order=shuffled)"),
    ],
)
def test_config_sets(repo: Repo, name: str, text: str, value: Any) -> None:
    repo.run("config", name, text)
    assert repo.json("config", name)[0]["value"] == value
    assert tomllib.loads((repo.folder / "recrawl.toml").read_text())["settings"][name] == value


@pytest.mark.parametrize("name", DEFAULTS)
def test_what_config_prints_it_takes(repo: Repo, name: str) -> None:
    """So that a value can be copied from one repository to another."""
    before = repo.json("config", name)
    repo.run("config", "--", name, repo.run("config", name).out.rstrip("\n"))
    assert repo.json("config", name) == before


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("delay", "fast"),
        ("delay", "-1"),
        ("delay", "nan"),
        ("delay", "inf"),
        ("per_server", "1.5"),
        ("per_server", "0"),
        ("index", "maybe"),
        ("order", "sideways"),
        ("budget", "0"),
        ("policy", "grady"),
        ("contact", "a\nX-Evil: 1"),
    ],
)
def test_config_refuses(repo: Repo, name: str, text: str) -> None:
    before = (repo.folder / "recrawl.toml").read_text()
    complaint(repo.run("config", name, text, code=None), name)
    assert (repo.folder / "recrawl.toml").read_text() == before


@pytest.mark.parametrize("words", [["dela"], ["dela", "1"]], ids=str)
def test_misspelt_setting(repo: Repo, words: list[str]) -> None:
    complaint(repo.run("config", *words, code=None), "did you mean 'delay'")


@pytest.mark.parametrize("contact", ["https://a.example/bot", "me@a.example", "Jörg <joerg@a.example>"])
def test_contact_is_sent(repo: Repo, site: Callable[..., Site], contact: str) -> None:
    web = site({"/": page("word")})
    repo.run("config", "contact", contact)
    assert repo.crawl(web.url())["new"] == 1
    agents = {one.headers["user-agent"] for one in web.log}
    assert len(agents) == 1
    assert "a.example" in agents.pop()


def test_filters_are_read_as_they_were_written(file: Path) -> None:
    filters = (Filter("https://a.example", ("#clock",), (r"\d+ visitors",)), Filter("", ("p",), ()))
    write_filters(file, filters)
    assert load(file).filters == filters
    write_filters(file, ())
    assert load(file).filters == ()


def test_several_values_are_written_at_once(file: Path) -> None:
    write_values(file, {"delay": 2.5, "retries": 7})
    assert (load(file)["delay"], load(file)["retries"]) == (2.5, 7)


@pytest.mark.parametrize(
    ("name", "value"),
    [("every", "0"), ("every", "0s"), ("every", "soon"), ("every", "0.1s"), ("contact", "me"), ("contact", "http://")],
)
def test_a_value_without_meaning_is_refused_when_it_is_set(name: str, value: str) -> None:
    with pytest.raises(UsageError, match="use"):
        parse_value(name, value)


@pytest.mark.parametrize("value", ["", "me@example.org", "mailto:me@example.org", "https://example.org/about"])
def test_a_contact_is_a_url_or_an_address(value: str) -> None:
    assert parse_value("contact", value) == value
