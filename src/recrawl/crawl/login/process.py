"""The login process: gets a form, fills it in, sends it, and returns the cookies of the session.

It is a process of its own so that a slow login stops no other site, and so that a page that crashes a parser ends only
this login. Redirects are followed to the site and to the host of the login page; credentials of the site's headers go
to the site alone.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from dataclasses import replace
from multiprocessing.connection import Connection
from urllib.parse import urljoin, urlsplit

from recrawl.child_processes import end_with_parent, start_module
from recrawl.compare.parsing.encoding import decode
from recrawl.crawl.login.form import LoginProblem, fill, has_form
from recrawl.crawl.login.messages import BrowserAnswer, BrowserRequest, BrowserTask, LoginResult, LoginTask
from recrawl.discover.urls import origin
from recrawl.errors import RecrawlError
from recrawl.fetch.access import Profile
from recrawl.fetch.cookies import CookieJar
from recrawl.fetch.fetcher import Request
from recrawl.fetch.http import Client
from recrawl.model import Answer

_MAX_REDIRECTS = 10
_REDIRECTS = (301, 302, 303, 307, 308)
_FORM = "Content-Type: application/x-www-form-urlencoded"
_PASSED = ("content-type", "accept", "accept-language", "x-requested-with", "referer", "origin", "cookie")
"""Headers of the browser that are passed on."""


class _Web:
    """The requests of one login."""

    def __init__(self, task: LoginTask, jar: CookieJar | None) -> None:
        rule = task.profile.rule
        self._task, self._site = task, rule.site
        self._own = replace(task.profile, jar=jar)
        self._bare = replace(task.profile, headers=(), jar=jar)
        self._origins = (rule.site, origin(rule.login_url + "/"))
        self._client = Client(agent=task.agent, limits=task.limits, room=1, profiles=self._profile)

    def _profile(self, url: str) -> Profile:
        return self._own if origin(url) == self._site else self._bare

    def request(self, url: str, body: bytes | None = None, headers: tuple[str, ...] = ()) -> Answer:
        """One request; a permission for private addresses holds for the site's host alone."""
        private = self._task.private and urlsplit(url).hostname == urlsplit(self._site).hostname
        self._client.start(0, Request(url, private=private, post=body, headers=headers))
        while True:
            for _, answer in self._client.wait(1.0):
                return answer

    def follow(self, url: str, body: bytes | None = None) -> Answer:
        """One request and its redirects."""
        for _ in range(_MAX_REDIRECTS):
            if origin(url) not in self._origins:
                raise LoginProblem(f"the login leads to {origin(url)}, which is neither the site nor the login page's")
            answer = self.request(url, body, (_FORM,) if body is not None else ())
            if answer.failure is not None:
                raise LoginProblem(f"{_shown(url)} did not answer: {answer.failure.value}: {answer.detail}")
            if answer.status not in _REDIRECTS:
                return answer
            body = body if answer.status in (307, 308) else None
            url = urljoin(url, answer.header("location"))
        raise LoginProblem(f"the login has more than {_MAX_REDIRECTS} redirects in a row")


def log_in(task: LoginTask) -> LoginResult:
    """Log in by plain requests; `LoginProblem` says why not."""
    rule = task.profile.rule
    jar = CookieJar()
    web = _Web(task, jar)
    page = web.follow(rule.login_url)
    if page.status >= 400:
        raise LoginProblem(f"the login page {_shown(rule.login_url)} answered HTTP {page.status}")
    sent = fill(_text(page), page.url, rule.login_form, task.profile.login_fields)
    if sent.method == "POST":
        answer = web.follow(sent.url, sent.encoded().encode())
    else:
        answer = web.follow(f"{_shown(sent.url)}?{sent.encoded()}")  # as a browser does: the fields replace the query
    if answer.status >= 400:
        raise LoginProblem(f"the login at {_shown(sent.url)} was answered with HTTP {answer.status}")
    if has_form(_text(answer), rule.login_form):
        raise LoginProblem(f"{_shown(sent.url)} shows its login form again; check the values of login_fields")
    return _result(jar.lines())


def log_in_with_browser(task: LoginTask) -> LoginResult:
    """Log in with a browser, whose requests this process makes."""
    rule, profile = task.profile.rule, task.profile
    web = _Web(task, None)
    child, ours = start_module("recrawl.crawl.login.browser", own_group=False)
    agent = rule.user_agent or task.agent
    form = (rule.login_url, rule.login_form, profile.login_fields)
    try:
        ours.send(BrowserTask(task.chromium, agent, *form, task.seconds))
        while True:
            message = ours.recv()
            if isinstance(message, LoginResult):
                if message.problem:
                    raise LoginProblem(message.problem)
                return _result(message.cookies)
            ours.send(_answer(web, message))
    except EOFError:
        raise LoginProblem("the browser ended during the login") from None
    finally:
        child.kill()
        child.wait()


def _answer(web: _Web, asked: BrowserRequest) -> BrowserAnswer:
    headers = tuple(f"{name}: {value}" for name, value in asked.headers if name.lower() in _PASSED)
    url, body = asked.url, asked.body if asked.method == "POST" else None
    for _ in range(_MAX_REDIRECTS):
        answer = web.request(url, body, headers)
        if answer.failure is not None:
            break
        if answer.status not in _REDIRECTS or asked.navigates:
            return BrowserAnswer(asked.number, answer.status, answer.headers, answer.body)
        url, body = urljoin(url, answer.header("location")), None
        headers = tuple(line for line in headers if not line.lower().startswith(("content-type:", "cookie:")))
    return BrowserAnswer(asked.number)


def _result(cookies: list[str]) -> LoginResult:
    if not cookies:
        raise LoginProblem("the login set no cookie, so there is no session to go on with")
    return LoginResult(cookies)


def _text(answer: Answer) -> str:
    return decode(answer.body, answer.header("content-type")).text


def _shown(url: str) -> str:
    """A URL without its query, which may hold what was typed in."""
    return url.partition("?")[0]


def main() -> None:
    """Make the login that the parent sends."""
    end_with_parent(int(sys.argv[2]))
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(int(sys.argv[1])) as connection, contextlib.suppress(EOFError, OSError):
        task: LoginTask = connection.recv()
        try:
            result = log_in_with_browser(task) if task.chromium else log_in(task)
        except RecrawlError as error:
            result = LoginResult(problem=str(error))
        connection.send(result)


if __name__ == "__main__":
    main()
