"""The documentation is held against the program: complete, up to date, its links whole, its examples run.

Fenced blocks marked `sh test` are shell commands that must succeed. Those of one page run in order, as one script, in
a folder of their own. Where they speak of https://example.org they get a site of a time-lapse web instead, on this
machine, with a clock that runs; port 8080 is replaced by a free one. All `python` blocks run too, page by page.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from recrawl.choose import POLICIES
from recrawl.cli import VERBS, reference
from recrawl.lab.formats.archive import Archive
from recrawl.lab.synth import PARAMETERS, SyntheticWorld, write
from recrawl.lab.timelapse import Clock, TimeLapseServer, app
from recrawl.model import Failure, Outcome, State
from recrawl.record.schema.migrations import migrate
from recrawl.repository.results.failures import FAILURES
from recrawl.settings import SETTINGS, load
from tests.base_install import base_environment
from tests.small_shop import SmallShop
from tests.test_alerts_for_people import Mailbox
from tests.warm_commands import WarmCommands

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
BY_HAND = [page for page in PAGES if page.name not in reference.PAGES or page.parent.name != "reference"]
FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DAY = 86400.0
TELL_FAILED = """trap 'echo "[failed] $BASH_COMMAND"' ERR"""
"""What tells, after the output of a command of a script, that it failed."""
MISSING = re.compile(r"recrawl: this needs the package \S+, which is not installed: \S+ -m pip install '.*\[(\w+)\]'$")


def blocks(page: Path, kind: str) -> list[str]:
    """The fenced blocks of a page with this info string."""
    return [body for info, body in FENCE.findall(page.read_text()) if info.strip() == kind]


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def those_with(kind: str) -> list[Path]:
    return [page for page in PAGES if blocks(page, kind)]


def everything(pages: list[Path]) -> str:
    return "\n".join(page.read_text() for page in pages)


# -- complete and up to date ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", reference.PAGES)
def test_generated_pages_are_up_to_date(name: str) -> None:
    written = (DOCS / "reference" / name).read_text()
    assert written == reference.page(name, written), "run 'make docs'"


def test_the_picture_of_the_demo_shows_a_whole_one_and_fetches_nothing() -> None:
    drawn = (DOCS / "images" / "demo.svg").read_text().replace("&#160;", " ")
    assert "diff of the first" in drawn
    assert "@font-face" not in drawn


def test_every_verb_is_in_the_reference_and_used_by_hand() -> None:
    told, used = (DOCS / "reference" / "commands.md").read_text(), everything(BY_HAND)
    assert [verb for verb in VERBS if f"## recrawl {verb}\n" not in told] == []
    assert [verb for verb in VERBS if not re.search(rf"recrawl (-C \S+ )?{verb}\b", used)] == []
    for verb in ("lab synth", "lab serve", "lab run", "lab compare", "lab reproduce"):
        assert f"### recrawl {verb}\n" in told
        assert f"recrawl {verb} " in used


def test_every_setting_policy_parameter_and_failure_word_is_in_the_reference() -> None:
    rows = {name: (DOCS / "reference" / name).read_text() for name in reference.PAGES}
    assert [row.name for row in SETTINGS if f"| `{row.name}` | `" not in rows["settings.md"]] == []
    assert [name for name in POLICIES if f"## {name}\n" not in rows["policies.md"]] == []
    assert [row.name for row in PARAMETERS if f"| `{row.name}` |" not in rows["synth.md"]] == []
    assert [word for word in Failure if f"| `{word.value}` | " not in rows["failures.md"]] == []
    assert [word for word in Failure if len(FAILURES[word].split()) < 4] == []


def test_settings_named_by_hand_exist() -> None:
    """`recrawl config NAME` in an example names a setting."""
    named = set(re.findall(r"recrawl config ([a-z_]+)", everything(PAGES)))
    assert named - {row.name for row in SETTINGS} == set()


def test_every_dependency_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["project"]["dependencies"], *project["build-system"]["requires"]]
    wanted += [item for extra in extras.values() for item in extra]
    names = {re.split(r"[<>=\[ ;]", item, maxsplit=1)[0] for item in wanted} - {project["project"]["name"]}
    rows = first_cells((DOCS / "reference" / "dependencies.md").read_text())
    assert rows.pop("install") == ["base", *extras], "the table of sizes"
    assert set(rows["package"]) == names, "explained and dependencies"
    assert rows.keys() == {"package", "compared library"}


def first_cells(text: str) -> dict[str, list[str]]:
    """The first cells of the rows of all tables, by the first cell of the table's heading."""
    found: dict[str, list[str]] = {}
    for heading, rows in re.findall(r"^\| ([^|]+) \|.*\n\|-.*\n((?:\|.*(?:\n|$))+)", text, re.MULTILINE):
        found.setdefault(heading, []).extend(re.findall(r"^\| ([^|]+) \|", rows, re.MULTILINE))
    return found


