"""No secret leaves the requests: every file of a repository and every output is searched for secrets of all kinds."""

from __future__ import annotations

import base64
import gzip
import itertools
import json
import logging
import traceback
import zipfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, quote

import pyarrow.parquet as pq
import pytest

from recrawl.crawl.login.messages import LoginResult, LoginTask
from recrawl.fetch.access import Accesses, AccessRule
from recrawl.fetch.fetcher import FetchLimits
from recrawl.serve.context import ServiceLimits
from recrawl.serve.dashboard import _VIEWS
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.test_serve_api import API, Idle
from tests.world import Asked, Reply, Repo, Site, page

WORDS = {name: f"{name}-Zq7/x+9" for name in ("header", "cookie", "basic", "form", "proxy", "agent", "file", "session")}
PAIR = base64.b64encode(f"reader:{WORDS['basic']}".encode()).decode()
COMMANDS = (
    *("status", "sites", "pages", "changes", "config", "access", "rates", "check", "chunks", "tag", "noise"),
    *("log URL", "log URL --visits", "show URL", "why URL", "predict URL", "search inside", "export -"),
)


def forms(secret: str) -> set[bytes]:
    """How a secret may look in an output."""
    plain = secret.encode()
    return {plain, base64.b64encode(plain).rstrip(b"="), quote(secret, safe="").encode(), json.dumps(secret).encode()}


SECRETS = set(itertools.chain.from_iterable(map(forms, [*WORDS.values(), PAIR])))


def found_in(data: bytes) -> list[bytes]:
    return [secret for secret in SECRETS if secret in data]


def door(asked: Asked) -> Reply | None:
    """A site behind every kind of door at once."""
    if asked.path == "/login":
        return (
            Reply(b"<form method=post><input name=user><input type=password name=pw></form>")
            if (asked.method == "GET")
            else entered(asked)
        )
    headers = asked.headers
    keys = (headers.get("authorization") == f"Basic {PAIR}", headers.get("x-key") == WORDS["header"])
    cookies = (f"sid={WORDS['session']}" in headers.get("cookie", ""), f"c={WORDS['cookie']}" in headers["cookie"])
    return None if all((*keys, *cookies)) else Reply(page("closed"), 403)


def entered(asked: Asked) -> Reply:
    assert parse_qs(asked.body.decode()) == {"user": ["reader"], "pw": [WORDS["form"]]}
    return Reply(page("welcome"), headers={"Set-Cookie": f"sid={WORDS['session']}; Path=/"})


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Repo, str]]:
    """A repository that was crawled with every kind of secret, and the URL of a page."""
    folder = tmp_path_factory.mktemp("secrets")
    repo = Repo.create(folder / "repo")
    token = folder / "token"
    token.write_text(WORDS["file"])
    token.chmod(0o600)
    with pytest.MonkeyPatch.context() as patch, Site({"/": page("inside", "/a"), "/a": page("inside too")}) as web:
        for name, value in WORDS.items():
            patch.setenv(f"S_{name.upper()}", value)
        web.every = door
        url = web.url()
        with Site() as carrier:
            carrier.every = lambda asked: Reply(page("carried"))
            way = (f"proxy=http://127.0.0.1:{carrier.port}", "proxy_user=u", "proxy_password=${S_PROXY}")
            repo.run("access", "http://far.example", *way, f"token=${{file:{token}}}", "headers=X-Agent: ${S_AGENT}")
            fields = ("login_fields=user=reader", "login_fields=pw=${S_FORM}", f"login_url={web.url('/login')}")
            keys = ("user=reader", "password=${S_BASIC}", "headers=X-Key: ${S_HEADER}", "cookies=c=${S_COOKIE}")
            repo.run("access", url, *fields, *keys)
            repo.run("add", "http://far.example/")
            repo.crawl(url)
            repo.later(days=1)
            web["/a"] = page("inside, and changed a lot since then")
            repo.cycle()
            seen = list(carrier.log)
        assert repo.outcomes(web.url("/a")) == ["new", "changed"]
        assert {asked.headers["authorization"] for asked in seen} == {f"Bearer {WORDS['file']}"}
        assert {asked.headers["x-agent"] for asked in seen} == {WORDS["agent"]}
        assert all(asked.headers["proxy-authorization"] for asked in seen)
        yield repo, web.url("/a")


