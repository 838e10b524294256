"""Operations: what is declared once holds on every surface."""

from __future__ import annotations

import ast
import http.client
import importlib
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict, Unpack, get_args
from urllib.parse import urlencode

import msgspec
import pytest
import typer.main
from hypothesis import HealthCheck, given, settings, strategies

import recrawl
from recrawl.cli import GROUPS, VERBS, app_of, command_of
from recrawl.mcp_server import assistant_tools
from recrawl.operations import (
    Described,
    Given,
    InvalidValue,
    Operation,
    declared,
    members_of,
    operation,
    parameters_of,
)
from recrawl.parameters import ChangeQuery, PageQuery, SearchQuery, SiteRules
from recrawl.repository.results.answers import BaseAnswer
from recrawl.serve.api import OPERATIONS, jobs, service
from recrawl.serve.api.openapi import document
from recrawl.serve.api.routes import answer_of
from recrawl.serve.dashboard.forms import value_text
from recrawl.serve.service import Service, ServiceConfig
from recrawl.settings import SETTINGS, Seed, Setting, load
from tests.serving import Asker, in_time
from tests.test_serve_api import API, Idle
from tests.world import Repo, Site, page

EVERY = {one.name: one for one in OPERATIONS}


class Rules(TypedDict, total=False):
    """Rules for the tests below."""

    depth: Annotated[int | None, Described("The depth.", least=0, most=9)]


class Things:
    """A class with an operation."""

    @operation(http="POST /things", examples=("do it",))
    def do(
        self,
        *,
        name: Annotated[str, Described("The name.")],
        share: Annotated[float, Described("The share.", least=0, most=1)] = 0.5,
        kind: Annotated[str, Described("The kind.", choices=("a", "b"))] = "a",
        progress: object = None,
        **rules: Unpack[Rules],
    ) -> int:
        """Do a thing.

        Slowly.
        """
        del name, share, kind, progress, rules
        return 1


THING = declared(Things)["do"]


