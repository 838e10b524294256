"""robots.txt: which URLs a site disallows, and the delay it asks for (spec K2, RFC 9309).

A `Robots` is made from one answer to `GET /robots.txt` and never changes. It keeps status, body and time, so that a
stored copy gives the same object again. protego matches the rules. Because half a megabyte of rules can occupy protego
for hours, it gets only the groups that apply to us, each rule once, and a limited number of wildcards.

An answer means (RFC 9309 §2.3.1): 2xx, the rules apply; 4xx, there are none and everything is allowed; anything else,
including 429, means no requests for now, retry later, and assume no rules only after 30 days.
"""

from __future__ import annotations

import codecs
import math
import re
from dataclasses import dataclass, field

from protego import Protego

from recrawl.columns import DAY
from recrawl.model import UNREACHABLE, Failure
from recrawl.times import elapsed

MAX_BYTES = 500 * 1024
RETRY = 300.0
"""Seconds until the first retry of an unreachable robots.txt; each later wait is twice as long."""
GIVE_UP = 30 * DAY
"""Seconds after which an unreachable robots.txt counts as absent."""

_MAX_WILDCARDS = 5000
_MAX_SITEMAPS = 1000
_MAX_VALUE = 8192
# Includes the most common misspellings; a line without a colon still counts.
_LINE = re.compile(
    r"(?i)(?P<agent>user[- ]?agent)|(?P<no>dis{1,2}al{1,2}[oa]w|diasllow)|(?P<yes>allow)"
    r"|(?P<delay>crawl[- ]delay)|(?P<rate>request[- ]rate)|(?P<map>site-?maps?)"
)
_VALUE = re.compile(r"\s*(?::|\s|$)\s*")
# Some servers send only the first bytes of the byte order mark.
_PARTIAL_BOM = re.compile(rb"\A\xef(?:\xbb\xbf?)?")
# Characters that only Python treats as line ends.
_ODD_ENDS = dict.fromkeys(map(ord, "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), " ")


@dataclass(frozen=True, slots=True)
class Robots:
    """The rules of one server's robots.txt for one crawler."""

    agent: str
    """The product token by which groups were selected."""
    status: int
    body: bytes = field(repr=False)
    """As sent, at most `MAX_BYTES`; without a complete answer, the text of `failure_text`."""
    fetched: float
    failure: bool
    expires: float
    """From this time on it must be fetched again."""
    hold_off: bool
    """robots.txt is unreachable, so nothing may be visited."""
    held_since: float
    """Since when it is unreachable, 0 if it is not; pass it to the next `from_answer`."""
    delay: float
    """Seconds between requests that the site asks for, 0 for none."""
    sitemaps: tuple[str, ...]
    """URLs as written, possibly relative."""
    _rules: Protego | None = field(repr=False, compare=False)

    @classmethod
    def from_answer(
        cls,
        status: int,
        body: bytes,
        now: float,
        *,
        agent: str,
        max_age: float = DAY,
        failure: bool = False,
        held_since: float = 0.0,
    ) -> Robots:
        """Parse an answer. The caller has followed redirects; `failure` means that there was no complete answer.

        >>> Robots.from_answer(200, b"User-agent: *\\nDisallow: /private", 0.0, agent="recrawl").allows("http://x/a")
        True
        >>> Robots.from_answer(503, b"", 0.0, agent="recrawl").allows("http://x.example/a")
        False
        """
        body, agent = _cut(body), _product(agent)
        unreachable = failure or status < 100 or status == 429 or status >= 500
        if unreachable:
            since = held_since if held_since and elapsed(held_since, now) < math.inf else now
            held = now - since
            hold_off = held < GIVE_UP
            # Waiting as long as it has been unreachable doubles the wait without another counter.
            wait = min(max(held, RETRY), max_age)
            return cls(agent, status, body, now, failure, now + wait, hold_off, since, 0.0, (), None)
        lines, sitemaps = _relevant(_decode(body), agent) if 200 <= status < 300 else ([], ())
        rules = Protego.parse("\n".join(lines)) if lines else None
        delay = _delay(rules, agent) if rules else 0.0
        return cls(agent, status, body, now, failure, now + max_age, False, 0.0, delay, sitemaps, rules)

    def expired(self, now: float) -> bool:
        """Whether it must be fetched again."""
        return elapsed(self.fetched, now) >= self.expires - self.fetched

    def allows(self, url: str) -> bool:
        """Whether the URL may be visited."""
        if self.hold_off:
            return False
        if self._rules is None:
            return True
        try:
            return self._rules.can_fetch(url, self.agent)
        except ValueError:
            return False  # not a valid URL

    @property
    def hold_cause(self) -> tuple[Failure, str]:
        """Why nothing may be visited while `hold_off`: a failure, and the cause in words.

        >>> robots = Robots.from_answer(0, failure_text(Failure.DNS, "no such host"), 0.0, agent="a", failure=True)
        >>> robots.hold_cause
        (<Failure.UNREACHABLE_DNS: 'unreachable-dns'>, 'robots.txt: no such host')
        """
        if not self.failure:
            return Failure.ROBOTS_UNREACHABLE, f"robots.txt: HTTP {self.status}" if self.status else ""
        word, _, detail = self.body.decode("utf-8", "replace").partition(": ")
        known = Failure(word) if word in set(Failure) else Failure.ROBOTS_UNREACHABLE
        return UNREACHABLE.get(known, Failure.ROBOTS_UNREACHABLE), f"robots.txt: {detail}" if detail else ""


def failure_text(failure: Failure, detail: str, redirects: int = 0) -> bytes:
    """The body that stands for a robots.txt without a complete answer, so that a stored copy keeps the cause.

    After redirects, the failure is that of another server.
    """
    cause = Failure.ROBOTS_UNREACHABLE if redirects else failure
    return f"{cause.value}: {detail}"[:_MAX_VALUE].encode()


def _cut(body: bytes) -> bytes:
    """The first 500 KiB up to the end of a line, since half a rule could mean something else."""
    if len(body) < MAX_BYTES:
        return body
    body = body[:MAX_BYTES]
    return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]


def _decode(body: bytes) -> str:
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = body.decode("utf-16", "replace")
    else:
        # Removing zero bytes makes ASCII in UTF-16 without a byte order mark readable.
        text = _PARTIAL_BOM.sub(b"", body.replace(b"\0", b""), count=1).decode("utf-8", "replace")
    return text.lstrip("\ufeff").translate(_ODD_ENDS)


def _relevant(text: str, agent: str) -> tuple[list[str], tuple[str, ...]]:
    """The normalised lines of the groups for this agent or for all, and the sitemaps."""
    lines: list[str] = []
    sitemaps: list[str] = []
    rules = _Rules(lines)
    ours = in_rules = False
    for raw in text.splitlines():
        line = raw.partition("#")[0].strip()
        known = _LINE.match(line)
        gap = _VALUE.match(line, known.end()) if known else None
        if not known or not gap:
            continue
        what, value = known.lastgroup, line[gap.end() :]
        if what == "map":
            if 0 < len(value) <= _MAX_VALUE and len(sitemaps) < _MAX_SITEMAPS:
                sitemaps.append(value)
        elif what == "agent":
            ours, in_rules = ours and not in_rules, False
            named = _product(value)
            if named in ("*", agent):
                ours = True
                rules.group(named)
        else:
            in_rules = True
            if ours:
                rules.add(what or "", value)
    return lines, tuple(dict.fromkeys(sitemaps))


def _product(value: str) -> str:
    """The lower-case product token of a User-agent line, without version, comment and stars."""
    word = re.split(r"[\s/;(]", value.lower(), maxsplit=1)[0]
    return word if word == "*" else word.strip("*")


class _Rules:
    """Collects rules for protego, each at most once per group, with a limited number of wildcards."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._seen: set[tuple[str, str]] = set()
        self._wildcards = 0
        self._grouping = False

    def group(self, agent: str) -> None:
        """Add a User-agent line. Several in a row form one group."""
        if not self._grouping:
            self._seen.clear()
        self._grouping = True
        self._lines.append(f"User-agent: {agent}")

    def add(self, what: str, value: str) -> None:
        """Add a rule to the current group."""
        self._grouping = False
        field_name = {"no": "Disallow", "yes": "Allow", "delay": "Crawl-delay", "rate": "Request-rate"}[what]
        if (what, value) not in self._seen:
            self._seen.add((what, value))
            if what in ("no", "yes"):
                value = self._bounded(what, value)
            self._lines.append(f"{field_name}: {value}")

    def _bounded(self, what: str, value: str) -> str:
        """The pattern or, beyond the limits, a simpler one that disallows at least as much."""
        special = value.count("*") + value.endswith("$")
        if len(value) <= _MAX_VALUE and self._wildcards + special <= _MAX_WILDCARDS:
            self._wildcards += special
            return value
        return value[:_MAX_VALUE].partition("*")[0].rstrip("$") or "/" if what == "no" else ""


def _delay(rules: Protego, agent: str) -> float:
    """The longer of the delays from Crawl-delay and Request-rate, in seconds."""
    rate = rules.request_rate(agent)
    try:
        each = rate.seconds / rate.requests if rate else 0.0
    except OverflowError:
        each = 0.0
    return max(rules.crawl_delay(agent) or 0.0, each)