def test_a_row_named_like_an_extra_is_not_a_dependency() -> None:
    table = "| install | MB |\n|---|---|\n| lab | 417 |\n\n| package | does |\n|---|---|\n| lxml | XML |\n| lab | x |\n"
    assert first_cells(table) == {"install": ["lab"], "package": ["lxml", "lab"]}


def test_every_rule_that_the_code_cites_is_told() -> None:
    source = everything(sorted((ROOT / "src").rglob("*.py")))
    cited = {rule for some in re.findall(r"spec ([A-Z]\d+(?:, [A-Z]\d+)*)", source) for rule in some.split(", ")}
    told = (DOCS / "concepts" / "rules.md").read_text()
    assert cited
    assert [rule for rule in sorted(cited) if f"| {rule} | " not in told] == []


def test_every_table_and_column_is_told() -> None:
    told = (DOCS / "reference" / "file-formats.md").read_text()
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        migrate(db)
        tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in tables:
            line = next((line for line in told.splitlines() if line.startswith(f"| `{table}` | ")), "")
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")]
            assert [column for column in columns if f"`{column}`" not in line] == [], table
    for kind in (Outcome, State):
        assert ", ".join(f"{item.value} {item.name.lower()}" for item in kind) in " ".join(told.split())


def test_the_settings_file_of_the_reference_is_right(tmp_path: Path) -> None:
    file = tmp_path / "recrawl.toml"
    file.write_text(blocks(DOCS / "reference" / "file-formats.md", "toml")[0])
    settings = load(file)
    assert settings.seeds
    assert settings.filters


# -- links -------------------------------------------------------------------------------------------------


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = FENCE.sub("", page.read_text())
    heads = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", page.read_text())):
        if link.startswith(("https://", "http://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert target.is_relative_to(ROOT)
        assert not anchor or anchor in anchors(target), f"{link}: no such heading"


def test_every_page_is_in_the_list() -> None:
    listed = set(re.findall(r"\]\(([^)#\s]+)\)", (DOCS / "README.md").read_text()))
    assert {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"README.md"} == listed


def test_every_example_file_is_mentioned() -> None:
    assert [file.name for file in (ROOT / "examples").glob("*.py") if file.name not in everything(PAGES)] == []


# -- examples ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def living(tmp_path_factory: pytest.TempPathFactory) -> Archive:
    """A small site, on whose front page something happens every day."""
    file = tmp_path_factory.mktemp("web") / "world.parquet"
    write(
        SyntheticWorld(sites=1, kinds="news", pages=20, days=90, births=0.05, removals=0.02, noise=0.3, rhythm=0.0),
        file,
    )
    return Archive.open([file])


@pytest.fixture
def example_org(living: Archive) -> Iterator[str]:
    """Where that site is served; two days pass in a second, for three quarters of a minute."""
    with TimeLapseServer(app(living, Clock(living.start + DAY, 2 * DAY, time.monotonic))) as server:
        yield server.url_of("https://news1.example/").rstrip("/")


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmCommands]:
    with WarmCommands(tmp_path_factory.mktemp("warm")) as warm:
        yield warm


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmCommands]:
    """Commands of a base install: without the packages of the extras."""
    folder = tmp_path_factory.mktemp("base")
    with WarmCommands(folder, base_environment(folder)) as warm:
        yield warm


