"""The login processes of a run. When a site needs a login is decided by the machine (`VisitMachine._login_due`).

While a login is made, the lane of its server is on hold. A session has expired when a page answers 401 or 403 or
redirects to the login page; the page is then requested again after a new login, once. A site gets a few logins in a
run. Without a session its pages are not requested: what they show then is not their content.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from recrawl.child_processes import start_module
from recrawl.crawl.login.messages import LoginResult, LoginTask
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.render.stage import find_chromium
from recrawl.crawl.visits.machine import LoginEnded, SiteLogin
from recrawl.fetch.access import Accesses, Profile

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

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


class Logins:
    """The logins of one run that are under way."""

    def __init__(self, accesses: Accesses, options: CrawlOptions) -> None:
        self._accesses, self._options = accesses, options
        self._running: dict[SiteLogin, LoginProcess] = {}

    def start(self, login: SiteLogin, *, private: bool) -> None:
        """Begin a login."""
        profile = self._accesses.of(login.origin + "/")
        assert profile is not None
        self._running[login] = LoginProcess(login_task(profile, self._options, private=private), self._options)

    def collect(self, now: float) -> list[LoginEnded]:
        """The logins that have ended; their cookies are kept."""
        ended = []
        for login, process in list(self._running.items()):
            result = process.result(now)
            if result is None:
                continue
            process.close()
            del self._running[login]
            profile = self._accesses.of(login.origin + "/")
            if not result.problem and profile is not None and profile.jar is not None:
                profile.jar.add(result.cookies)
                profile.jar.save()
            ended.append(LoginEnded(login, result.problem))
        return ended

    @property
    def pending(self) -> int:
        """Logins under way."""
        return len(self._running)

    @property
    def connections(self) -> list[Connection]:
        """Become readable when a login has ended."""
        return [process.connection for process in self._running.values()]

    def deadline(self, now: float) -> float | None:
        """Seconds until a login is given up."""
        running = self._running.values()
        return max(0.0, min(process.deadline for process in running) - now) if running else None

    def close(self) -> None:
        """End the logins."""
        for process in self._running.values():
            process.close()
        self._running.clear()


def login_task(profile: Profile, options: CrawlOptions, *, private: bool) -> LoginTask:
    """What the login process needs."""
    chromium = find_chromium() if profile.rule.login_browser else ""
    return LoginTask(profile, options.agent, options.limits, private, chromium, options.render_seconds)