def test_a_function_is_the_declaration() -> None:
    assert (THING.name, THING.summary, THING.answer) == ("do", "Do a thing.", int)
    assert list(THING.parameters) == ["name", "share", "kind", "depth"]  # `progress` is for Python alone
    schema = msgspec.json.schema(THING.input())["$defs"]["DoParameters"]
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["name"]
    assert schema["properties"]["share"] == {
        "type": "number", "minimum": 0.0, "maximum": 1.0, "default": 0.5, "description": "The share.",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("values", "parameter", "message"),
    [
        ({}, "name", "Missing parameter 'name'."),
        ({"name": "x", "shar": 1}, "shar", "did you mean 'share'?"),
        ({"name": "x", "share": 1.5}, "share", "expected float <= 1.0"),
        ({"name": "x", "share": "much"}, "share", "expected"),
        ({"name": "x", "kind": "c"}, "kind", "invalid value 'c' of 'kind'; use a, b"),
        ({"name": "x", "depth": -1}, "depth", "expected int >= 0"),
        ({"name": "x", "depth": True}, "depth", "expected"),
        ({"name": "a\0b"}, "name", "NUL"),
        ({"name": "half \ud83d"}, "name", "half characters"),
        ({"name": "x", "progress": 1}, "progress", "Unknown parameter"),
        ({"name": ""}, "name", "expected str of length >= 1"),
    ],
)
def test_what_is_wrong_is_named(values: dict[str, Any], parameter: str, message: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        THING.read(values)
    assert caught.value.parameter == parameter
    assert message in str(caught.value)


@given(strategies.fixed_dictionaries({}, optional={"depth": strategies.integers(0, 9) | strategies.none()}))
def test_what_is_given_is_what_arrives(rules: dict[str, Any]) -> None:
    assert THING.read({"name": "x", **rules}) == {"name": "x", **rules}


def test_values_of_a_query_are_texts() -> None:
    assert THING.read({"name": "7", "share": "0.25", "depth": "0"}, texts=True) == {
        "name": "7", "share": 0.25, "depth": 0,
    }  # fmt: skip


def test_every_answer_of_the_api_has_fields() -> None:
    for one in OPERATIONS:
        kind = answer_of(one)
        if one.name != "openapi" and kind is not None:
            assert issubclass(getattr(kind, "__origin__", kind), BaseAnswer) or is_dataclass(kind), one.name
    described = document(OPERATIONS)
    objects = {name: part for name, part in described["components"]["schemas"].items() if part.get("type") == "object"}
    assert [name for name, part in objects.items() if not part.get("properties")] == []


# -- the law of round trips ------------------------------------------------------------------------------------

TEXTS = strategies.text(strategies.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)


def values_of(one: Given) -> strategies.SearchStrategy[Any]:
    """All that a parameter takes: 0, empty, the largest, Unicode."""
    about = one.about
    if about.choices:
        return strategies.sampled_from(about.choices)
    least, most = (
        limit if limit is not None else sign * 2.0**53 for sign, limit in ((-1, about.least), (1, about.most))
    )
    single: dict[Any, strategies.SearchStrategy[Any]] = {
        bool: strategies.booleans(),
        int: strategies.integers(int(least), int(most)),
        float: strategies.floats(least, most),
        str: TEXTS.filter(bool) if one.required else TEXTS,
    }
    if one.many:
        return strategies.lists(single[get_args(one.kind)[0]], min_size=one.required, max_size=4)
    anything = strategies.booleans() | strategies.integers(0, 9) | TEXTS | strategies.lists(TEXTS)
    return single.get(one.kind, anything)


def as_text(value: Any) -> str:
    """A value in a query."""
    return value if isinstance(value, str) else json.dumps(value)


PARAMETERS = [
    (one, it.name) for one in (*OPERATIONS, *declared(assistant_tools).values()) for it in one.parameters.values()
]


@pytest.mark.parametrize(("one", "name"), PARAMETERS, ids=[f"{one.name}-{name}" for one, name in PARAMETERS])
@given(data=strategies.data())
@settings(max_examples=10)
def test_every_field_of_every_operation_arrives_as_it_was_given(one: Operation, name: str, data: Any) -> None:
    """As JSON, and as the text of a query."""
    value = data.draw(values_of(one.parameters[name]))
    others = {it.name: data.draw(values_of(it)) for it in one.parameters.values() if it.required and it.name != name}
    assert one.read(json.loads(json.dumps({**others, name: value})))[name] == value
    if one.method in ("GET", "DELETE"):
        texts = {key: [*map(as_text, it)] if isinstance(it, list) else as_text(it) for key, it in others.items()}
        assert one.read({**texts, name: as_text(value)}, texts=True)[name] == value


@pytest.mark.parametrize("one", OPERATIONS, ids=[one.name for one in OPERATIONS])
def test_an_unknown_field_suggests_the_nearest(one: Operation) -> None:
    for name in one.parameters:
        with pytest.raises(InvalidValue, match=rf"did you mean '{name}'\?"):
            one.read({f"{name}x": 1})


def command_lines() -> Iterator[tuple[str, Any, Given]]:
    """Each option and argument of the command line that is declared for other surfaces too."""
    for verb in VERBS:
        if verb not in GROUPS:
            parser = typer.main.get_command(app_of(verb)).commands[verb]  # type: ignore[attr-defined]
            yield from ((verb, parser, it) for it in parameters_of(command_of(verb)).values())


OPTIONS = list(command_lines())


@pytest.mark.parametrize(("verb", "parser", "one"), OPTIONS, ids=[f"{verb}-{it.name}" for verb, _, it in OPTIONS])
@given(data=strategies.data())
@settings(max_examples=10)
def test_every_option_arrives_as_it_was_given(verb: str, parser: Any, one: Given, data: Any) -> None:
    """What is declared once is read from the command line as well: its own spelling, its range, several values."""
    value = data.draw(values_of(one))
    word = one.about.option.partition("/")[0] or f"--{one.name.replace('_', '-')}"
    if one.kind is bool:
        words = [word] if value else [] if one.default is False else [f"--no-{word[2:]}"]
    else:
        texts = [*map(as_text, value)] if one.many else [as_text(value)]
        words = ["--", *texts] if one.about.argument else [f"{word}={text}" for text in texts]
    filled = [] if one.about.argument else [it.name for it in parser.params if it.required]
    found = parser.make_context(verb, [*words, *(["--", *("x" for _ in filled)] if filled else [])]).params[one.name]
    assert (list(found) if one.many else found) == value


def test_every_rule_is_offered_on_every_surface(both: tuple[Repo, Asker]) -> None:
    repo, ask = both
    rules = set(members_of(SiteRules))
    assert rules == {name for name in Seed.__dataclass_fields__ if name != "url"}
    assert rules <= set(parameters_of(recrawl.Repository.add))
    assert rules <= set(parameters_of(EVERY["add"].function))
    assert rules - {"allow_private"} <= set(declared(assistant_tools)["add"].parameters)
    help_, form = repo.run("add", "--help").out, ask.get("/settings", Accept="text/html").text
    for name in rules:
        assert f"--{name.replace('_', '-')}" in help_
        assert f'name="{name}"' in form


def rules() -> strategies.SearchStrategy[dict[str, Any]]:
    """Rules of a site: 0, empty, the largest, Unicode, quotes; patterns, levels and durations that mean something."""
    patterns = strategies.sampled_from(["/docs/*", "re:/[äöü]+", "/a b/*", "/c'd\"e"])
    meant = {
        "change": strategies.sampled_from(["", "text", "divergence:0.1", "words:7"]),
        "every": strategies.sampled_from(["", "30m", "6h", "1d"]),
    }
    made = {
        name: strategies.lists(patterns, unique=True) if it.many else meant[name] if name in meant else values_of(it)
        for name, it in members_of(SiteRules).items()
    }
    return strategies.fixed_dictionaries({}, optional=made)


def as_options(name: str, value: Any) -> list[str]:
    """A rule on the command line."""
    word = f"--{name.replace('_', '-')}"
    if isinstance(value, bool):
        return [word if value else f"--no-{word[2:]}"]
    if isinstance(value, list):
        return [f"{word}={item}" for item in value] or [f"--clear={name}"]
    return [f"{word}={value}"] if value != "" else [f"--clear={name}"]


def kept(repo: Repo, url: str) -> dict[str, Any]:
    """The rules of a seed, as `recrawl.toml` has them."""
    seed = asdict(next(seed for seed in load(repo.folder / "recrawl.toml").seeds if seed.url == url))
    return {name: list(value) if isinstance(value, tuple) else value for name, value in seed.items() if name != "url"}


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Repo, Asker]]:
    """A repository, and its service."""
    repo = Repo.create(tmp_path_factory.mktemp("operations") / "repo")
    with Service(repo.folder, ServiceConfig(schedule=False, runner=Idle())) as service:
        yield repo, Asker(service)


