"""A policy of the user's own, in the user's own file: on the command line, in settings, as an object, in the lab."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recrawl
from recrawl.choose import describe, make_policy
from recrawl.errors import UnknownName, UsageError
from recrawl.lab.synth import SyntheticWorld, write
from tests.world import Repo, Site, page

MODULE = '''
"""A policy that visits pages by their number."""
import numpy as np
from recrawl import Picks

class ByNumber:
    """Pages by their number."""
    name = "by number: mine/1"
    source = "a test"
    needs = frozenset()

    def __init__(self, *, offset=0, order="up", names=()):
        self.offset, self.order, self.names = offset, order, names

    def cycle(self, book, budget, rng):
        pages = np.roll(np.flatnonzero(book.known), -self.offset)
        pages = pages[::-1] if self.order == "down" else pages
        for page in pages[:budget]:
            yield Picks(np.array([page]), np.array([1.0]), "is next by number")

    def learn(self, book, seen, at):
        book.memory["by.visits"] = book.kept("by.visits", 0.0)
        book.memory["by.visits"][seen.pages] += 1

class Keeps:
    """Forgets its parameter."""
    name, source, needs = "keeps", "a test", frozenset()

    def __init__(self, *, alpha=0.5):
        self._alpha = alpha

    def cycle(self, book, budget, rng):
        yield from ()

class NoNeeds:
    name, source = "no-needs", "a test"

    def cycle(self, book, budget, rng):
        yield from ()

class Angry(Keeps):
    def __init__(self, *, alpha=0.5):
        raise ValueError("alpha is below 1")

class Anything(Keeps):
    def __init__(self, *, thing=None):
        self.thing = thing

some_function = print
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The current folder, with the user's module in it."""
    (tmp_path / "own_policy_test.py").write_text(MODULE)
    (tmp_path / "broken_policy_test.py").write_text("class Broken(:\n")
    (tmp_path / "lacking_policy_test.py").write_text("import no_such_module_at_all\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    yield tmp_path
    for name in ("own_policy_test", "broken_policy_test", "lacking_policy_test"):
        sys.modules.pop(name, None)


@pytest.fixture
def web(site: Callable[..., Site]) -> Site:
    pages = {f"/{name}": page(f"words of {name}") for name in "abcd"}
    return site({"/": page("Front", *pages), **pages})


def own(name: str, **values: Any) -> Any:
    make_policy("own_policy_test:ByNumber")  # imports the module as the program does
    return getattr(sys.modules["own_policy_test"], name)(**values)


# -- text to policy and back -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "own_policy_test:ByNumber",
        "own_policy_test:ByNumber(offset=2)",
        "own_policy_test:ByNumber(offset=-2, order=down)",
        "own_policy_test:ByNumber(order='a, (b)')",
        "own_policy_test:ByNumber(names=['x', 'y=1'])",
    ],
)
def test_text_and_policy(folder: Path, text: str) -> None:
    policy = make_policy(text)
    assert describe(policy) == text
    assert vars(make_policy(describe(policy))) == vars(policy)


def test_the_current_folder_comes_last_on_the_path(folder: Path) -> None:
    (folder / "colorsys.py").write_text("raise RuntimeError('must not be imported')")
    sys.modules.pop("colorsys", None)
    make_policy("own_policy_test:ByNumber")
    assert sys.path[-1] == str(folder)
    import colorsys

    assert colorsys.rgb_to_hsv(0, 0, 0)


def test_the_path_stays_as_it_is_without_such_a_policy(folder: Path) -> None:
    make_policy("round-robin")
    assert str(folder) not in sys.path


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no_such_module_at_all:X", "there is no module 'no_such_module_at_all' in .* or on the Python path"),
        ("recrawl.no_such:X", "there is no module 'recrawl.no_such'"),
        ("broken_policy_test:Broken", "'broken_policy_test' cannot be imported: SyntaxError"),
        ("lacking_policy_test:X", "'lacking_policy_test' cannot be imported: .*no_such_module_at_all"),
        ("own_policy_test:ByNumbr", "did you mean 'ByNumber'"),
        ("own_policy_test:some_function", "unknown class in the module"),
        ("json:Nothing", "the module 'json' has no class 'Nothing', and no other policy"),
        ("own_policy_test:NoNeeds", "is not a policy: 'needs' must be a frozenset"),
        ("fractions:Fraction", "is not a policy: .*cycle"),
        ("own_policy_test:ByNumber(ofset=1)", "did you mean 'offset'"),
        ("own_policy_test:ByNumber(1)", "expected name=value"),
        ("own_policy_test:ByNumber(offset=)", "expected name=value"),
        ("own_policy_test:ByNumber(offset=1+print())", "invalid value of 'offset'"),
        ("own_policy_test:Angry", "cannot build the policy .*: alpha is below 1"),
        ("own_policy_test:", "expected module:Class"),
        ("own policy:X", "expected module:Class"),
    ],
)
def test_mistakes(folder: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        make_policy(text)


def test_an_object_without_a_text(folder: Path) -> None:
    class Local:
        name, source, needs = "local", "a test", frozenset[str]()

        def cycle(self, book: Any, budget: int, rng: Any) -> Any:
            yield from ()

    with pytest.raises(UsageError, match="define it at the top level of a module"):
        describe(Local())  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"set self\.alpha = alpha"):
        describe(own("Keeps", alpha=0.1))
    with pytest.raises(UsageError, match="cannot be written as text"):
        describe(own("Anything", thing=np.arange(2).tolist))
    with pytest.raises(UsageError, match="is not a policy"):
        describe(object())  # type: ignore[arg-type]


