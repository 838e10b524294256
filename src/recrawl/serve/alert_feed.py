"""/feed.atom: the updates found by alert rules, as an Atom feed (RFC 4287)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from recrawl.repository.alerts.outbox import Outbox
from recrawl.serve.context import Context

_ENTRIES = 100


def routes(context: Context) -> list[Route]:
    """/feed.atom"""

    async def feed(request: Request) -> Response:
        base = str(request.base_url)
        text = await run_in_threadpool(_feed, context, base)
        return Response(text.encode("utf-8", "replace"), media_type="application/atom+xml")

    return [Route("/feed.atom", feed, methods=["GET"])]


def _feed(context: Context, base: str) -> str:
    with context.reading() as repository:
        rows = [row for row in Outbox(repository).newest(2 * _ENTRIES) if row["state"] in ("waiting", "sent")]
    newest = rows[0]["created"] if rows else 0.0
    entries = "".join(_entry(row, base) for row in rows[:_ENTRIES])
    return (
        '<?xml version="1.0" encoding="utf-8"?><feed xmlns="http://www.w3.org/2005/Atom"><title>recrawl</title>'
        f"<id>{escape(base)}feed.atom</id><link rel='self' href={quoteattr(base + 'feed.atom')}/>"
        f"<updated>{_stamp(newest)}</updated><author><name>recrawl</name></author>{entries}</feed>"
    )


def _entry(row: dict[str, Any], base: str) -> str:
    body = row["body"]
    title = f"{body['outcome']}: {body['title'] or body['url']}"
    return (
        f"<entry><id>{_clean(base)}alerts/{row['id']}</id><title>{_clean(title)}</title>"
        f"<link href={quoteattr(_legal(body['url']))}/><updated>{_stamp(row['created'])}</updated>"
        f"<category term={quoteattr(_legal(row['alert']))}/><summary>{_clean(body['quote'])}</summary></entry>"
    )


def _clean(text: str) -> str:
    return escape(_legal(text))


def _legal(text: str) -> str:
    """Remove characters that XML forbids."""
    return "".join(
        c
        for c in text
        if c in "\t\n\r" or 0x20 <= ord(c) <= 0xD7FF or (ord(c) >= 0xE000 and ord(c) & 0xFFFF not in (0xFFFE, 0xFFFF))
    )


def _stamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