def submit(ask: Asker, path: str, **form: str | list[str]) -> Any:
    """Send a form with the token and the cookie of its page."""
    shown = ask.get(path, Accept="text/html")
    token = re.search(r'name="csrf" value="([^"]+)"', shown.text)
    assert token is not None
    cookie = {"Cookie": shown.headers["set-cookie"].partition(";")[0], "Accept": "text/html"}
    return ask.post(path, {**form, "csrf": token[1]}, form=True, headers=cookie)


def give(way: str, both: tuple[Repo, Asker], url: str, named: dict[str, Any]) -> None:
    """Give rules by a surface."""
    repo, ask = both
    if way == "command":
        repo.run("add", url, *(word for name, value in named.items() for word in as_options(name, value)))
    elif way == "python":
        with recrawl.open(repo.folder) as opened:
            (addition,) = opened.add(url, **named)
            assert {name: as_json(addition.as_dict()[name]) for name in named} == named
    elif way == "api":
        answer = ask.post(f"{API}/seeds", {"url": url, **named})
        assert (answer.status, {name: answer.json[name] for name in named}) == (201, named)
    elif way == "form":
        texts = {name: value_text(value) for name, value in named.items()}
        assert submit(ask, "/settings", url=url, editing="1", **texts).status == 200
    else:
        with recrawl.open(repo.folder) as opened:
            tool = declared(assistant_tools)["add"]
            tool.function(opened, **tool.read(json.loads(json.dumps({"url": url, **named}))))


