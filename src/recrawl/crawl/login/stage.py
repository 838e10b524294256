"""When a site needs a login: before its first request if there is no session, and again when the session has expired.

While a login is made, the lane of its server is on hold. A session has expired when a page answers 401 or 403 or
redirects to the login page; the page is then requested again after a new login, once. A site gets at most
`_MAX_LOGINS` logins in a run. Without a session its pages are not requested: what they show then is not their content.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urljoin

from recrawl.child_processes import start_module
from recrawl.crawl.login.messages import LoginResult, LoginTask
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.render.renderer import find_chromium
from recrawl.crawl.visits.decide import Decider, Retry
from recrawl.crawl.visits.pending import PendingVisit
from recrawl.crawl.visits.results import Done
from recrawl.crawl.visits.servers import Server
from recrawl.fetch.access import Accesses, Profile
from recrawl.fetch.lanes import Lanes
from recrawl.model import Answer, Failure

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_MAX_LOGINS = 3
_GRACE = 30.0
"""Seconds beyond the longest download, or rendering, until a login is given up."""


class LoginProcess:
    """One login under way."""

    def __init__(self, task: LoginTask, options: CrawlOptions) -> None:
        longest = task.seconds if task.chromium else options.limits.total_seconds
        self.deadline = options.timer() + longest + _GRACE
        self._child, self.connection = start_module("recrawl.crawl.login.process")
        with contextlib.suppress(OSError):
            self.connection.send(task)

    def result(self, now: float, wait: float = 0.0) -> LoginResult | None:
        """The end of the login; None while it lasts."""
        try:
            if self.connection.poll(wait):
                found: LoginResult = self.connection.recv()
                return found
        except (EOFError, OSError):
            return LoginResult(problem="the login process ended without a result")
        return LoginResult(problem="the login took too long") if now >= self.deadline else None

    def close(self) -> None:
        """End the process."""
        self.connection.close()
        self._child.kill()
        self._child.wait()


@dataclass(slots=True)
class _Session:
    """The session of a site."""

    profile: Profile
    due: bool
    logins: int = 0
    process: LoginProcess | None = None


class Logins:
    """The logins of one run."""

    def __init__(self, jars: Path, lanes: Lanes, options: CrawlOptions, warnings: list[str]) -> None:
        self._lanes, self._options, self._warnings = lanes, options, warnings
        self._accesses = Accesses(options.access, jars)
        self.of = self._accesses.of
        """The profile of a URL."""
        self.needed = any(rule.login_url for rule in options.access)
        """Whether any site has a login; without one, no page has to be looked at."""
        self._sessions: dict[int, _Session] = {}
        self._servers: dict[int, Server] = {}

    def due(self, server: Server) -> bool:
        """Whether the server gets no request before a login."""
        if server.id not in self._sessions:
            profile = self._accesses.of(server.origin + "/")
            if profile is None or not profile.rule.login_url:
                return False
            has_session = profile.jar is not None and bool(profile.jar.lines())
            self._sessions[server.id], self._servers[server.id] = _Session(profile, due=not has_session), server
        return self._sessions[server.id].due

    def start(self, server: Server, item: int) -> None:
        """Log in, in the turn of an item; the server's lane is on hold until it is done."""
        self._lanes.push_front(server.id, item)
        session = self._sessions[server.id]
        session.due, session.logins = False, session.logins + 1
        self._lanes.hold(server.id, float("inf"))
        private = server.options.allow_private or self._options.allow_private
        session.process = LoginProcess(login_task(session.profile, self._options, private=private), self._options)

    def decide(self, server: Server, visit: PendingVisit, answer: Answer, decider: Decider) -> Retry | Done | None:
        """What an answer means that leads to the login page; it says nothing about the page. None for any other."""
        session = self._sessions.get(server.id)
        if session is None or answer.failure is not None or not _shows_login(session.profile, visit, answer):
            return None
        if self._renews(session, visit):
            return Retry(visit.request_url, login=True)
        if answer.status >= 400:
            return None  # with a session too: this page is not for us
        return decider.failed(visit, answer, Failure.LOGIN, "redirected to the login page", answer.at)

    def _renews(self, session: _Session, visit: PendingVisit) -> bool:
        """Whether the page is requested again: after another login, or after one made since it was requested."""
        if visit.session < session.logins:
            return True
        if session.logins >= _MAX_LOGINS or visit.logins:
            return False
        visit.logins += 1
        session.due = True
        return True

    def note(self, server: Server, visit: PendingVisit) -> None:
        """A page is requested with the session of now."""
        if server.id in self._sessions:
            visit.session = self._sessions[server.id].logins

    def work(self, now: float) -> None:
        """Go on with the logins that have ended."""
        for number, session in self._sessions.items():
            result = session.process.result(now) if session.process is not None else None
            if session.process is None or result is None:
                continue
            session.process.close()
            session.process = None
            server = self._servers[number]
            if result.problem:
                server.refusal, server.refused_as = result.problem, Failure.LOGIN
                self._warnings.append(f"{server.origin}: login failed: {result.problem}")
            elif session.profile.jar is not None:
                session.profile.jar.add(result.cookies)
                session.profile.jar.save()
            self._lanes.done(number, now, status=200, seconds=0.0)
            self._lanes.hold(number, server.held_until)

    @property
    def _running(self) -> list[LoginProcess]:
        return [session.process for session in self._sessions.values() if session.process is not None]

    @property
    def pending(self) -> int:
        """Logins under way."""
        return len(self._running)

    @property
    def connections(self) -> list[Connection]:
        """Become readable when a login has ended."""
        return [process.connection for process in self._running]

    def deadline(self, now: float) -> float | None:
        """Seconds until a login is given up."""
        return max(0.0, min(process.deadline for process in self._running) - now) if self._running else None

    def close(self) -> None:
        """End the logins, and save the cookies of all sites."""
        for process in self._running:
            process.close()
        self._accesses.save()


def login_task(profile: Profile, options: CrawlOptions, *, private: bool) -> LoginTask:
    """What the login process needs."""
    chromium = find_chromium() if profile.rule.login_browser else ""
    return LoginTask(profile, options.agent, options.limits, private, chromium, options.render_seconds)


def _shows_login(profile: Profile, visit: PendingVisit, answer: Answer) -> bool:
    if answer.status in (401, 403):
        return True
    target = urljoin(visit.request_url, answer.header("location")).partition("?")[0].partition("#")[0]
    return 300 <= answer.status < 400 and target == profile.rule.login_url.partition("?")[0].partition("#")[0]
