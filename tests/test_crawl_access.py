"""Getting in: headers, cookies, passwords, logins, proxies and certificates of a site, against real servers."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import trustme

from tests.world import Asked, Reply, Repo, Site, moved, page

PASSWORD = "pa55-Wort-9c1e"


@pytest.fixture
def secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SECRET", "TOKEN", "COOKIE"):
        monkeypatch.setenv(f"TEST_{name}", f"{name.lower()}-{PASSWORD}")


def access(repo: Repo, site: str, **entries: object) -> None:
    """Set the access rule of a site."""
    words = [
        f"{name}={value}" for name, some in entries.items() for value in (some if isinstance(some, list) else [some])
    ]
    repo.run("access", site, *words)


# -- headers, cookies, passwords ---------------------------------------------------------------------------


@pytest.mark.usefixtures("secrets")
def test_headers_basic_auth_and_user_agent_go_to_the_site(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": page("inside", "/a"), "/a": page("more")})
    access(
        repo,
        web.url(),
        headers=["X-Key: ${TEST_SECRET}", "Accept-Language: de"],
        user="reader",
        password="${TEST_SECRET}",
        user_agent="special/1.0",
        cookies="sid=${TEST_COOKIE}",
    )
    repo.crawl(web.url())
    basic = base64.b64encode(f"reader:secret-{PASSWORD}".encode()).decode()
    for path in ("/", "/a", "/robots.txt"):
        (asked,) = web.requests(path)
        assert asked.headers["authorization"] == f"Basic {basic}"
        assert asked.headers["x-key"] == f"secret-{PASSWORD}"
        assert (asked.headers["accept-language"], asked.headers["user-agent"]) == ("de", "special/1.0")
        assert asked.headers["cookie"] == f"sid=cookie-{PASSWORD}"
        assert asked.headers["accept"].startswith("text/html")


def test_robots_are_read_for_the_user_agent_of_the_site(repo: Repo, site: Callable[..., Site]) -> None:
    rules = b"User-agent: special\nDisallow: /a\n"
    web = site({"/robots.txt": Reply(rules, kind="text/plain"), "/": page("in", "/a"), "/a": page("more")})
    access(repo, web.url(), user_agent="special/1.0")
    repo.crawl(web.url())
    assert web.requests("/a") == []


@pytest.mark.usefixtures("secrets")
def test_no_credential_reaches_another_host(repo: Repo, site: Callable[..., Site]) -> None:
    """By links, redirects, stylesheets, robots.txt and a cookie whose server names a wider domain."""
    other = site({"/": page("other"), "/style.css": Reply(b"p{}", kind="text/css")})
    away, wide = other.url("/", "b.localhost"), "wide=1; Domain=localhost; Path=/"
    style = f'<link rel=stylesheet href="{other.url("/style.css", "b.localhost")}">'.encode()
    web = site(
        {
            "/": Reply(style + page("in", away, "/away"), headers={"Set-Cookie": wide}),
            "/away": moved(away, 302),
            "/robots.txt": moved(other.url("/robots.txt", "b.localhost")),
        }
    )
    start = web.url("/", "a.localhost")
    access(repo, start, token="${TEST_TOKEN}", cookies="sid=${TEST_COOKIE}", headers="X-Key: ${TEST_SECRET}")
    repo.add(away, start)
    repo.json("crawl", "--allow-private")
    assert web.requests("/")[0].headers["authorization"] == f"Bearer token-{PASSWORD}"
    paths = {asked.path for asked in other.log}
    assert {"/", "/style.css", "/robots.txt"} <= paths
    for asked in other.log:
        assert not {"authorization", "cookie", "x-key"} & set(asked.headers), asked


def test_cookies_outlive_the_run_in_a_private_file(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": Reply(page("in"), headers={"Set-Cookie": "seen=yes; Path=/; Max-Age=86400; HttpOnly"})})
    access(repo, web.url(), keep_cookies="true")
    repo.crawl(web.url())
    (jar,) = (repo.folder / "private").iterdir()
    assert jar.stat().st_mode & 0o777 == 0o600
    assert jar.parent.stat().st_mode & 0o777 == 0o700
    assert "cookie" not in web.requests("/")[0].headers
    repo.later(days=0.5)
    repo.cycle()
    assert web.requests("/")[1].headers["cookie"] == "seen=yes"


def test_without_a_rule_no_cookie_is_kept(repo: Repo, site: Callable[..., Site]) -> None:
    web = site({"/": Reply(page("in", "/a"), headers={"Set-Cookie": "seen=yes; Path=/"}), "/a": page("more")})
    repo.crawl(web.url())
    assert "cookie" not in web.requests("/a")[0].headers
    assert not (repo.folder / "private").exists()


# -- form logins ---------------------------------------------------------------------------------------------


FORM = (
    b"<form action=/enter method=post><input type=hidden name=csrf value=c-7><input name=user>"
    b"<input type=password name=pw><button name=go value=1>In</button></form>"
)


class Club:
    """Pages for members: a form with a token against forgery, and sessions that can be ended."""

    def __init__(self, web: Site) -> None:
        self.web, self.sessions, self.logins = web, set[str](), 0
        web.pages.update({"/": page("members only", "/a", "/b"), "/a": page("the minutes"), "/b": page("the votes")})
        web.every = self.answer
        self.status = 302
        """How a page answers without a session."""

    def answer(self, asked: Asked) -> Reply | None:
        path = asked.path.partition("?")[0]
        if path == "/login":
            return Reply(FORM, headers={"Set-Cookie": "pre=1; Path=/"})
        if path == "/enter":
            return self.enter(asked)
        if any(f"sid={session}" in asked.headers.get("cookie", "") for session in self.sessions):
            return None
        return moved("/login?next=" + path, 302) if self.status == 302 else Reply(page("no"), self.status)

    def enter(self, asked: Asked) -> Reply:
        sent = {name: values[0] for name, values in parse_qs(asked.body.decode()).items()}
        good = sent == {"csrf": "c-7", "user": "reader", "pw": f"secret-{PASSWORD}", "go": "1"}
        if not good or "pre=1" not in asked.headers.get("cookie", ""):
            return Reply(FORM)
        self.logins += 1
        self.sessions.add(f"session-{self.logins}-{PASSWORD}")
        return Reply(b"", 303, {"Location": "/", "Set-Cookie": f"sid=session-{self.logins}-{PASSWORD}; Path=/"})


def member(repo: Repo, web: Site, password: str = "${TEST_SECRET}", **more: object) -> None:
    access(repo, web.url(), login_url=web.url("/login"), login_fields=["user=reader", f"pw={password}"], **more)


@pytest.mark.usefixtures("secrets")
def test_form_login_and_a_session_that_outlives_the_run(repo: Repo, site: Callable[..., Site]) -> None:
    club = Club(site())
    member(repo, club.web)
    report = repo.crawl(club.web.url())
    assert (report["new"], club.logins) == (3, 1)
    assert repo.found("minutes") == {club.web.url("/a")}
    repo.later(days=1)
    repo.cycle()
    assert club.logins == 1


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("status", [302, 401, 403])
def test_an_expired_session_is_renewed_once_for_all_pages(repo: Repo, site: Callable[..., Site], status: int) -> None:
    club = Club(site())
    member(repo, club.web)
    repo.crawl(club.web.url())
    club.sessions.clear()
    club.status = status
    repo.later(days=1)
    report = repo.cycle()
    assert (report["unchanged"], club.logins) == (3, 2)


@pytest.mark.usefixtures("secrets")
def test_a_server_that_ends_every_session_gets_few_logins(repo: Repo, site: Callable[..., Site]) -> None:
    club = Club(site())
    member(repo, club.web)
    repo.crawl(club.web.url())
    repo.later(days=1)
    club.web.every = lambda asked: moved("/login", 302) if asked.path in ("/", "/a", "/b") else club.answer(asked)
    club.sessions.clear()
    repo.cycle()
    assert 1 < club.logins <= 4
    assert {repo.outcomes(club.web.url(path))[-1] for path in ("/", "/a", "/b")} == {"login"}
    assert repo.found("minutes") == {club.web.url("/a")}
    assert repo.states()[club.web.url("/a")] == "live"


@pytest.mark.usefixtures("secrets")
def test_a_page_that_is_forbidden_to_members_is_an_ordinary_failure(repo: Repo, site: Callable[..., Site]) -> None:
    club = Club(site())
    club.web["/b"] = Reply(page("board members only"), 403)
    member(repo, club.web)
    repo.crawl(club.web.url())
    assert repo.outcomes(club.web.url("/b")) == ["http-4xx"]
    assert repo.outcomes(club.web.url("/a")) == ["new"]
    assert club.logins == 2


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize(
    ("fields", "cause"),
    [
        (["user=reader", "pw=${TEST_TOKEN}"], "shows its login form again"),
        (["name=reader", "pw=${TEST_SECRET}"], "has no field 'name'; its fields: csrf, user, pw, go"),
    ],
)
def test_a_failed_login_requests_no_page_and_says_why(
    repo: Repo, site: Callable[..., Site], fields: list[str], cause: str
) -> None:
    club = Club(site())
    access(repo, club.web.url(), login_url=club.web.url("/login"), login_fields=fields)
    report = repo.crawl(club.web.url())
    assert repo.outcomes(club.web.url()) == ["login"]
    assert club.web.requests("/") == []
    (warning,) = report["warnings"]
    assert cause in warning
    assert PASSWORD not in warning
    assert cause in repo.run("why", club.web.url()).out
    tried = repo.run("access", club.web.url(), "--try", code=1)
    assert cause in tried.out


@pytest.mark.usefixtures("secrets")
def test_try_reports_what_a_page_answers(repo: Repo, site: Callable[..., Site]) -> None:
    club = Club(site())
    repo.add(club.web.url())
    member(repo, club.web)
    found = json.loads(repo.run("access", club.web.url("/a"), "--try", "--json").out)
    assert (found["status"], found["failure"]) == (200, "")


SCRIPTED = b"""<div id=app></div><script>
document.cookie = 'js=1; path=/';
app.innerHTML = '<form><input name=user><input type=password name=pw><button>In</button></form>';
document.querySelector('form').onsubmit = async (event) => {
  event.preventDefault();
  const body = new URLSearchParams(new FormData(event.target));
  const done = await fetch('/enter', {method: 'POST', body, headers: {'X-Requested-With': 'script'}});
  if (done.ok) location.href = '/home';
};
</script>"""


@pytest.mark.slow
@pytest.mark.usefixtures("secrets")
def test_a_login_that_needs_a_script_is_made_by_a_browser(repo: Repo, site: Callable[..., Site]) -> None:
    club = Club(web := site())

    def answer(asked: Asked) -> Reply | None:
        if asked.path == "/login":
            return Reply(SCRIPTED)
        if asked.path == "/enter":
            sent = parse_qs(asked.body.decode())
            right = sent == {"user": ["reader"], "pw": [f"secret-{PASSWORD}"]} and "js=1" in asked.headers["cookie"]
            club.sessions.add("by-script")
            return Reply(b"{}", 200 if right else 400, {"Set-Cookie": "sid=by-script; Path=/; HttpOnly"})
        return club.answer(asked)

    web.every = answer
    web["/home"] = page("home of members")
    member(repo, web, login_browser="true")
    report = repo.crawl(web.url())
    assert report["new"] == 3, (report, web.asked())
    assert "sid=by-script" in web.requests("/a")[0].headers["cookie"]


# -- ways ----------------------------------------------------------------------------------------------------


@pytest.fixture
def proxy() -> Iterator[int]:
    """A proxy for HTTP and SOCKS 5 on loopback, with a password; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    listen = f"http+socks5://127.0.0.1:{port}#carrier:secret-{PASSWORD}"
    command = [sys.executable, "-W", "ignore", "-m", "pproxy", "-l", listen, "-v"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        while "Serving on" not in (line := process.stdout.readline()):
            assert line, "the proxy did not start"
        yield port
        process.kill()


@pytest.mark.usefixtures("secrets")
@pytest.mark.parametrize("scheme", ["http", "socks5", "socks5h"])
def test_requests_take_the_proxy(repo: Repo, site: Callable[..., Site], proxy: int, scheme: str) -> None:
    web = site({"/": page("behind the proxy")})
    url = web.url()
    access(repo, url, proxy=f"{scheme}://127.0.0.1:{proxy}", proxy_user="carrier", proxy_password="${TEST_TOKEN}")
    repo.crawl(url)
    assert web.log == []
    access(repo, url, proxy_password="${TEST_SECRET}")
    repo.later(days=1)
    repo.crawl(url)
    assert repo.found("behind") == {url}


def test_a_proxy_on_loopback_is_allowed_and_private_targets_are_not(repo: Repo, site: Callable[..., Site]) -> None:
    """The user names the proxy; what pages link to must not reach the network behind it."""
    web = site({"/": page("private")})
    access(repo, "all", proxy=f"http://127.0.0.1:{web.port}")
    repo.run("add", "http://10.1.2.3/", "http://intranet.local/", "http://localhost/", "http://[::1]/")
    repo.run("crawl", code=None)
    assert web.log == []
    for url in ("http://10.1.2.3/", "http://intranet.local/", "http://localhost/", "http://[::1]/"):
        assert repo.outcomes(url) == ["address-refused"]
    repo.run("add", "http://public.example/")
    repo.run("crawl", code=None)
    assert {asked.headers["host"] for asked in web.log} == {"public.example"}


def test_a_site_with_an_authority_of_its_own(repo: Repo, tmp_path: Path) -> None:
    authority = trustme.CA()
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(tls)
    bundle = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(bundle)
    with Site({"/": page("certified")}, tls) as web:
        repo.add(web.url())
        assert repo.run("access", web.url(), "--try", code=1).out.count("unknown authority") == 1
        access(repo, web.url(), ca_file=bundle, http2="true")
        repo.crawl(web.url())
    assert repo.found("certified") == {web.url()}


# -- settings ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entries", "cause"),
    [
        (["password=plain-text-here", "user=x"], "the password in"),
        (["token=plain-text-here"], "the token in"),
        (["headers=Authorization: plain-text-here"], "the header 'Authorization'"),
        (["headers=X-Api-Key: plain-text-here"], "the header 'X-Api-Key'"),
        (["cookies=sid=plain-text-here"], "the cookie 'sid'"),
        (["login_url=https://a.example/", "login_fields=password=plain-text-here"], "the login field 'password'"),
        (["proxy=http://u:plain-text-here@h:1"], "use proxy_user and proxy_password"),
        (["headers=Host: b"], "cannot be set"),
        (["headers=plain-text-here"], "write it as 'Name: value'"),
        (["proxy=ftp://h"], "use http://host:port"),
        (["user=x"], "needs both 'user' and 'password'"),
        (["pasword=${X}"], "password"),
        (["http2=plain-text-here"], "use true or false"),
    ],
)
def test_rules_hold_references_and_no_secrets(repo: Repo, entries: list[str], cause: str) -> None:
    found = repo.run("access", "https://a.example", *entries, code=2)
    assert cause in found.err
    assert "plain-text-here" not in found.err
    assert "plain-text-here" not in (repo.folder / "recrawl.toml").read_text()