def as_json(value: Any) -> Any:
    """A value as JSON has it."""
    return json.loads(json.dumps(value))


@pytest.mark.parametrize("way", ["command", "python", "api", "form", "assistant"])
@given(before=rules(), named=rules())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25)
def test_rules_are_the_same_however_they_are_given(
    both: tuple[Repo, Asker], way: str, before: dict[str, Any], named: dict[str, Any]
) -> None:
    """The same is stored, shown and returned by every surface, whatever was there before."""
    repo, ask = both
    url = f"https://{way}.example/"
    if way == "assistant":
        named = {name: value for name, value in named.items() if name != "allow_private"}
    with recrawl.open(repo.folder) as opened:
        opened.add(url, clear=tuple(members_of(SiteRules)))
        opened.add(url, **before)
    give(way, both, url, named)
    empty = as_json({name: value for name, value in asdict(Seed(url)).items() if name != "url"})
    assert kept(repo, url) == {**empty, **before, **named}
    listed = {seed.pop("url"): seed for seed in ask.get(f"{API}/seeds").json["items"]}
    assert listed[url] == kept(repo, url)


# -- a field is declared once ----------------------------------------------------------------------------------

SAME = {
    "changes": (ChangeQuery, recrawl.Repository.changes),
    "search": (SearchQuery, recrawl.Repository.search),
    "pages": (PageQuery, recrawl.Repository.pages),
}
"""Operations whose conditions are the same on the command line, in Python and over HTTP."""


@pytest.mark.parametrize("name", SAME)
def test_conditions_are_declared_once(name: str) -> None:
    group, method = SAME[name]
    surfaces = (command_of(name), EVERY[name].function, method)
    for condition, one in members_of(group).items():
        assert [parameters_of(surface)[condition] for surface in surfaces] == [one] * 3


def test_the_rules_of_a_site_are_declared_for_users_once() -> None:
    """Parameters declare them; what is stored (`Seed`) and what the crawler takes have them too."""
    rules, found = set(members_of(SiteRules)), []
    for path in Path(recrawl.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                named = {
                    it.target.id
                    for it in node.body
                    if isinstance(it, ast.AnnAssign) and isinstance(it.target, ast.Name)
                }
            elif isinstance(node, ast.FunctionDef):
                named = {it.arg for it in (*node.args.args, *node.args.kwonlyargs)}
            else:
                continue
            found += [node.name] * (len(named & rules) > 3)
    assert sorted(found) == ["CrawlOptions", "PublicRules", "Scope", "Seed", "SiteOptions"]


OWN_TEXT = {"site", "since", "cursor", "limit", "url", "query", "budget", "seed", "cycle", "archives", "names", "file"}
"""Names that mean different things in different operations, such as `limit`."""


def test_no_field_is_described_twice() -> None:
    """What a command and the operation of the API that does the same both take is one declaration."""
    for verb in VERBS:
        given = {} if verb in GROUPS else parameters_of(command_of(verb))
        for one in (
            one for one in OPERATIONS if verb in one.commands and one.name != "save_filter"
        ):  # which keeps texts
            own = {"selector"} if one.name == "watched_values" else set()  # where the value is, not what must change
            for name in set(given) & set(one.parameters) - OWN_TEXT - own:
                assert given[name].about is one.parameters[name].about, (verb, one.name, name)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Repo, Asker]]:
    """A repository with changes of all kinds, and its service."""
    repo = Repo.create(tmp_path_factory.mktemp("changed") / "repo")
    with Site({"/": page("Start", "/a", "/b", "/c"), "/a": page("A one"), "/b": page("B"), "/c": page("C")}) as site:
        repo.crawl(site.url())
        repo.later(days=1)
        site["/a"], site["/b"] = page("A two and three"), page("B again " + "with many words " * 9)
        del site["/c"]
        repo.cycle()
        for _ in range(3):  # it is gone once it was missing for a while
            repo.later(days=2)
            repo.cycle()
        repo.run("tag", "best", site.url("/a"))
    with Service(repo.folder, ServiceConfig(schedule=False, runner=Idle())) as service:
        yield repo, Asker(service)


