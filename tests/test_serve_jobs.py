"""Files and jobs: what the command line can do, clients can have done; and they reach no file that is not theirs."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from recrawl.cli import VERBS, inner_app
from recrawl.errors import NotKnown, UsageError
from recrawl.serve.api import NOT_OVER_HTTP, OPERATIONS
from recrawl.serve.context import ServiceLimits
from recrawl.serve.jobs.queue import Jobs, JobSpec, JobStep
from recrawl.serve.jobs.uploads import Uploads
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker, Got
from tests.world import Repo, Site, page

API = "/api/v1"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Repo, Service]]:
    """A repository with a little history, served; files have at most 20 kB."""
    repo = Repo.create(tmp_path_factory.mktemp("jobs") / "repo")
    with Site({"/": page("Start", "/a"), "/a": b"<title>One</title><p>apples"}) as site:
        repo.crawl(site.url())
        repo.later(days=1)
        site["/a"] = b"<title>One</title><p>oranges"
        repo.cycle()
        limits = ServiceLimits(per_minute=1e9, burst=1e9, body_bytes=5_000, upload_bytes=20_000, uploads_bytes=100_000)
        with Service(repo.folder, ServiceConfig(schedule=False, limits=limits)) as service:
            yield repo, service


@pytest.fixture
def ask(served: tuple[Repo, Service]) -> Asker:
    return Asker(served[1])


def job(ask: Asker, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Begin a job, and wait for its end."""
    started = ask.post(f"{API}/jobs/{path}", body)
    assert started.status == 202, started.text
    for thread in threading.enumerate():
        if thread.name == "job":
            thread.join(120)
    return dict(ask.get(f"{API}/jobs/{started.json['number']}").json)


def put(ask: Asker, name: str, body: bytes) -> Got:
    return ask.ask("PUT", f"{API}/files/{name}", body, headers={"Content-Type": "application/octet-stream"})


# -- the command line and the API ----------------------------------------------------------------------------


def test_every_command_is_in_the_api_or_said_not_to_be() -> None:
    group = inner_app("lab")
    lab = {f"lab {row.name}" for row in group.registered_commands}
    commands = {verb for verb in VERBS if verb != "lab"} | lab
    offered = {verb for operation in OPERATIONS for verb in operation.commands}
    assert offered & set(NOT_OVER_HTTP) == set()
    assert offered | set(NOT_OVER_HTTP) == commands


def test_the_guide_says_which_commands_are_not_there_and_why() -> None:
    guide = (Path(__file__).parent.parent / "docs/guides/service.md").read_text()
    assert [verb for verb in NOT_OVER_HTTP if f"| `{verb}` |" not in guide] == []


# -- files ---------------------------------------------------------------------------------------------------


def test_files_are_put_listed_fetched_and_removed(ask: Asker) -> None:
    assert put(ask, "list.txt", b"https://example.org/\n").status == 201
    assert "list.txt" in [row["name"] for row in ask.get(f"{API}/files").json["items"]]
    got = ask.get(f"{API}/files/list.txt")
    assert (got.status, got.body, got.headers["content-type"]) == (
        200,
        b"https://example.org/\n",
        "application/octet-stream",
    )
    assert "attachment" in got.headers["content-disposition"]
    assert "sandbox" in got.headers["content-security-policy"]
    assert ask.ask("DELETE", f"{API}/files/list.txt").status == 200
    assert ask.get(f"{API}/files/list.txt").status == 404


@pytest.mark.parametrize("name", ["..", "..%2Frecrawl.toml", "%2Fetc%2Fpasswd", ".hidden", "a%00b", "a%20b", "x" * 101])
def test_no_name_leads_out_of_the_uploads(ask: Asker, served: tuple[Repo, Service], name: str) -> None:
    before = (served[0].folder / "recrawl.toml").read_bytes()
    assert put(ask, name, b"x").status in (400, 404, 405)
    assert ask.get(f"{API}/files/{name}").status in (400, 404)
    assert ask.ask("DELETE", f"{API}/files/{name}").status in (400, 404, 405)
    assert (served[0].folder / "recrawl.toml").read_bytes() == before


