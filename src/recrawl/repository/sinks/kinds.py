"""The kinds of sinks by name, and their secrets.

A secret (a token, a password) is named in the settings, never written there: it comes from an environment variable or
from a file that only its owner can read.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from recrawl.errors import UnknownName, UsageError
from recrawl.repository.sinks.chunk_lines import ChunkLines
from recrawl.repository.sinks.markdown_files import MarkdownFiles
from recrawl.repository.sinks.opensearch import OpenSearch
from recrawl.repository.sinks.postgres import Postgres
from recrawl.repository.sinks.protocol import Sink
from recrawl.repository.sinks.webhook import Webhook
from recrawl.settings import Sink as SinkRule

if TYPE_CHECKING:
    from recrawl.repository.repository import Repository

Factory = Callable[[str, str, "Repository"], Sink]
"""Makes a sink from its target, its secret and the repository."""


def _opensearch(target: str, secret: str, repo: Repository) -> Sink:
    return OpenSearch(target, secret, repo.settings)


def _webhook(target: str, secret: str, repo: Repository) -> Sink:
    return Webhook(target, secret, repo.settings, repo.now)


def _postgres(target: str, secret: str, _: Repository) -> Sink:
    return Postgres(target, secret)


def _markdown(target: str, _: str, repo: Repository) -> Sink:
    return MarkdownFiles(repo.folder / target)


def _chunks(target: str, _: str, repo: Repository) -> Sink:
    return ChunkLines(repo.folder / target, repo)


KINDS: dict[str, Factory] = {
    "opensearch": _opensearch,
    "webhook": _webhook,
    "postgres": _postgres,
    "markdown": _markdown,
    "chunks": _chunks,
}
_SCHEMES = {
    "opensearch": ("http", "https"),
    "webhook": ("http", "https"),
    "postgres": ("postgresql", "postgres"),
}


def check_sink(rule: SinkRule) -> None:
    """Raise `UsageError` for a sink that cannot work."""
    if rule.kind not in KINDS:
        raise UnknownName("kind of sink", rule.kind, KINDS)
    if rule.secret_env and rule.secret_file:
        raise UsageError("use --secret-env or --secret-file, not both")
    schemes = _SCHEMES.get(rule.kind, ())
    parts = urlsplit(rule.target)
    if schemes and (parts.scheme not in schemes or not parts.hostname):
        raise UsageError(f"invalid target '{rule.target}' of a sink '{rule.kind}'; use {schemes[-1]}://host/...")
    if schemes and parts.password:
        raise UsageError("leave the password out of the target; name it with --secret-env or --secret-file")


def make_sink(rule: SinkRule, repo: Repository) -> Sink:
    """Open a sink."""
    check_sink(rule)
    return KINDS[rule.kind](rule.target, secret_of(rule, repo.folder), repo)


def secret_of(rule: SinkRule, folder: Path) -> str:
    """The secret of a sink; empty if it has none."""
    if rule.secret_env:
        if rule.secret_env not in os.environ:
            raise UsageError(f"the environment variable {rule.secret_env} of the sink '{rule.name}' is not set")
        return os.environ[rule.secret_env]
    if not rule.secret_file:
        return ""
    file = folder / rule.secret_file
    try:
        if file.stat().st_mode & 0o077:
            raise UsageError(f"others can read {file}, which holds a secret; run: chmod 600 {file}")
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise UsageError(f"cannot read the secret file {file}: {error.strerror}") from error