CONDITIONS = {
    "path": strategies.sampled_from(["", "/a", "/b", "nowhere", "ü"]),
    "outcome": strategies.sampled_from(["", "changed", "new", "gone"]),
    "divergence": strategies.sampled_from([0.0, 0.1, 0.5, 1.0]),
    "significant": strategies.booleans(),
    "tag": strategies.sampled_from(["", "best", "none"]),
    "unread": strategies.booleans(),
    "since": strategies.sampled_from(["2020-01-01", "2100-01-01"]),
    "until": strategies.sampled_from(["2020-01-01", "2100-01-01"]),
}


@given(asked=strategies.fixed_dictionaries({}, optional=CONDITIONS))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30)
def test_the_same_changes_are_listed_however_they_are_asked_for(
    changed: tuple[Repo, Asker], asked: dict[str, Any]
) -> None:
    repo, ask = changed
    assert set(CONDITIONS) == set(members_of(ChangeQuery)) - {"site"}
    flags = [f"--{name}" for name, value in asked.items() if value is True]
    texts = [f"--{name}={value}" for name, value in asked.items() if not isinstance(value, bool)]
    by_command = [(row["url"], row["outcome"]) for row in repo.json("changes", *flags, *texts)]
    with recrawl.open(repo.folder) as opened:
        by_python = [(change.url, change.outcome) for change in opened.changes(**asked)]
    query = urlencode({name: as_text(value) for name, value in asked.items()})
    by_api = [(row["url"], row["outcome"]) for row in ask.get(f"{API}/changes?{query}").json["items"]]
    assert by_command == by_python == by_api
    if not asked:
        assert sorted(outcome for _, outcome in by_api) == ["changed"] * 2 + ["gone"] + ["new"] * 4


def setting_values(row: Setting) -> strategies.SearchStrategy[Any]:
    """Values of a setting that mean something."""
    if row.choices:
        return strategies.sampled_from(row.choices)
    if isinstance(row.default, bool):
        return strategies.booleans()
    if isinstance(row.default, int):
        return strategies.integers(int(row.least), int(min(row.most, 10**9)))
    if isinstance(row.default, float):
        return strategies.floats(row.least, min(row.most, 1e9))
    if isinstance(row.default, list):
        return strategies.lists(strategies.sampled_from(["text/html", "image/*", "a b", "ü"]), max_size=3)
    return strategies.just(row.default)


@pytest.mark.parametrize("row", [row for row in SETTINGS if row.name != "anchors"], ids=lambda row: row.name)
@given(data=strategies.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=1)
def test_a_setting_is_the_same_however_it_is_given(both: tuple[Repo, Asker], row: Setting, data: Any) -> None:
    repo, ask = both
    for way in ("command", "python", "api"):
        value = data.draw(setting_values(row))
        if way == "command":
            repo.run("config", row.name, "--", ",".join(value) if isinstance(value, list) else as_text(value))
        elif way == "python":
            with recrawl.open(repo.folder) as opened:
                opened.configure(**{row.name: value})
        else:
            assert ask.ask("PUT", f"{API}/settings/{row.name}", {"value": value}).status == 200
        shown = [load(repo.folder / "recrawl.toml")[row.name], ask.get(f"{API}/settings/{row.name}").json["value"]]
        shown += [one["value"] for one in repo.json("config", row.name)]
        assert shown == [value] * 3, way


