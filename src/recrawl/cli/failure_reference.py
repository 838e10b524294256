"""The page docs/reference/failures.md: failures of visits, damage to files, killed processes."""

from __future__ import annotations

from recrawl.cli.markdown import table
from recrawl.model import Failure
from recrawl.repository.results.failures import FAILURES

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
    (
        "a command is asked to stop (Ctrl-C, SIGTERM)",
        "it ends in order; exit code 130 or 143; 0 if all was done, and of `run` and `serve`",
        "",
    ),
    ("a command is killed", "the next one continues; nothing is lost or doubled", "nothing to do"),
    ("a reader process is killed", "`parse-crash` for its page; a new process takes over", "nothing to do"),
)
"""What happens to the files, what recrawl answers, and what to do."""

_KILLS = """`python -m benchmarks.kills --count 1000` kills (SIGKILL) `crawl`, `cycle`, `import`, `noise`, `serve`,
`export` and `check` at random moments: the command, the processes it has started, or both. After each kill it runs
`recrawl check`, compares versions and visits with those recorded before, runs the command again to its end, and
compares the repository with one that was never disturbed. With `--signal TERM` it asks the command to stop instead.
`python -m benchmarks.disk_full` does the same on disks that fill up.
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
