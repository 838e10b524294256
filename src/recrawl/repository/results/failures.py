"""Failures of visits in words, for reports and the reference."""

from __future__ import annotations

import re

from recrawl.model import UNREACHABLE, Failure

_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")

FAILURES: dict[Failure, str] = {
    Failure.ADDRESS: "The host resolves to a private, loopback or other internal IP address; see `--allow-private`.",
    Failure.DNS: "The host name could not be resolved.",
    Failure.CONNECT: "The server did not accept a connection.",
    Failure.TLS: "The TLS handshake failed, usually because of the certificate.",
    Failure.TIMEOUT: "Connecting, downloading or a stall exceeded `connect_timeout`, `timeout` or `stall`.",
    Failure.CUT_OFF: "The connection closed before the response was complete.",
    Failure.BAD_RESPONSE: "The response is not valid HTTP.",
    Failure.BAD_ENCODING: "The body could not be decompressed.",
    Failure.TOO_LARGE: "The page is larger than `max_bytes` after decompression.",
    Failure.BAD_URL: "The URL cannot be requested.",
    Failure.REDIRECT_LOOP: "The redirects form a loop.",
    Failure.REDIRECT_LIMIT: "More consecutive redirects than `redirects` allows.",
    Failure.REDIRECT_BAD: "A redirect without a usable URL.",
    Failure.REDIRECT_AWAY: "A redirect to a URL out of scope: another site, or excluded by a rule.",
    Failure.ROBOTS: "robots.txt does not allow the page.",
    Failure.ROBOTS_UNREACHABLE: "robots.txt could not be read (5xx, 429, broken response): no visits to the server.",
    Failure.UNREACHABLE_DNS: "The server's host name could not be resolved when robots.txt was requested.",
    Failure.UNREACHABLE_CONNECT: "The server did not accept a connection when robots.txt was requested.",
    Failure.UNREACHABLE_TLS: "The TLS handshake failed when robots.txt was requested.",
    Failure.UNREACHABLE_TIMEOUT: "The server did not send its robots.txt in time.",
    Failure.HELD_OFF: "The server does not respond, or its Retry-After is longer than `patience`.",
    Failure.LIMIT: "The site has reached its page limit (`--limit`).",
    Failure.CLIENT_ERROR: "The server answered with a 4xx status other than 404, 410 and 429.",
    Failure.SERVER_ERROR: "The server answered with a 5xx status.",
    Failure.RATE_LIMITED: "Status 429 after `retries` retries.",
    Failure.STATUS: "A status that is neither a page nor an error.",
    Failure.MISSING: "Status 404 or 410, not yet confirmed: see [deletions](../guides/deletions.md).",
    Failure.MOVED: "A permanent redirect: the new URL is visited instead.",
    Failure.CONTENT_TYPE: "A content type that is not in `content_types`.",
    Failure.PARSE_TIMEOUT: "Parsing the page took longer than `parse_seconds`.",
    Failure.PARSE_CRASH: "The process that parsed the page crashed.",
    Failure.PARSE_MEMORY: "It takes more memory to parse than a reader may take: 512 MiB and 60 times `max_bytes`.",
    Failure.UNSTORABLE: "The database refused what was found on the page; the pages beside it are recorded.",
    Failure.TOO_DEEP: "Unclosed tags of the page make a tree of more elements than the page has characters.",
    Failure.LOGIN: "The site needs a login, and the login failed or was not kept; the stored version is kept.",
    Failure.SHARED_TEXT: "Many pages of the site suddenly show this same text; the stored version is kept.",
    Failure.INTERNAL: "A bug in recrawl. Please report it.",
}  # fmt: skip
"""Failure to its explanation."""


_SERVER = "Look whether the address opens in a browser; recrawl tries again with the next cycle."
_ADVICE: dict[Failure, str] = {
    Failure.ADDRESS: "If it is a server of your own, allow private addresses for this site; else correct the address.",
    Failure.DNS: "Check how the address is written. If it is right, the name server of this machine does not know it.",
    Failure.CONNECT: "Check the port, and whether the server runs and can be reached from this machine.",
    Failure.TLS: "Try http:// instead of https://, or tell the site's owner that the certificate is wrong.",
    Failure.TIMEOUT: _SERVER,
    Failure.ROBOTS: "The site's robots.txt forbids this page to crawlers, and recrawl obeys: ask its owner.",
    Failure.ROBOTS_UNREACHABLE: "Nothing is requested until robots.txt can be read; it is tried again later.",
    Failure.LOGIN: "Look at the login rule of the site: recrawl access.",
    Failure.MISSING: "Check how the address is written. A page that stays away is listed under Changes as gone.",
    Failure.RATE_LIMITED: "The server asks for fewer requests: set a longer delay for this site.",
    Failure.SERVER_ERROR: _SERVER,
    Failure.CONTENT_TYPE: "Add the type to the setting content_types, if pages of this kind are to be kept.",
    Failure.TOO_LARGE: "Raise the setting max_bytes, if pages of this size are to be kept.",
    Failure.REDIRECT_AWAY: "Add the address to which it redirects.",
}
_LOGIN_STATUS, _FORBIDDEN = 401, 403
_CHALLENGE = "a challenge"


def _met_first(failure: str) -> str:
    """The failure of the page itself, for one that was met when robots.txt was requested."""
    return next((first for first, other in UNREACHABLE.items() if other == failure), failure)


def sentence(failure: str, status: int, detail: str) -> str:
    """What went wrong, in a sentence for who added the site.

    >>> sentence("unreachable-dns", 0, "robots.txt: Could not resolve host: x.invalid")
    'The host name could not be resolved (Could not resolve host: x.invalid).'
    >>> sentence("http-4xx", 401, "HTTP 401")
    'The page needs a login (HTTP 401).'
    """
    if status == _LOGIN_STATUS:
        return f"The page needs a login (HTTP {status})."
    if _CHALLENGE in detail:
        return f"The server wants proof that a browser asks ({detail})."
    if status == _FORBIDDEN:
        return f"The server refuses to show the page (HTTP {status})."
    if failure == Failure.MISSING:
        return f"The page does not exist on the server ({detail})."
    failure = _met_first(failure)
    plain = in_words(failure).partition(": ")[2].partition("; see ")[0].rstrip(".") or failure
    detail = detail.removeprefix("robots.txt: ").rstrip(".")
    return f"{plain} ({detail})." if detail else f"{plain}."


def advice(failure: str, status: int, detail: str, url: str) -> str:
    """What the user can do about a page that cannot be read.

    >>> advice("http-4xx", 401, "HTTP 401", "https://example.org/x")
    'Say how to log in: recrawl access https://example.org/x --user NAME.'
    """
    if status == _LOGIN_STATUS:
        return f"Say how to log in: recrawl access {url} --user NAME."
    if _CHALLENGE in detail:
        return "recrawl does not get around such checks. Ask the site's owner to let your crawler in, by its contact."
    if status == _FORBIDDEN:
        return "The server may want a login (recrawl access) or refuse crawlers: set a contact, or ask its owner."
    first = _met_first(failure)
    return _ADVICE.get(Failure(first), _SERVER) if first in set(Failure) else _SERVER


def in_words(failure: str) -> str:
    """A failure as stored, and what it means.

    >>> in_words("dns")
    'dns: The host name could not be resolved.'
    >>> in_words("not-found")
    "not-found: Status 404 or 410, not yet confirmed: see the guide 'deletions'."
    """
    known = failure in set(Failure)
    if not known:
        return failure
    plain = _LINK.sub(r"the guide '\1'", FAILURES[Failure(failure)]).replace("`", "")
    return f"{failure}: {plain}"
