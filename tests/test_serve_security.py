"""Who is let in: names, tokens, sessions, forms, pace and size; and the headers that every answer carries."""

from __future__ import annotations

import http.client
import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from recrawl.errors import UsageError
from recrawl.serve.access.security import RateLimiter
from recrawl.serve.access.sessions import LoggedOut, decode_session, encode_session, new_session
from recrawl.serve.context import ServiceLimits
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import TOKEN, Asker
from tests.world import Repo

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    repo = Repo.create(tmp_path_factory.mktemp("guarded") / "repo")
    plan = ServiceConfig(schedule=False, token=TOKEN, limits=ServiceLimits(logins_per_minute=1000.0))
    with Service(repo.folder, plan) as service:
        yield service


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    repo = Repo.create(tmp_path_factory.mktemp("local") / "repo")
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        yield service


def cookie_of(value: str) -> str:
    return value.partition(";")[0]


# -- names ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "", "10.0.0.1"]
)
def test_other_names_get_no_answer(local: Service, host: str) -> None:
    assert Asker(local, Host=host).get("/healthz").status == 421


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:99", "[::1]:80", "localhost."])
def test_our_names_do(local: Service, host: str) -> None:
    assert Asker(local, Host=host).get("/healthz").status == 200


def test_a_name_can_be_allowed(repo: Repo) -> None:
    with Service(repo.folder, ServiceConfig(schedule=False, names=("Crawler.Example.org",))) as service:
        assert Asker(service, Host="crawler.example.org").get("/healthz").status == 200


# -- tokens and sessions -------------------------------------------------------------------------------------


def test_without_the_token_nothing_is_told(guarded: Service) -> None:
    found = Asker(guarded).get("/api/v1/status")
    assert found.status == 401
    assert found.headers["www-authenticate"] == "Bearer"
    assert found.headers["content-type"] == "application/problem+json"
    for shown in ("", "Bearer", f"Basic {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", "Bearer \xff"):
        assert Asker(guarded, Authorization=shown).get("/api/v1/status").status == 401
    assert Asker(guarded, Authorization=f"bearer {TOKEN}").get("/api/v1/status").status != 401


@pytest.mark.parametrize("path", ["/pages/{}", "/pages/{}/diff", "/sites/{}", "/api/v1/pages/{}"])
def test_a_number_of_thousands_of_digits_is_no_page(guarded: Service, path: str) -> None:
    found = Asker(guarded, Authorization=f"Bearer {TOKEN}").get(path.format("9" * 5000))
    assert found.status in (400, 404)


@pytest.mark.parametrize("damage", ["", "[1, 2]", "null", "3", '{"a": "b"}', "\0"])
def test_a_damaged_list_of_ended_sessions_keeps_nobody_from_serving(tmp_path: Path, damage: str) -> None:
    (tmp_path / "serve.ended").write_text(damage, encoding="utf-8")
    ended, session = LoggedOut(tmp_path), new_session(0.0, authenticated=True)
    assert session not in ended
    ended.add(session, 1.0)
    assert session in LoggedOut(tmp_path)


def test_people_are_led_to_the_form_and_back(guarded: Service) -> None:
    asked = Asker(guarded, **HTML)
    sent_away = asked.get("/pages/7")
    assert (sent_away.status, sent_away.headers["location"]) == (303, "/login?next=/pages/7")
    form = asked.get("/login?next=/pages/7")
    anonymous = cookie_of(form.headers["set-cookie"])
    assert re.search("HttpOnly; SameSite=Strict", form.headers["set-cookie"])
    csrf = re.search(r'name="csrf" value="(\w+)"', form.text)
    assert csrf is not None
    fields = {"csrf": csrf[1], "next": "/pages/7", "token": TOKEN}
    inside = asked.post("/login", fields, form=True, headers={"Cookie": anonymous})
    assert (inside.status, inside.headers["location"]) == (303, "/pages/7")
    known = cookie_of(inside.headers["set-cookie"])
    assert known != anonymous
    assert asked.get("/", Cookie=known).status != 303
    assert asked.get("/", Cookie=anonymous).status == 303
    wrong = asked.post("/login", {**fields, "token": "x"}, form=True, headers={"Cookie": anonymous})
    assert wrong.status == 403
    assert 'role="alert"' in wrong.text


def test_forms_of_others_are_refused(guarded: Service) -> None:
    asked = Asker(guarded, **HTML)
    cookie = cookie_of(asked.get("/login").headers["set-cookie"])
    for csrf in ("", "0" * 64):
        fields = {"csrf": csrf, "token": TOKEN}
        assert asked.post("/login", fields, form=True, headers={"Cookie": cookie}).status == 403
    assert asked.post("/login", {"token": TOKEN}, form=True).status == 403