# -- operations that are methods of the repository -------------------------------------------------------------

METHODS = {name: one for name, one in declared(recrawl.Repository).items() if one.http}


def test_a_method_of_the_repository_is_the_operation_of_the_api() -> None:
    """Its signature is the request, its result the answer; nothing is declared a second time."""
    for name, one in METHODS.items():
        assert EVERY[name] is one
        assert one.function is inspect.getattr_static(recrawl.Repository, one.function.__name__, None)
    by_number = {one.name for one in OPERATIONS if "numbered" in one.about}
    of_service = {one.name for place in (service, jobs) for one in declared(place).values()} | {"openapi"}
    assert set(EVERY) - by_number - of_service == set(METHODS)
    assert (len(EVERY), len(by_number), len(METHODS)) == (len(OPERATIONS), 10, 40)
    for name in by_number:  # each is made from that of a page with a URL
        assert inspect.unwrap(EVERY[name].function) is not EVERY[name].function


def test_what_the_service_declares_needs_the_service() -> None:
    """It takes more than the repository: the scheduler, uploads, limits, the request itself."""
    needs = {"context.scheduler", "context.uploads", "context.jobs", "context.events", "context.folder", "request", "_"}
    needs |= {"context.settings", "run_command", "_layout(context)", "context.writing()", "Response", "saved_filters"}
    for one in (*declared(service).values(), *declared(jobs).values()):
        assert any(word in inspect.getsource(one.function) for word in needs), one.name


@given(
    conditions=strategies.fixed_dictionaries(
        {},
        optional={
            "path": strategies.sampled_from(["", "/news/*", "re:/[äöü]+"]),
            "text": TEXTS.filter(lambda text: not text.startswith("re:")),
            "divergence": strategies.floats(0, 1),
            "significance": strategies.sampled_from([0.0, 0.5, 1.0]),
            "significant": strategies.booleans(),
            "hold": strategies.booleans(),
            "outcomes": strategies.lists(strategies.sampled_from(["changed", "new", "gone"]), unique=True),
            "secret": strategies.sampled_from(["", "ä key"]),
            "digest": strategies.sampled_from(["", "1h", "2d"]),
            "change": strategies.sampled_from(["", "text", "words:7"]),
        },
    )
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=15)
def test_an_alert_is_the_same_by_python_and_api(both: tuple[Repo, Asker], conditions: dict[str, Any]) -> None:
    repo, ask = both
    with recrawl.open(repo.folder) as opened:
        by_python = opened.put_alert(name="python", target="feed", **conditions)
    answer = ask.ask("PUT", f"{API}/alerts/api", {"target": "feed", **conditions})
    assert answer.status == 200, answer.text
    listed = {row.pop("name"): row for row in ask.get(f"{API}/alerts").json["items"]}
    assert listed["api"] == listed["python"]
    shown = as_json(asdict(by_python)) | {"secret": bool(by_python.secret)}
    assert shown.pop("name") == "python"
    assert listed["python"] == shown
    stored = {rule.name: rule for rule in load(repo.folder / "recrawl.toml").alerts}
    assert replace(stored["api"], name="python") == stored["python"] == by_python
    for name in ("python", "api"):
        assert ask.ask("DELETE", f"{API}/alerts/{name}").json == {"removed": name}


