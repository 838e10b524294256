"""Stored pages as downloads.

Stored pages are untrusted, so they are sent as attachments of a generic type, and with a Content-Security-Policy that
disables scripts and resources in case a browser renders them anyway.
"""

from __future__ import annotations

import re

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from recrawl.repository.reports import pages as reading
from recrawl.repository.reports.pages import StoredVersion
from recrawl.serve.context import Context

SANDBOX = "default-src 'none'; sandbox; frame-ancestors 'none'"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


async def download(context: Context, request: Request, url: str, version: int | None) -> Response:
    """Return a version of a page as a download."""
    del request
    found, row, body = await run_in_threadpool(_read, context, url, version)
    return attachment(found, row, body)


def attachment(url: str, row: StoredVersion, body: bytes, **headers: str) -> Response:
    """Return a stored body as an attachment."""
    return Response(
        body,
        headers={
            "content-disposition": f'attachment; filename="{file_name(url, row)}"',
            "content-security-policy": SANDBOX,
            "x-original-content-type": row.mime if row.mime.isascii() and row.mime.isprintable() else "",
            **headers,
        },
        media_type="application/octet-stream",
    )


def picture_response(picture: bytes) -> Response:
    """Return a screenshot; our own browser has made it, so it may be shown."""
    headers = {"content-security-policy": SANDBOX, "cache-control": "private, max-age=600"}
    return Response(picture, headers=headers, media_type="image/png")


def file_name(url: str, row: StoredVersion) -> str:
    """Return a file name that is safe on every system.

    >>> row = StoredVersion(7, 0, 0.0, 1, None, None, 0, 1, 0, 0, 0, 0, b"", b"", "", "text/html", "")
    >>> file_name('https://h.example/a/../"b".html?x=<script>', row)
    'h.example-a-..-b-.html-x-script-7.txt'
    """
    words = _UNSAFE.sub("-", url.partition("://")[2]).strip("-.")
    return f"{words[:100]}-{row.id}.txt"


def _read(context: Context, url: str, version: int | None) -> tuple[str, StoredVersion, bytes]:
    with context.reading() as repository:
        known = reading.find(repository, url)
        row = reading.version(repository, known["id"], version)
        return known["url"], row, reading.body_of(repository, row)