def test_text_from_the_network_imports_nothing(folder: Path) -> None:
    with pytest.raises(UsageError, match="imports a module"):
        make_policy("own_policy_test:ByNumber", imports=False)
    assert "own_policy_test" not in sys.modules


# -- in a repository -----------------------------------------------------------------------------------------


def test_on_the_command_line_in_settings_and_as_an_object(folder: Path, repo: Repo, web: Site) -> None:
    repo.crawl(web.url("/"))
    told = repo.cycle(2, "--policy", "own_policy_test:ByNumber(offset=1)")
    assert told["policy"] == "own_policy_test:ByNumber(offset=1)"
    assert told["visits"] == 2
    repo.run("config", "policy", "own_policy_test:ByNumber(order=down)")
    assert repo.cycle(2)["policy"] == "own_policy_test:ByNumber(order=down)"
    assert "is next by number" in str(repo.json("why", web.url("/d")))
    assert repo.json("cycle", "--dry-run", "--budget", 3)["budget"] == 3
    with recrawl.open(repo.folder) as api:
        report = api.cycle(budget=3, policy=own("ByNumber", offset=3))
        assert report.policy == "own_policy_test:ByNumber(offset=3)"
        assert report.visits == 3
    files = sorted(file.name for file in (repo.folder / "models").glob("*.npz"))
    assert len(files) == 3
    assert all(file.startswith("by-number-mine-1-") for file in files)
    assert "Traceback" not in repo.run("cycle", "--policy", "own_policy_test:Nothing", code=2).err


def test_an_interrupted_cycle_rebuilds_the_policy(folder: Path, repo: Repo, web: Site) -> None:
    repo.crawl(web.url("/"))
    seen: list[Any] = []
    with recrawl.open(repo.folder) as api:
        cut = api.cycle(budget=4, policy=own("ByNumber", offset=2), progress=seen.append, stop=lambda: bool(seen))
        assert not cut.finished
    code = "from recrawl.cli import main; main()"  # a process of its own, as after a crash
    command = [sys.executable, "-c", code, "-C", str(repo.folder), "cycle", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=True)
    assert '"resumed": true' in done.stdout
    with recrawl.open(repo.folder) as api:
        last = api.status().cycles[0]
        assert (last["policy"], last["visits"]) == ("own_policy_test:ByNumber(offset=2)", 4)


def test_an_interrupted_cycle_whose_policy_is_gone(folder: Path, repo: Repo, web: Site) -> None:
    repo.crawl(web.url("/"))
    seen: list[Any] = []
    with recrawl.open(repo.folder) as api:
        api.cycle(budget=4, policy=own("ByNumber"), progress=seen.append, stop=lambda: bool(seen))
        (folder / "own_policy_test.py").unlink()
        sys.modules.pop("own_policy_test")
        with pytest.raises(
            UsageError, match=r"cycle \d+ was interrupted .* no module 'own_policy_test'.*abandon_cycle"
        ):
            api.cycle(budget=2, policy="round-robin")
        number = api.abandon_cycle()
        assert number is not None
        report = api.cycle(budget=2, policy="round-robin")
        assert report.cycle == number + 1
        assert not report.resumed
        assert api.abandon_cycle() is None


# -- in the lab ----------------------------------------------------------------------------------------------


def test_in_the_lab(folder: Path, repo: Repo) -> None:
    write(SyntheticWorld(sites=1, pages=20, days=10, seed=3), folder / "web.parquet")
    policies = ("--policy", "own_policy_test:ByNumber(offset=1)", "--policy", "random")
    common = ("--budget", 5, "--cycle", "1d", "--workers", 1)
    rows = repo.json("lab", "run", folder / "web.parquet", *policies, *common)
    assert [row["policy"] for row in rows] == ["own_policy_test:ByNumber(offset=1)", "random"]
    assert rows[0]["visits"] > 0
    (folder / "own_policy_test.py").write_text(MODULE.replace("[:budget]", "[:1]"))
    sys.modules.pop("own_policy_test")
    changed = repo.json("lab", "run", folder / "web.parquet", *policies, *common)
    assert changed[0]["visits"] < rows[0]["visits"], "the cache knows that the module changed"
    with pytest.raises(UnknownName):
        make_policy("rndom")
