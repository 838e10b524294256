"""Which servers' Last-Modified and ETag are believed (spec C6).

A 304 saves a download, and a server that says 304 wrongly hides changes for ever. So what each server says
is checked against the text whenever there is one, and every tenth 304 in a row is followed by a visit
without validators, which only an honest server survives.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime

from recrawl.model import Validators

_AUDIT_EVERY = 10
_LEAST_STRIKES = 2
_MOST_WRONG = 0.1
_SAME_TIME = 2.0
_NOTHING = Validators("", "")


@dataclass(frozen=True, slots=True)
class ValidatorTrust:
    """How often a server's Last-Modified and ETag agreed with the text, and how often they did not."""

    lm_good: int = 0
    lm_bad: int = 0
    etag_good: int = 0
    etag_bad: int = 0

    @property
    def last_modified(self) -> bool:
        """Whether Last-Modified is believed."""
        return _believed(self.lm_good, self.lm_bad)

    @property
    def etag(self) -> bool:
        """Whether ETag is believed."""
        return _believed(self.etag_good, self.etag_bad)


def usable(validators: Validators, trust: ValidatorTrust, unchanged_in_a_row: int) -> Validators:
    """Which validators to send: those believed, and none at all after every tenth 304 in a row.

    >>> usable(Validators('"a"', ""), ValidatorTrust(), 3)
    Validators(etag='"a"', last_modified='')
    >>> usable(Validators('"a"', ""), ValidatorTrust(), 10)
    Validators(etag='', last_modified='')
    >>> usable(Validators('"a"', ""), ValidatorTrust(etag_bad=2), 3)
    Validators(etag='', last_modified='')
    """
    if unchanged_in_a_row > 0 and unchanged_in_a_row % _AUDIT_EVERY == 0:
        return _NOTHING
    return Validators(validators.etag if trust.etag else "", validators.last_modified if trust.last_modified else "")


def learn(
    trust: ValidatorTrust,
    *,
    before: Validators,
    after: Validators,
    answered_at: float,
    server_date: str,
    text_changed: bool,
    status: int,
) -> ValidatorTrust:
    """What one more answer adds to the trust in its server. Only an answer with a text can be judged.

    The same validator with another text is a strike; so is a Last-Modified that is simply the time of the
    answer. A validator that stays with the text, or changes with it, is to its credit. One that changed
    while the text did not says nothing: the markup may have changed.
    """
    if status != 200:
        return trust
    lm = _verdict(before.last_modified, after.last_modified, text_changed)
    if after.last_modified and _is_now(after.last_modified, server_date, answered_at):
        lm = -1
    etag = _verdict(before.etag, after.etag, text_changed)
    return ValidatorTrust(
        trust.lm_good + (lm > 0),
        trust.lm_bad + (lm < 0),
        trust.etag_good + (etag > 0),
        trust.etag_bad + (etag < 0),
    )


def http_time(date: str) -> float | None:
    """Seconds since 1970 for an HTTP date in any of its spellings; None for anything else.

    >>> http_time("Sun, 06 Nov 1994 08:49:37 GMT"), http_time("Sunday, 06-Nov-94 08:49:37 GMT")
    (784111777.0, 784111777.0)
    >>> http_time("soon")
    """
    if len(date) > 100:
        return None
    try:
        parsed = parsedate_to_datetime(date)
        # An HTTP date is in GMT also when it forgets to say so.
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _believed(good: int, bad: int) -> bool:
    return bad < _LEAST_STRIKES or bad <= _MOST_WRONG * (good + bad)


def _verdict(before: str, after: str, text_changed: bool) -> int:
    """+1 when validator and text agree, -1 when they contradict each other, 0 when nothing can be said."""
    if not before or not after:
        return 0
    if before == after:
        return -1 if text_changed else 1
    return 1 if text_changed else 0


def _is_now(last_modified: str, server_date: str, answered_at: float) -> bool:
    """Whether Last-Modified is the time of the answer, by the server's own clock if it shows one."""
    modified = http_time(last_modified)
    answered = http_time(server_date) if server_date else None
    if modified is None:
        return False
    return abs(modified - (answered_at if answered is None else answered)) <= _SAME_TIME