@pytest.mark.parametrize("after", ["//evil.example/", "https://evil.example", "/\\evil.example", "javascript:alert(1)"])
def test_nobody_is_sent_elsewhere_after_the_form(guarded: Service, after: str) -> None:
    asked = Asker(guarded, **HTML)
    form = asked.get("/login")
    csrf = re.search(r'name="csrf" value="(\w+)"', form.text)
    assert csrf is not None
    fields = {"csrf": csrf[1], "next": after, "token": TOKEN}
    cookie = cookie_of(form.headers["set-cookie"])
    assert asked.post("/login", fields, form=True, headers={"Cookie": cookie}).headers["location"] == "/"


def test_script_in_the_address_shows_as_text(guarded: Service) -> None:
    found = Asker(guarded, **HTML).get("/login?next=/%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert "<script>" not in found.text


def test_a_session_cannot_be_made_up_or_outlive_its_time() -> None:
    session = new_session(0.0, authenticated=False)
    cookie = encode_session(session, b"key")
    assert decode_session(cookie, b"key", 0.0) == session
    assert decode_session(cookie.replace(".0.", ".1.", 1), b"key", 0.0) is None
    assert decode_session(cookie, b"key", 1e9) is None
    for broken in ("", ".", "a.b.c.d", "....", "\ud800", cookie[:-1]):
        assert decode_session(broken, b"key", 0.0) is None


def log_in(asked: Asker) -> str:
    """The cookie of a session that has sent the token."""
    form = asked.get("/login", **HTML)
    csrf = re.search(r'name="csrf" value="(\w+)"', form.text)
    assert csrf is not None
    sent = {**HTML, "Cookie": cookie_of(form.headers["set-cookie"])}
    inside = asked.post("/login", {"csrf": csrf[1], "token": TOKEN}, form=True, headers=sent)
    assert inside.status == 303
    return inside.headers["set-cookie"]


def test_wrong_tokens_are_counted_and_the_right_one_is_never_locked_out(repo: Repo) -> None:
    plan = ServiceConfig(schedule=False, token=TOKEN, limits=ServiceLimits(logins_per_minute=3.0))
    with Service(repo.folder, plan) as service:
        answers = [Asker(service, Authorization="Bearer wrong").get("/api/v1/status").status for _ in range(5)]
        assert answers == [401, 401, 401, 429, 429]
        assert Asker(service, Authorization=f"Bearer {TOKEN}").get("/api/v1/status").status == 200
        log_in(Asker(service))
        assert Asker(service, Authorization="Bearer wrong").get("/api/v1/status").status == 429


def test_a_flood_without_the_token_does_not_use_up_what_is_for_those_who_have_it(repo: Repo) -> None:
    plan = ServiceConfig(schedule=False, token=TOKEN, limits=ServiceLimits(per_minute=1.0, burst=3.0))
    with Service(repo.folder, plan) as service:
        assert [Asker(service).get("/healthz").status for _ in range(4)] == [200, 200, 200, 429]
        assert Asker(service, Authorization=f"Bearer {TOKEN}").get("/api/v1/status").status == 200


def test_logging_out_ends_the_session_for_every_copy_of_its_cookie(repo: Repo) -> None:
    plan = ServiceConfig(schedule=False, token=TOKEN)
    with Service(repo.folder, plan) as service:
        asked = Asker(service, **HTML)
        cookie, other = cookie_of(log_in(asked)), cookie_of(log_in(asked))
        csrf = re.search(r'name="csrf" value="(\w+)"', asked.get("/settings", Cookie=cookie).text)
        assert csrf is not None
        stream = http.client.HTTPConnection("127.0.0.1", service.port, timeout=60)
        stream.request("GET", "/api/v1/events", headers={"Cookie": cookie})
        opened = stream.getresponse()
        assert opened.readline() == b"retry: 3000\n"
        assert asked.post("/logout", {"csrf": csrf[1]}, form=True, headers={"Cookie": cookie}).status == 303
        opened.read()  # the stream ends too
        stream.close()
        assert asked.get("/", Cookie=cookie).status == 303
        assert asked.get("/", Cookie=other).status == 200
    with Service(repo.folder, plan) as service:
        assert Asker(service, **HTML).get("/", Cookie=cookie).status == 303, "not revived by a restart"
        assert Asker(service, **HTML).get("/", Cookie=other).status == 200
    with Service(repo.folder, ServiceConfig(schedule=False, token=TOKEN[::-1])) as service:
        assert Asker(service, **HTML).get("/", Cookie=other).status == 303, "a new token ends all sessions"


# -- proxies -------------------------------------------------------------------------------------------------


def test_only_a_trusted_proxy_says_who_the_client_is_and_how_it_came(repo: Repo) -> None:
    limits = ServiceLimits(logins_per_minute=1.0)
    wrong = {"Authorization": "Bearer wrong"}
    for proxies, answers, secure in (((), [401, 429, 429], False), (("127.0.0.0/8",), [401, 401, 429], True)):
        plan = ServiceConfig(schedule=False, token=TOKEN, limits=limits, proxies=proxies)
        with Service(repo.folder, plan) as service:
            sent = ({"X-Forwarded-For": f"6.6.6.6, {client}"} for client in ("1.1.1.1", "2.2.2.2", "1.1.1.1"))
            assert [Asker(service, **wrong, **one).get("/api/v1/status").status for one in sent] == answers
            cookie = log_in(Asker(service, X_Forwarded_Proto="https"))
            assert cookie.endswith("; Secure") == secure


def test_a_proxy_needs_a_token_and_an_address(repo: Repo) -> None:
    with pytest.raises(UsageError, match="requires an access token"):
        Service(repo.folder, ServiceConfig(proxies=("127.0.0.1",)))
    for wrong in ("*", "proxy.example", ""):
        with pytest.raises(UsageError, match="invalid trusted proxy"):
            Service(repo.folder, ServiceConfig(token=TOKEN, proxies=(wrong,)))


# -- requests from other sites -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost:1"},
    ],
)
def test_other_sites_change_nothing(local: Service, headers: dict[str, str]) -> None:
    found = Asker(local, Host=f"localhost:{local.port}").post("/api/v1/scheduler/pause", {}, headers=headers)
    assert found.status == 403
    assert not local.context.scheduler.status().paused