def test_a_link_among_the_uploads_is_not_followed(served: tuple[Repo, Service], ask: Asker, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("not for you")
    uploads = served[0].folder / "files"
    uploads.mkdir(exist_ok=True)
    (uploads / "link.txt").symlink_to(secret)
    try:
        assert ask.get(f"{API}/files/link.txt").status == 404
        assert put(ask, "link.txt", b"overwritten").status == 400
        assert ask.post(f"{API}/jobs/import", {"files": ["link.txt"]}).status == 404
        assert secret.read_text() == "not for you"
    finally:
        (uploads / "link.txt").unlink()


def test_files_are_bounded_one_by_one_and_together(ask: Asker, served: tuple[Repo, Service]) -> None:
    uploads = Uploads(served[0].folder)
    assert put(ask, "large.bin", b"x" * 20_001).status == 413
    told = iter([b"x" * 15_000, b"x" * 15_000])  # sent in pieces, its length is not known before
    assert (
        ask.ask("PUT", f"{API}/files/large.bin", told, headers={"Content-Type": "application/octet-stream"}).status
        == 413
    )
    assert not [row for row in uploads.entries() if row["name"] == "large.bin"]
    refused = [put(ask, f"part{number}.bin", b"x" * 20_000).status for number in range(8)]
    for number in range(8):
        ask.ask("DELETE", f"{API}/files/part{number}.bin")
    assert set(refused) == {201, 413}
    assert not list((served[0].folder / "files").glob(".*"))


def test_other_requests_keep_their_own_bound(ask: Asker) -> None:
    assert ask.post(f"{API}/seeds", {"url": "https://example.org/" + "x" * 6000}).status == 413


def test_incomplete_uploads_are_deleted(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path)
    part = uploads.partial("a.txt")
    part.write_text("half")
    uploads.remove_partial()
    assert not part.exists()
    with pytest.raises(NotKnown):
        uploads.find("a.txt")


def test_folders_among_the_uploads_are_their_owners(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path)
    (tmp_path / "files" / "site").mkdir(parents=True)
    assert uploads.find("site").is_dir()
    for what in (uploads.path_for, uploads.remove):
        with pytest.raises(UsageError):
            what("site")


# -- jobs ----------------------------------------------------------------------------------------------------


def test_a_history_goes_out_and_comes_in(ask: Asker, served: tuple[Repo, Service]) -> None:
    done = job(ask, "export", {"file": "out.parquet"})
    assert (done["state"], done["file"]) == ("done", "out.parquet"), done
    body = ask.get(f"{API}/files/out.parquet").body
    table = pq.read_table(pa.BufferReader(body))
    assert table.num_rows == done["result"]["rows"] == 3
    urls = [
        "https://new.example/x" if url.endswith("/a") else "https://new.example/" for url in table["url"].to_pylist()
    ]
    changed = table.set_column(0, "url", pa.array(urls))
    sink = pa.BufferOutputStream()
    pq.write_table(changed, sink)
    assert put(ask, "in.parquet", sink.getvalue().to_pybytes()).status == 201
    taken = job(ask, "import", {"files": ["in.parquet"]})
    assert (taken["state"], taken["result"]["pages"], taken["result"]["versions"]) == ("done", 2, 3), taken
    assert ask.get(f"{API}/page?url=https://new.example/x").status == 200


def test_addresses_go_out_and_come_in(ask: Asker) -> None:
    assert job(ask, "export", {"file": "urls.txt"})["state"] == "done"
    assert b"/a\n" in ask.get(f"{API}/files/urls.txt").body
    put(ask, "more.txt", b"https://more.example/\nno address\n")
    told = job(ask, "import", {"files": ["more.txt"]})
    assert (told["result"]["pages"], told["result"]["refused"]) == (1, ["no address"])


def test_the_lab_runs_over_http(ask: Asker) -> None:
    made = job(ask, "lab-synth", {"file": "world.parquet", "sites": 1, "pages": 10, "days": 5, "set": ["births=0"]})
    assert made["state"] == "done", made
    replayed = job(ask, "lab-run", {"archives": ["world.parquet"], "policy": ["random"], "budget": 1})
    assert (replayed["state"], len(replayed["result"])) == ("done", 1), replayed
    compared = job(
        ask,
        "lab-compare",
        {"policy": ["random", "clairvoyant"], "budget": [1], "seeds": 1, "chart": "c.json"},
    )
    assert (compared["state"], len(compared["result"]), compared["file"]) == ("done", 2, "c.json"), compared
    listed = job(ask, "lab-reproduce", {"list": True})
    assert listed["state"] == "done"
    assert listed["result"], listed


def test_a_prediction_takes_lags_words_and_omega(ask: Asker) -> None:
    put(ask, "any.parquet", b"not read: the options are checked first")
    failed = job(ask, "lab-predict", {"archives": ["any.parquet"], "lags": "1-3", "words": 5, "omega": "odd"})
    assert "unknown word weight 'odd'" in failed["error"], failed


def test_the_next_plan_is_told(ask: Asker) -> None:
    plan = job(ask, "plan", {"budget": 1, "policy": "round-robin"})
    assert (plan["state"], len(plan["result"]["pages"])) == ("done", 1), plan


def test_a_job_that_fails_says_why(ask: Asker) -> None:
    put(ask, "bad.parquet", b"this is no Parquet")
    failed = job(ask, "import", {"files": ["bad.parquet"]})
    assert failed["state"] == "failed"
    assert "bad.parquet" in failed["error"]
    assert "{" not in failed["error"], "people read it"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("import", {"files": []}),
        ("import", {"files": ["/etc/passwd"]}),
        ("import", {"files": ["../recrawl.toml"]}),
        ("import", {"files": ["--out=x"]}),
        ("import", {"files": ["absent.txt"]}),
        ("export", {"file": "../x.parquet"}),
        ("export", {"file": "/tmp/x.parquet"}),
        ("lab-synth", {"file": "w.parquet", "sites": 10_000, "pages": 1_000_000}),
        ("lab-run", {"policy": ["nonsense"]}),
        ("lab-run", {"policy": ["random"], "importance": "file:/etc/passwd"}),
        ("lab-predict", {"label": "relevance:/etc/passwd"}),
        ("lab-predict", {"words": 0}),
        ("lab-reproduce", {"names": ["x"], "archives": ["/etc"]}),
    ],
)
def test_jobs_that_cannot_be_are_refused_at_once(ask: Asker, path: str, body: dict[str, Any]) -> None:
    refused = ask.post(f"{API}/jobs/{path}", body)
    assert refused.status in (400, 404), refused.text
    assert refused.headers["content-type"] == "application/problem+json"