def test_a_noise_filter_is_the_same_by_python_api_and_form(both: tuple[Repo, Asker]) -> None:
    repo, ask = both
    given_: dict[str, Any] = {"site": "", "selectors": ["#visitors", "p.date"], "patterns": ["[0-9]+ Besucher"]}
    shown = []
    for way in ("python", "api", "form"):
        if way == "python":
            with recrawl.open(repo.folder) as opened:
                opened.add_noise_filter(**given_)
        elif way == "api":
            assert ask.post(f"{API}/filters", given_).status == 201
        else:
            form: dict[str, Any] = {
                name: "\n".join(value) if isinstance(value, list) else value for name, value in given_.items()
            }
            assert submit(ask, "/settings/noise", **form, do="save").status == 303
        shown.append(ask.get(f"{API}/filters").json["items"])
        assert "already exists" in ask.post(f"{API}/filters", given_).text
        removed = ask.ask("DELETE", f"{API}/filters/0").json
        assert {**removed["removed"], "number": 0} == shown[-1][0]
    assert shown == [[{**given_, "frame": [], "content": [], "number": 0}]] * 3


# -- a client made from the document --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The package that openapi-python-client makes from our document, without a warning."""
    folder = tmp_path_factory.mktemp("client")
    (folder / "openapi.json").write_text(json.dumps(document(OPERATIONS)))
    words = ["generate", "--path", "openapi.json", "--output-path", "our_client", "--meta", "none", "--fail-on-warning"]
    (folder / "quiet.yaml").write_text("post_hooks: []\n")
    made = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *words, "--config", "quiet.yaml"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (made.returncode, "WARNING" in made.stdout + made.stderr) == (0, False), made.stdout + made.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        yield importlib.import_module("our_client")


@contextmanager
def stream(service: Service, kinds: str) -> Iterator[Iterator[str]]:
    """The kinds of the events of a service as they come, from now on."""
    with closing(http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)) as line:
        line.request("GET", f"{API}/events?kinds={kinds}")
        with line.getresponse() as answer:
            names = (row.decode().strip().partition(": ") for row in iter(answer.readline, b""))
            yield (value for name, _, value in names if name == "event")


def test_a_generated_client_does_a_whole_job(client: Any, repo: Repo) -> None:
    """Add a site, crawl it, list what changed, compare two versions, make an alert."""

    def ask(name: str, /, **given: Any) -> Any:
        function = importlib.import_module(f"our_client.api.default.{name}")
        answer = function.sync(client=connection, **given)
        assert type(answer).__name__ != "Problem", answer
        return answer

    def body(name: str, /, **values: Any) -> Any:
        return getattr(models, name).from_dict(values)

    def known() -> set[str]:
        return {row.url for row in ask("pages").items}

    models = importlib.import_module("our_client.models")

    with (
        Site({"/": page("Start", "/a"), "/a": page("Apples")}) as site,
        Service(repo.folder, ServiceConfig()) as service,
        client.Client(base_url=service.url.rstrip("/")) as connection,
        stream(service, "ended,alert") as events,
    ):
        added = ask("add", body=body("AddBody", url=site.url(), allow_private=True, delay=0))
        assert (added.added, added.allow_private, added.delay) == (True, True, 0)
        alert = ask("put_alert", name="all", body=body("PutAlertBody", target="feed", outcomes=["changed"]))
        assert (alert.name, alert.secret, alert.outcomes) == ("all", False, ["changed"])
        in_time(lambda: next(kind for kind in events if kind == "ended" and site.url("/a") in known()))
        site["/a"] = page("Oranges and lemons")
        ask("recheck", body=body("RecheckBody", target=site.url("/a")))
        in_time(lambda: next(kind for kind in events if kind == "alert"))
        changes = ask("changes", outcome=models.ChangesOutcome.CHANGED)
        assert [row.url for row in changes.items] == [site.url("/a")]
        difference = ask("page_diff", url_query=changes.items[0].url)
        assert [row.at for row in ask("page_versions", url_query=site.url("/a")).items] == [
            difference.new.at,
            difference.old.at,
        ]
        assert "Oranges" in difference.diff
        assert difference.old.at < difference.new.at
        assert [row.alert for row in ask("outbox").items] == ["all"]