def test_no_file_of_the_repository_holds_a_secret(crawled: tuple[Repo, str]) -> None:
    repo, _ = crawled
    files = [path for path in repo.folder.rglob("*") if path.is_file()]
    assert any(path.name.endswith(".warc.gz") for path in files)
    leaks = {}
    for path in files:
        data = path.read_bytes()
        unpacked = gzip.decompress(data) if path.name.endswith(".gz") else data
        leaks[path.relative_to(repo.folder)] = found_in(unpacked)
    jar = next(path for path in leaks if path.parts[0] == "private")
    assert leaks.pop(jar) == [WORDS["session"].encode()], "the session's cookie, in a file of its own"
    assert {path: leak for path, leak in leaks.items() if leak} == {}


def test_the_archive_names_the_headers_without_their_values(crawled: tuple[Repo, str]) -> None:
    repo, _ = crawled
    texts = b"".join(gzip.decompress(path.read_bytes()) for path in repo.folder.rglob("*.warc.gz"))
    for line in (b"Authorization: redacted", b"X-Key: redacted", b"X-Agent: redacted", b"Cookie: redacted"):
        assert line in texts


def test_no_command_prints_a_secret(crawled: tuple[Repo, str]) -> None:
    repo, url = crawled
    for command in COMMANDS:
        for json_too in ((), ("--json",)):
            result = repo.run(*command.replace("URL", url).split(), *json_too, code=None)
            assert found_in(f"{result.out}{result.err}".encode()) == [], command


@pytest.mark.parametrize("name", ["a.parquet", "a.wacz", "a.warc.gz", "a.cdxj", "a.txt"])
def test_no_export_holds_a_secret(crawled: tuple[Repo, str], tmp_path: Path, name: str) -> None:
    crawled[0].run("export", tmp_path / name)
    data = (tmp_path / name).read_bytes()
    if name.endswith(".parquet"):
        data = repr(pq.read_table(tmp_path / name).to_pylist()).encode()
    elif name.endswith(".wacz"):
        with zipfile.ZipFile(tmp_path / name) as parts:
            blobs = {part: parts.read(part) for part in parts.namelist()}
        data = b"".join(gzip.decompress(blob) if part.endswith(".gz") else blob for part, blob in blobs.items())
    elif name.endswith(".gz"):
        data = gzip.decompress(data)
    assert data
    assert found_in(data) == []


def test_neither_api_nor_dashboard_nor_logs_show_a_secret(
    crawled: tuple[Repo, str], caplog: pytest.LogCaptureFixture
) -> None:
    repo, url = crawled
    lines: list[str] = []
    limits = ServiceLimits(per_minute=1e9, burst=1e9, streams=2)
    config = ServiceConfig(schedule=False, runner=Idle(), limits=limits, log=lines.append)
    with caplog.at_level(logging.DEBUG), Service(repo.folder, config) as service:
        ask = Asker(service)
        paths = [path for path, item in ask.get(f"{API}/openapi.json").json["paths"].items() if "get" in item]
        paths += [path.replace(":id", "") for path, _ in _VIEWS]
        answered = 0
        for path in paths:
            if path.endswith("/events"):
                continue  # never ends
            filled = path
            for name in ("id", "page", "site", "visit", "version", "number", "job"):
                filled = filled.replace(f"{{{name}}}", "1")
            filled = filled.replace("{topic}", "politeness")
            replies = [ask.get(filled + query) for query in ("", f"?url={quote(url)}", "?q=inside")]
            answered += any(got.status == 200 for got in replies)
            assert [leak for got in replies for leak in found_in(got.body + repr(got.headers).encode())] == [], path
        assert answered > len(paths) / 2
    assert found_in("\n".join([*lines, caplog.text]).encode()) == []


def test_a_crash_trace_with_all_variables_shows_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """What holds secrets prints without them."""
    monkeypatch.setenv("S", WORDS["form"])
    rule = AccessRule("https://a.example", token="${S}", cookies=("a=${S}",), login_url="https://a.example/in")
    accesses = Accesses([rule])
    profile = accesses.of("https://a.example/x")
    assert profile is not None
    assert profile.headers == (f"Authorization: Bearer {WORDS['form']}",)
    task = LoginTask(profile, "agent", FetchLimits(), private=False)
    result = LoginResult(cookies=[f"a\t{WORDS['form']}"])
    shown = "".join(traceback.format_exception(ValueError(f"{task} {result} {accesses} {profile.jar}")))
    assert WORDS["form"] not in shown
    assert "Profile('https://a.example')" in shown