def test_settings_name_no_file_outside_the_repository(ask: Asker) -> None:
    for path in ("file:/etc/passwd", "clicks:../../x"):
        assert ask.ask("PUT", f"{API}/settings/importance", {"value": path}).status == 400
    assert ask.ask("PUT", f"{API}/settings/importance", {"value": "file:files/weights.tsv"}).status == 200
    assert ask.ask("PUT", f"{API}/settings/importance", {"value": "even"}).status == 200


def endless(name: str = "x", output: str = "") -> JobSpec:
    """A job that serves an archive that is never asked for, so that only its end ends it."""

    def steps(scratch: Path) -> list[JobStep]:
        world = scratch / "world.parquet"
        synth = ("lab", "synth", "--sites=1", "--pages=10", "--days=2", "--json", "--", str(world))
        return [JobStep("making", synth), JobStep("serving", ("lab", "serve", "--port=0", "--", str(world)))]

    return JobSpec(name, {}, steps, output)


def test_a_job_is_cancelled_and_the_next_one_begins(tmp_path: Path) -> None:
    told: list[tuple[str, dict[str, Any]]] = []
    ended = threading.Event()

    def publish(kind: str, data: dict[str, Any]) -> None:
        told.append((kind, data))
        ended.set()

    jobs = Jobs(Uploads(tmp_path), publish, clock=lambda: 5.0)
    try:
        started = jobs.start(endless(output="made.txt"))
        assert started is not None
        assert jobs.start(endless()) is None  # one at a time
        assert jobs.cancel(started.number).state == "cancelled"
        assert ended.wait(60)
        assert told == [("job", {"name": "x", "number": 1, "state": "cancelled"})]
        assert Uploads(tmp_path).entries() == []
        ended.clear()
        again = jobs.start(JobSpec("export", {}, lambda _: [JobStep("", ("policies", "--json"))]))
        assert again is not None
        assert again.number == 2
        assert ended.wait(60)
        assert jobs.find(2).state == "done"
        assert [row["name"] for row in jobs.find(2).result]
    finally:
        jobs.close()


def test_what_a_command_tells_is_heard(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("RECRAWL_PROGRESS", "lines")
    with importlib.import_module("recrawl.cli.terminal.progress").progress() as bars:
        task = bars.add_task("reading", total=4, detail="")
        bars.update(task, completed=1, detail="1 of 4 versions")
    assert capsys.readouterr().err == "progress: reading 1 of 4 versions\n"


# -- anchors -------------------------------------------------------------------------------------------------


def test_an_anchor_is_named_and_found_again(ask: Asker, served: tuple[Repo, Service]) -> None:
    urls = [row["url"] for row in ask.get(f"{API}/pages").json["items"]]
    inner = next(url for url in urls if url.startswith("http://") and url.endswith("/a"))
    named = ask.ask("PUT", f"{API}/anchors", {"url": inner})
    assert named.status == 200, named.text
    site = named.json["site"]
    assert ask.get(f"{API}/anchors?site={site}").json["items"][0]["anchor"]["url"] == inner
    assert ask.ask("PUT", f"{API}/anchors", {"url": "https://nobody.example/"}).status == 404
    assert ask.ask("DELETE", f"{API}/anchors?site={site}").status == 200
    assert json.dumps(inner) not in (served[0].folder / "recrawl.toml").read_text()
