"""Failures of visits in words, for reports and the reference."""

from __future__ import annotations

import re

from recrawl.model import Failure

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
