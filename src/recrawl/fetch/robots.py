"""robots.txt: what a site asks crawlers not to visit, and how fast they may come (spec K2, RFC 9309).

A `Robots` is made from one answer to `GET /robots.txt` and never changes. The status, the body and the time
are kept in it, so that a stored copy gives the same object again. Matching is protego's work. What is put
before it bounds the cost, for protego alone can be kept busy for hours by half a megabyte: only the groups
that speak to us reach it, each rule once, and only so many wildcards.

An answer means (RFC 9309 §2.3.1): 2xx the rules count; 4xx there are none and all is allowed; anything else,
429 included, means "hold off", try again later, and only after 30 days of that assume there are no rules.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field

from protego import Protego

MAX_BYTES = 500 * 1024
RETRY = 300.0
"""Seconds after which an unreachable robots.txt is first tried again; each later wait is twice as long."""
GIVE_UP = 30 * 86400.0
"""Seconds after which an unreachable robots.txt counts as absent."""

_MAX_WILDCARDS = 5000
_MAX_SITEMAPS = 1000
_MAX_VALUE = 8192
# The misspellings are those that sites make most; a line without a colon still counts.
_LINE = re.compile(
    r"(?i)(?P<agent>user[- ]?agent)|(?P<no>dis{1,2}al{1,2}[oa]w|diasllow)|(?P<yes>allow)"
    r"|(?P<delay>crawl[- ]delay)|(?P<rate>request[- ]rate)|(?P<map>site-?maps?)"
)
_VALUE = re.compile(r"\s*(?::|\s|$)\s*")
# Characters that Python, but nobody else, takes for line ends.
_ODD_ENDS = dict.fromkeys(map(ord, "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), " ")


@dataclass(frozen=True, slots=True)
class Robots:
    """What one server's robots.txt says to one crawler."""

    agent: str
    """The product token that the rules were matched with."""
    status: int
    body: bytes = field(repr=False)
    """What was sent, at most `MAX_BYTES` of it."""
    fetched: float
    failure: bool
    expires: float
    """Ask the server again from then on."""
    hold_off: bool
    """The server could not say, so nothing may be visited."""
    held_since: float
    """Since when it could not say; 0 when it could. Give it to the next `from_answer`."""
    delay: float
    """Seconds between requests that the site asks for; 0 when it does not."""
    sitemaps: tuple[str, ...]
    """As written; they may be relative."""
    _rules: Protego | None = field(repr=False, compare=False)

    @classmethod
    def from_answer(
        cls,
        status: int,
        body: bytes,
        now: float,
        *,
        agent: str,
        max_age: float = 86400.0,
        failure: bool = False,
        held_since: float = 0.0,
    ) -> Robots:
        """Judge an answer. The caller has followed redirects; `failure` means that no whole answer came.

        >>> Robots.from_answer(200, b"User-agent: *\\nDisallow: /private", 0.0, agent="recrawl").allows("http://x/a")
        True
        >>> Robots.from_answer(503, b"", 0.0, agent="recrawl").allows("http://x.example/a")
        False
        """
        body, agent = _cut(body), _product(agent)
        silent = failure or status < 100 or status == 429 or status >= 500
        if silent:
            since = held_since or now
            held = now - since
            hold_off = held < GIVE_UP
            # Waiting as long again as one has waited doubles the wait, with nothing more to remember.
            wait = min(max(held, RETRY), max_age)
            return cls(agent, status, body, now, failure, now + wait, hold_off, since, 0.0, (), None)
        lines, sitemaps = _for_us(_decode(body), agent) if 200 <= status < 300 else ([], ())
        rules = Protego.parse("\n".join(lines)) if lines else None
        delay = _delay(rules, agent) if rules else 0.0
        return cls(agent, status, body, now, failure, now + max_age, False, 0.0, delay, sitemaps, rules)

    def allows(self, url: str) -> bool:
        """Whether the address may be visited."""
        if self.hold_off:
            return False
        if self._rules is None:
            return True
        try:
            return self._rules.can_fetch(url, self.agent)
        except ValueError:
            # Not an address that could be visited anyway.
            return False


def _cut(body: bytes) -> bytes:
    """The first 500 KiB, up to a line's end: half a rule could mean something else."""
    if len(body) < MAX_BYTES:
        return body
    body = body[:MAX_BYTES]
    return body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]


def _decode(body: bytes) -> str:
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = body.decode("utf-16", "replace")
    else:
        # Without zero bytes, ASCII in UTF-16 without a mark is readable too.
        text = body.replace(b"\0", b"").decode("utf-8", "replace")
    return text.lstrip("\ufeff").translate(_ODD_ENDS)


def _for_us(text: str, agent: str) -> tuple[list[str], tuple[str, ...]]:
    """The lines of the groups that speak to this agent or to all, in plain spelling; and the sitemaps."""
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
    """The product token of a User-agent line, in lower case: without version, comment and needless stars."""
    word = re.split(r"[\s/;(]", value.lower(), maxsplit=1)[0]
    return word if word == "*" else word.strip("*")


class _Rules:
    """Writes down rules for protego, each at most once in a group and with a bounded number of wildcards."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._seen: set[tuple[str, str]] = set()
        self._wildcards = 0
        self._grouping = False

    def group(self, agent: str) -> None:
        """A User-agent line for us. Several in a row make one group."""
        if not self._grouping:
            self._seen.clear()
        self._grouping = True
        self._lines.append(f"User-agent: {agent}")

    def add(self, what: str, value: str) -> None:
        """A rule of the current group."""
        self._grouping = False
        field_name = {"no": "Disallow", "yes": "Allow", "delay": "Crawl-delay", "rate": "Request-rate"}[what]
        if (what, value) not in self._seen:
            self._seen.add((what, value))
            if what in ("no", "yes"):
                value = self._bounded(what, value)
            self._lines.append(f"{field_name}: {value}")

    def _bounded(self, what: str, value: str) -> str:
        """The pattern, or a simpler one that keeps us out of at least as much."""
        special = value.count("*") + value.endswith("$")
        if len(value) <= _MAX_VALUE and self._wildcards + special <= _MAX_WILDCARDS:
            self._wildcards += special
            return value
        return value[:_MAX_VALUE].partition("*")[0].rstrip("$") or "/" if what == "no" else ""


def _delay(rules: Protego, agent: str) -> float:
    """The longer of Crawl-delay and Request-rate, in seconds."""
    rate = rules.request_rate(agent)
    try:
        each = rate.seconds / rate.requests if rate else 0.0
    except OverflowError:
        each = 0.0
    return max(rules.crawl_delay(agent) or 0.0, each)
