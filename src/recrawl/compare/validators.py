"""Which servers' Last-Modified and ETag are trusted (spec C6).

A 304 saves a download, but a server that sends it wrongly would hide changes forever. So validators are checked
against the text of every 200, and after every tenth consecutive 304 a visit without validators audits the server.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC

from recrawl.model import Validators

_AUDIT_EVERY = 10
_MIN_STRIKES = 2
_MAX_WRONG_SHARE = 0.1
_SAME_SECONDS = 2.0
_NONE = Validators("", "")


@dataclass(frozen=True, slots=True)
class ValidatorTrust:
    """How often a server's Last-Modified and ETag agreed with the text, and how often they contradicted it."""

    lm_good: int = 0
    lm_bad: int = 0
    etag_good: int = 0
    etag_bad: int = 0

    @property
    def last_modified(self) -> bool:
        """Whether Last-Modified is trusted."""
        return _trusted(self.lm_good, self.lm_bad)

    @property
    def etag(self) -> bool:
        """Whether ETag is trusted."""
        return _trusted(self.etag_good, self.etag_bad)


def usable(validators: Validators, trust: ValidatorTrust, unchanged_in_a_row: int) -> Validators:
    """Return the validators to send: the trusted ones, and none after every tenth consecutive 304.

    >>> usable(Validators('"a"', ""), ValidatorTrust(), 3)
    Validators(etag='"a"', last_modified='')
    >>> usable(Validators('"a"', ""), ValidatorTrust(), 10)
    Validators(etag='', last_modified='')
    >>> usable(Validators('"a"', ""), ValidatorTrust(etag_bad=2), 3)
    Validators(etag='', last_modified='')
    """
    if unchanged_in_a_row > 0 and unchanged_in_a_row % _AUDIT_EVERY == 0:
        return _NONE
    if not (trust.etag_bad or trust.lm_bad):
        return validators
    etag, last_modified = trust.etag, trust.last_modified
    return Validators(validators.etag if etag else "", validators.last_modified if last_modified else "")


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
    """Return the trust in a server after one more response. Only a 200, which has a text, counts.

    A validator that is the same although the text changed counts against the server; so does a Last-Modified equal to
    the time of the response. A validator that stays or changes with the text counts for it. A validator that changed
    while the text did not counts neither way: the markup may have changed.
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
    """Return the seconds since 1970 of an HTTP date in any of its formats; None for anything else.

    >>> http_time("Sun, 06 Nov 1994 08:49:37 GMT"), http_time("Sunday, 06-Nov-94 08:49:37 GMT")
    (784111777.0, 784111777.0)
    >>> http_time("soon")
    """
    from email.utils import parsedate_to_datetime  # lazy: loads ten modules

    if len(date) > 100:
        return None
    try:
        parsed = parsedate_to_datetime(date)
        # An HTTP date is in GMT even without a time zone.
        return (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).timestamp()
    except (ValueError, TypeError, OverflowError, IndexError):
        return None


def _trusted(good: int, bad: int) -> bool:
    return bad < _MIN_STRIKES or bad <= _MAX_WRONG_SHARE * (good + bad)


def _verdict(before: str, after: str, text_changed: bool) -> int:
    """Return +1 if validator and text agree, -1 if they contradict each other, 0 if neither."""
    if not before or not after:
        return 0
    if before == after:
        return -1 if text_changed else 1
    return 1 if text_changed else 0


def _is_now(last_modified: str, server_date: str, answered_at: float) -> bool:
    """Whether Last-Modified is the time of the response, by the server's own clock if it sends a Date."""
    modified = http_time(last_modified)
    answered = http_time(server_date) if server_date else None
    if modified is None:
        return False
    return abs(modified - (answered_at if answered is None else answered)) <= _SAME_SECONDS