# -- pace and size -------------------------------------------------------------------------------------------


def test_pace() -> None:
    now = [0.0]
    paces = RateLimiter(60.0, 3.0, lambda: now[0])
    assert [paces.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 1.0]
    assert paces.take("b") == 0.0
    now[0] = 1.0
    assert paces.take("a") == 0.0
    for client in range(20_000):
        paces.take(str(client))
    assert len(paces._clients) <= 10_000


def test_too_many_requests_are_told_when_to_come_again(repo: Repo) -> None:
    plan = ServiceConfig(schedule=False, limits=ServiceLimits(per_minute=1.0, burst=2.0))
    with Service(repo.folder, plan) as service:
        answers = [Asker(service).get("/healthz") for _ in range(3)]
    assert [answer.status for answer in answers] == [200, 200, 429]
    assert int(answers[2].headers["retry-after"]) > 0


def test_large_bodies_are_refused(repo: Repo) -> None:
    plan = ServiceConfig(schedule=False, limits=ServiceLimits(body_bytes=1000))
    with Service(repo.folder, plan) as service:
        asked = Asker(service, **{"Content-Type": "application/x-www-form-urlencoded"})
        assert asked.post("/login", b"x" * 1001).status == 413
        assert asked.post("/login", b"", headers={"Content-Length": "-1"}).status in (400, 413)
        chunked = (b"x" * 400 for _ in range(5))
        assert asked.post("/login", chunked).status == 413


def test_who_asks_for_a_long_address_hears_that_it_is_too_long(repo: Repo) -> None:
    """However it arrives: a server that gave up half-way through it would close on who still sends."""
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        asked = Asker(service)
        assert asked.get("/api/v1/search?q=" + "x" * 32_000).status == 400, "the address is not, the word is"
        for many in (33_000, 200_000):
            assert asked.get("/api/v1/search?q=" + "x" * many).status == 414
        with socket.create_connection(("127.0.0.1", service.port), timeout=300) as line:
            line.sendall(b"GET /?" + b"x" * 60_000)
            line.sendall(b"x" * 60_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 414 " in line.recv(100)


def test_who_is_still_sending_hears_why_it_is_refused(repo: Repo) -> None:
    """Far more than fits into the buffers between the two; a body that never ends is waited for in vain."""
    plan = ServiceConfig(schedule=False, limits=ServiceLimits(body_bytes=1000))
    with Service(repo.folder, plan) as service:
        asked = Asker(service, **{"Content-Type": "application/x-www-form-urlencoded"})
        for body in (b"x" * 3_000_000, (b"x" * 1_000_000 for _ in range(3))):
            assert asked.post("/login", body).status == 413
        with socket.create_connection(("127.0.0.1", service.port), timeout=300) as line:
            line.sendall(b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2000\r\n\r\nx")
            assert b" 413 " in line.recv(100)


# -- headers -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/healthz", "/login", "/nothing", "/api/v1/nothing"])
def test_every_answer_is_fenced(local: Service, path: str) -> None:
    headers = Asker(local, **HTML).get(path).headers
    policy = dict(part.split(" ", 1) for part in headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self'"
    assert policy["frame-ancestors"] == "'none'"
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert "server" not in headers