def test_credentials_need_a_site(repo: Repo) -> None:
    assert "name the site" in repo.run("access", "all", "token=${T}", code=2).err


def test_a_missing_variable_and_an_open_file_stop_the_run(
    repo: Repo, site: Callable[..., Site], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = site({"/": page("in")})
    repo.add(web.url())
    monkeypatch.delenv("NOT_SET_HERE", raising=False)
    access(repo, web.url(), token="${NOT_SET_HERE}")
    assert "environment variable NOT_SET_HERE is not set" in repo.run("crawl", code=2).err
    secret = tmp_path / "token"
    secret.write_text(f"{PASSWORD}\n")
    secret.chmod(0o644)
    access(repo, web.url(), token=f"${{file:{secret}}}")
    assert f"chmod 600 {secret}" in repo.run("crawl", code=2).err
    assert web.log == []
    secret.chmod(0o600)
    repo.crawl()
    assert web.requests("/")[0].headers["authorization"] == f"Bearer {PASSWORD}"


def test_rules_are_listed_changed_and_removed(repo: Repo) -> None:
    access(repo, "a.example", user="u", password="${P}", headers=["A: b", "C: d"])
    access(repo, "all", proxy="socks5://127.0.0.1:1080")
    assert repo.json("access") == [
        {"site": "https://a.example", "headers": ["A: b", "C: d"], "user": "u", "password": "${P}"},
        {"proxy": "socks5://127.0.0.1:1080"},
    ]
    repo.run("access", "a.example", "--clear", "headers")
    assert "A: b" not in repo.run("access").out
    repo.run("access", "all", "--remove")
    assert [rule["site"] for rule in repo.json("access")] == ["https://a.example"]
    assert "has no access rule" in repo.run("access", "b.example", "--remove", code=None).err
