"""The kinds of sinks by name, and their secrets.

A secret (a token, a password) is referred to in the settings, never written there: see `secrets.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from recrawl import plugins
from recrawl.errors import UnknownName, UsageError
from recrawl.repository.sinks.chunk_lines import ChunkLines
from recrawl.repository.sinks.markdown_files import MarkdownFiles, documents
from recrawl.repository.sinks.opensearch import OpenSearch
from recrawl.repository.sinks.postgres import Postgres
from recrawl.repository.sinks.protocol import Sink
from recrawl.repository.sinks.webhook import Webhook
from recrawl.secrets import has_reference, reveal
from recrawl.settings import SinkRule, size

if TYPE_CHECKING:
    from recrawl.repository.repository import Repository

Factory = Callable[[str, str, "Repository"], Sink]
"""Makes a sink from its target, its secret and the repository."""


def _opensearch(target: str, secret: str, repo: Repository) -> Sink:
    return OpenSearch(target, secret, repo.settings, repo.now)


def _webhook(target: str, secret: str, repo: Repository) -> Sink:
    return Webhook(target, secret, repo.settings, repo.now)


def _postgres(target: str, secret: str, _: Repository) -> Sink:
    return Postgres(target, secret)


def _markdown(target: str, _: str, repo: Repository) -> Sink:
    return MarkdownFiles(repo.folder / target, documents(repo))


def _chunks(target: str, _: str, repo: Repository) -> Sink:
    return ChunkLines(repo.folder / target, repo)


KINDS: dict[str, Factory] = {
    "opensearch": _opensearch,
    "webhook": _webhook,
    "postgres": _postgres,
    "markdown": _markdown,
    "chunks": _chunks,
}
_MAX_BODY = {"webhook": 1e6, "opensearch": 1e7}
"""The limit of a body, where the rule has none."""
_SCHEMES = {
    "opensearch": ("http", "https"),
    "webhook": ("http", "https"),
    "postgres": ("postgresql", "postgres"),
}


def check_sink(rule: SinkRule) -> None:
    """Raise `UsageError` for a sink that cannot work."""
    factory_of(rule.kind)
    max_body(rule)
    if rule.secret and not has_reference(rule.secret):
        raise UsageError(
            "give the secret by reference: '${NAME}' for an environment variable, '${file:PATH}' for a file"
        )
    schemes = _SCHEMES.get(rule.kind, ())
    parts = urlsplit(rule.target)
    if schemes and (parts.scheme not in schemes or not parts.hostname):
        raise UsageError(f"invalid target '{rule.target}' of a sink '{rule.kind}'; use {schemes[-1]}://host/...")
    if schemes and parts.password:
        raise UsageError("leave the password out of the target; refer to it with --secret")


def max_body(rule: SinkRule) -> float:
    """Bytes of a body; 0 is no limit."""
    return size(rule.max_body) if rule.max_body else _MAX_BODY.get(rule.kind, 0.0)


def factory_of(kind: str) -> Factory:
    """The function that makes sinks of a kind: ours, or that of a plug-in."""
    factory: Factory | None = KINDS.get(kind) or plugins.load("sinks", kind)
    if factory is None:
        raise UnknownName("kind of sink", kind, [*KINDS, *plugins.names("sinks")])
    return factory


def make_sink(rule: SinkRule, repo: Repository) -> Sink:
    """Open a sink."""
    check_sink(rule)
    return factory_of(rule.kind)(rule.target, reveal(rule.secret, f"the sink '{rule.name}'"), repo)