@pytest.fixture
def tools(tmp_path: Path, warm: WarmCommands) -> Path:
    """A folder of commands of an installation with all extras."""
    return tools_of(warm, tmp_path / "bin")


@pytest.fixture
def base_tools(tmp_path: Path, base: WarmCommands) -> Path:
    """The same of a base install."""
    return tools_of(base, tmp_path / "base")


def tools_of(warm: WarmCommands, folder: Path) -> Path:
    """Two commands: recrawl, which lets itself be pointed at this machine, and a wait for a server."""
    folder.mkdir()
    real = f'"{warm.client}" "$@"'
    (folder / "recrawl").write_text(
        "#!/bin/sh\n"
        f'case "$*" in "add "*--delay*) exec {real} --allow-private ;;'
        f' "add "*) exec {real} --allow-private --delay 0 ;; esac\n'
        f"exec {real}\n"
    )
    (folder / "wait-for").write_text(
        f"#!{sys.executable}\nimport socket, sys, time\n"
        "while socket.socket().connect_ex(('127.0.0.1', int(sys.argv[1]))):\n    time.sleep(0.05)\n"
    )
    for tool in folder.iterdir():
        tool.chmod(0o755)
    return folder


def run(command: list[str], folder: Path, tools: Path) -> tuple[int, str]:
    """Exit code and output of a command; whatever it has left running is ended."""
    path = os.pathsep.join((str(tools), str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    with (folder / "output.txt").open("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={
                **os.environ,
                "PATH": path,
                "NO_COLOR": "1",
                "OPENBLAS_NUM_THREADS": "1",
                "RECRAWL_CACHE": str(folder / "cache"),
            },
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=300)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        return code, output.read()


def made(folder: Path) -> Path:
    """A new folder."""
    folder.mkdir()
    return folder


def script_of(page: Path, site: str) -> str:
    """The page's commands, for this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    script = "\n".join(blocks(page, "sh test")).replace("https://example.org", site)
    script = re.sub(r"^(recrawl lab serve .*&)$", rf"\1\nwait-for {port}", script, flags=re.MULTILINE)
    return script.replace("8080", str(port))


@pytest.mark.parametrize("page", [page for page in those_with("sh test") if page.parent != ROOT], ids=name_of)
def test_shell_examples_run(page: Path, tmp_path: Path, tools: Path, base_tools: Path, example_org: str) -> None:
    """In a base install. A command that needs an extra names it there, and so does the page; it runs with all."""
    output = run(
        ["bash", "-c", f"{TELL_FAILED}\n{script_of(page, example_org)}"], made(tmp_path / "in_base"), base_tools
    )[1]
    failed = re.findall(r"^(.*)\n\[failed\] (.*)$", output, re.MULTILINE)
    if not failed:
        return
    assert MISSING.search(failed[0][0]), output[-3000:]
    for said, command in failed:
        missing = MISSING.search(said)
        assert missing or "there is no " in said or "does not exist" in said, (command, said)
        assert not missing or f"[{missing[1]}]" in page.read_text(), f"{command}: the page does not say what it needs"
    code, output = run(["bash", "-ex", "-c", script_of(page, example_org)], made(tmp_path / "here"), tools)
    assert code == 0, output[-3000:]


def test_the_read_me_does_what_it_says(tmp_path: Path, base_tools: Path, example_org: str) -> None:
    """Its commands end with a copy that has versions, changes and a difference to show."""
    script = script_of(ROOT / "README.md", example_org)
    code, output = run(["sh", "-e", "-c", script + "\nrecrawl status\nrecrawl changes | wc -l"], tmp_path, base_tools)
    assert code == 0, output[-3000:]
    assert re.search(r"crawl 0: \d+ visits in .*: \d+ new", output)
    assert re.search(r"cycle 1: \d+ visits in .* changed", output)
    assert re.search(r"^@@ -\d+ \+\d+ @@$", output, re.MULTILINE), "the front page changes every day"
    assert int(output.split()[-1]) > 20


SHOWN = re.compile(r"^```(sh tutorial|text)\n(.*?)^```", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d+")
INIT = re.compile(r"^(recrawl init \w+ && cd \w+)$", re.MULTILINE)


def in_general(line: str) -> str:
    """A line of output without what differs from run to run: numbers, and how far columns are apart."""
    return " ".join(NUMBER.sub("#", line).split())


@pytest.mark.parametrize("page", those_with("sh tutorial"), ids=name_of)
def test_tutorials_do_whole_jobs(page: Path, tmp_path: Path, base_tools: Path) -> None:
    """In a base install, on a shop that changes and fails while it is watched; the output is as the page shows it."""
    shown = SHOWN.findall(page.read_text())
    with SmallShop() as shop, Mailbox() as mailbox:
        script = f"{TELL_FAILED}\n"
        for number, (kind, text) in enumerate(shown):
            script += f"echo '<{number}>'\n{text}" if kind != "text" else ""
        script = INIT.sub(rf"\1\nrecrawl config private_targets {mailbox.target}", script)
        script = script.replace("https://example.org", shop.url).replace("smtp://mail.example.org", mailbox.target)
        output = run(["bash", "-c", script], made(tmp_path / "here"), base_tools)[1]
    output = output.replace(shop.url, "https://example.org")
    assert "[failed]" not in output, output[-3000:]
    parts = dict(re.findall(r"^<(\d+)>\n(.*?)(?=^<\d+>|\Z)", output, re.MULTILINE | re.DOTALL))
    for number, (kind, text) in enumerate(shown):
        if kind == "text":
            said = parts[str(number - 1)]
            lines = iter([in_general(line) for line in said.splitlines()])
            for wanted in map(in_general, text.splitlines()):
                assert any(line.startswith(wanted) for line in lines), f"{wanted!r} is not in:\n{said}"
    if "smtp:" in page.read_text():
        subjects = [mail["Subject"] for mail in mailbox.mails]
        assert len(subjects) == 2, "the test message, and the price"
        assert f"**{subjects[1]}**" in page.read_text()


@pytest.mark.parametrize("page", those_with("python"), ids=name_of)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    code = compile("\n".join(blocks(page, "python")), name_of(page), "exec")
    exec(code, {"__name__": "__docs__"})


@pytest.mark.parametrize("file", sorted((ROOT / "examples").glob("*.py")), ids=name_of)
def test_example_files_run(file: Path, tmp_path: Path, tools: Path, example_org: str) -> None:
    repository = tmp_path / "copy"
    arguments = {"changes_feed.py": [str(repository)], "download_cost.py": ["100"]}.get(file.name, [])
    if str(repository) in arguments:
        script = f"recrawl init copy && cd copy && recrawl add {example_org} && recrawl crawl"
        code, output = run(["sh", "-ec", script], tmp_path, tools)
        assert code == 0, output
    command = [sys.executable, str(file), *arguments]
    if file.name == "scrapy_titles.py":  # Scrapy leaves names below .localhost to the system's resolver
        start = re.sub(r"//[^:]+", "//127.0.0.1", example_org)
        command = [sys.executable, "-m", "scrapy", "runspider", str(file), "-a", f"start={start}/"]
    code, output = run(command, tmp_path, tools)
    assert code == 0, output
    if file.name == "changes_feed.py":
        assert "<entry>" not in run([sys.executable, str(file), *arguments], tmp_path, tools)[1], "nothing since"
    words = {"changes_feed.py": "<entry>", "download_cost.py": " ms of CPU time", "scrapy_titles.py": "'recrawl/new': "}
    assert words.get(file.name, "found") in output


def test_nothing_in_the_docs_is_of_one_machine() -> None:
    for page in [*PAGES, *(DOCS / "images").glob("*.svg"), *(ROOT / "examples").glob("*.py")]:
        assert not re.search(r"/(work|home|root|tmp)/", page.read_text()), page
