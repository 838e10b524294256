"""The page docs/reference/failures.md: failures of visits, damage to files, killed processes."""

from __future__ import annotations

from recrawl.cli.markdown import table
from recrawl.model import Failure

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
    Failure.TOO_DEEP: "The page has too deep nesting or too many unclosed tags; parsing it would take minutes.",
    Failure.SHARED_TEXT: "Many pages of the site suddenly show this same text; the stored version is kept.",
    Failure.INTERNAL: "A bug in recrawl. Please report it.",
}  # fmt: skip
"""Failure to its explanation."""

MISBEHAVIOUR = "## Misbehaving servers, and the answer"
"""Heading of the part of the page that the tests write: `python -m tests.misbehaving docs/reference/failures.md`."""

_COMEBACK = """## How pages come back

A failed visit deletes nothing. The next try comes after an hour, then after twice as long each time, up to 30 days.
When many pages of a site fail and one of them answers again, the others that failed for the same reason are visited in
the next cycle. Within a run, pages that failed at their last visit come after all others of their server, and a page
that is refused (429, 503) is retried last: a pause that the server did not ask for becomes longer only as further pages
are refused, so that a few broken pages do not keep the others away.

`shared-text` ends by itself: only the shared text is refused, any other text of the page is recorded. `recrawl status`
and the dashboard name the sites. For pages that are gone or have moved, see
[deletion](../concepts/deletion.md#recovery).
"""

_FILES = (
    ("the index is damaged", "counts as none; `status` says so", "`search` exits with 1; `crawl`, `cycle` rebuild it"),
    ("garbage in the database", "one line; exit code 1", "`check --repair`, or restore a copy"),
    ("a damaged record of the archive", "`show`, `diff` of that version: one line; exit code 1", "`check --repair`"),
    ("a damaged record, while exporting", "the version is left out and listed", "`check --repair`"),
    ("an archive file lost its end", "writing commands: one line; exit code 1", "restore it, or `check --repair`"),
    ("the disk is full", "one line; exit code 1; nothing committed is lost", "free space, run the command again"),
    ("a read-only file system", "all queries work; writing commands: one line; exit code 1", ""),
    ("a command is killed", "the next one continues; nothing is lost or doubled", "nothing to do"),
    ("a reader process is killed", "`parse-crash` for its page; a new process takes over", "nothing to do"),
)
"""What happens to the files, what recrawl answers, and what to do."""

_KILLS = """`python -m benchmarks.kills --count 1000` kills (SIGKILL) `crawl`, `cycle`, `import`, `noise`, `serve`,
`export` and `check` at random moments: the command, the processes it has started, or both. After each kill it runs
`recrawl check`, compares versions and visits with those recorded before, runs the command again to its end, and
compares the repository with one that was never disturbed.
"""
"""How it is shown that nothing is lost."""


def failures() -> str:
    """Every failure with its explanation."""
    return "\n".join(
        [
            "# Failure words\n",
            "A failed visit has one of these reasons. `recrawl log URL --visits`, `recrawl why`, the summary of a run",
            "and the column `failure` of the table `visits` show it. A failure is neither a change nor the lack of",
            "one. The words are stored in databases, so they do not change.\n",
            table(("word", "meaning"), [(f"`{word.value}`", FAILURES[word]) for word in Failure]),
            _COMEBACK,
            "## Files, disks and processes\n",
            "[Damaged files](../guides/crash-and-backup.md#damaged-files) says more about `recrawl check`.\n",
            table(("what happens", "answer", "what to do"), _FILES),
            _KILLS,
        ]
    )
