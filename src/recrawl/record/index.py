"""Full-text index of the newest version of every page (tantivy), current within seconds of the visit (spec K8).

A commit per document would cost forty times the indexing itself, so documents are collected and the crawl commits by
time. The index can be rebuilt from store and archive. It does not store texts: for snippets the caller passes the text
from the archive. Storing it here would make the index three times as large and indexing 25 % slower.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tantivy

from recrawl.errors import DamagedIndex, DiskFull, UsageError
from recrawl.record.index_files import damage

_HEAP = 64_000_000
_QUOTED = 200
"""Maximum characters of a snippet."""
_EVER = 1e15
"""Later than any time, in seconds."""


@dataclass(frozen=True, slots=True)
class Document:
    """The searchable fields of a page."""

    page: int
    url: str
    site: str
    title: str
    text: str
    at: float
    new: bool = False
    """The page is not in the index yet, so there is nothing to replace."""
    language: str = ""
    """The language tag that the page states, in lower case."""
    date: float | None = None
    """The date that the page states; None if it states none."""


@dataclass(frozen=True, slots=True)
class Hit:
    """A search result; `marks` are the matching ranges of `snippet`."""

    page: int
    url: str
    title: str
    at: float
    score: float
    snippet: str
    marks: tuple[tuple[int, int], ...]


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("page", stored=True, indexed=True, fast=True)
    builder.add_text_field("url", stored=True)
    builder.add_text_field("site", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", stored=True)
    builder.add_text_field("text", stored=False)
    builder.add_float_field("at", stored=True, indexed=True, fast=True)
    builder.add_text_field("language", tokenizer_name="raw", index_option="basic")
    builder.add_float_field("date", stored=False, indexed=True, fast=True)
    return builder.build()


class _Failures:
    """`with failures:` turns errors of tantivy into ours: it knows ValueError alone, and panics on damaged files."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is not None and (issubclass(kind, ValueError) or kind.__name__ == "PanicException"):
            text = str(error).partition("\n")[0]
            if "os error 28" in text:
                raise DiskFull(
                    f"no space left on the disk for the index in {self._folder}: free some space and run the command "
                    "again; it indexes what is missing"
                ) from error
            raise self.damaged(text) from error

    def damaged(self, problem: str) -> DamagedIndex:
        """The error for a damaged index."""
        return DamagedIndex(
            f"the index in {self._folder} is damaged ({problem[:100]}): the next crawl or cycle rebuilds it, "
            "or 'recrawl check --repair' now"
        )


class Index:
    """The index in the folder `index/`; an empty index without a folder."""

    def __init__(self, folder: Path | None) -> None:
        self._failures = _Failures(folder)
        self._mirror: tempfile.TemporaryDirectory[str] | None = None
        problem = damage(folder) if folder is not None and folder.is_dir() else ""
        if problem:
            raise self._failures.damaged(problem)
        if folder is not None and folder.is_dir() and not os.access(folder, os.W_OK):
            folder = self._mirrored(folder)
        with self._failures:
            if folder is not None and tantivy.Index.exists(_made(folder)):
                self._index = tantivy.Index.open(str(folder))  # whatever its schema is: the fields are the same
            else:
                self._index = tantivy.Index(_schema(), path=None if folder is None else _made(folder))
        self._writer: Any = None
        self.pending = 0

    def _mirrored(self, folder: Path) -> Path:
        """A folder with links to the files of an index on a read-only file system: tantivy needs lock files."""
        # A thread of tantivy may still create a lock file while the folder is removed.
        self._mirror = tempfile.TemporaryDirectory(prefix="recrawl-", ignore_cleanup_errors=True)
        for file in folder.absolute().iterdir():
            if not file.name.endswith(".lock"):
                (Path(self._mirror.name) / file.name).symlink_to(file)
        return Path(self._mirror.name)

    @property
    def current(self) -> bool:
        """Whether it has the current schema; an older index can be searched, but should be rebuilt."""
        return bool(self._index.schema == _schema())

    def put(self, document: Document) -> None:
        """Add a page or replace it."""
        if document.new:
            self._open_writer()
            self.pending += 1
        else:
            self.remove(document.page)
        row = tantivy.Document()
        row.add_integer("page", document.page)
        row.add_text("url", document.url)
        row.add_text("site", document.site)
        row.add_text("title", document.title)
        row.add_text("text", document.text)
        row.add_float("at", document.at)
        row.add_float("date", document.at if document.date is None else document.date)
        for tag in {document.language, document.language.partition("-")[0]} - {""}:  # de-at is found by de too
            row.add_text("language", tag)
        with self._failures:
            self._writer.add_document(row)

    def remove(self, page: int) -> None:
        """Remove a page."""
        self._open_writer()
        with self._failures:
            self._writer.delete_documents_by_term("page", page)
        self.pending += 1

    def _open_writer(self) -> None:
        if self._writer is None:
            with self._failures:
                self._writer = self._index.writer(heap_size=_HEAP, num_threads=1)

    def commit(self) -> None:
        """Make additions and removals visible to searches."""
        if self.pending:
            with self._failures:
                self._writer.commit()
            self.pending = 0

    def close(self) -> None:
        """Commit and wait for merges."""
        try:
            self.commit()
            if self._writer is not None:
                with self._failures:
                    self._writer.wait_merging_threads()
        finally:
            self._writer = None
            if self._mirror is not None:
                self._mirror.cleanup()

    def __len__(self) -> int:
        with self._failures:
            self._index.reload()
            return int(self._index.searcher().num_docs)

    def pages(self) -> Iterator[tuple[int, float]]:
        """The number of every page in it and the time of its version, in no order."""
        with self._failures:
            self._index.reload()
            searcher = self._index.searcher()
            found = searcher.search(tantivy.Query.all_query(), limit=max(1, int(searcher.num_docs)), count=False)
            for _, address in found.hits:
                row = searcher.doc(address)
                yield int(row.get_first("page") or 0), float(row.get_first("at") or 0)

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        site: str = "",
        language: str = "",
        offset: int = 0,
        since: float | None = None,
        until: float | None = None,
        text: Callable[[int, float], str] = lambda _page, _at: "",
    ) -> list[Hit]:
        """The best pages for a query: words, "phrases", +must, -not, title:word, url:word.

        `since` and `until` bound the date that the page states, else the time of its version. `text` returns the text
        of a page at a time, for snippets; without it they are empty.
        """
        if not query.strip():
            raise UsageError("the query is empty: say what to search for")
        with self._failures:
            self._index.reload()
            parsed = self._parse(query)
            if only := self._only(site, language, since, until):
                must = tantivy.Occur.Must
                parsed = tantivy.Query.boolean_query([(must, parsed), *((must, part) for part in only)])
            searcher = self._index.searcher()
            found = searcher.search(parsed, limit=limit, offset=offset, count=False)
            snippets = tantivy.SnippetGenerator.create(searcher, parsed, self._index.schema, "text")
            snippets.set_max_num_chars(_QUOTED)
            rows = [(score, searcher.doc(address)) for score, address in found.hits]
        return [_hit(score, row, snippets, text) for score, row in rows]

    def _only(self, site: str, language: str, since: float | None, until: float | None) -> list[tantivy.Query]:
        """Conditions that do not affect the score."""
        if (language or since is not None or until is not None) and not self.current:
            raise UsageError(
                "the index was made by an earlier version, which knows no languages and dates; the next crawl or cycle "
                "makes it anew"
            )
        found = []
        if site:
            found.append(tantivy.Query.term_query(self._index.schema, "site", site))
        if language:
            found.append(tantivy.Query.term_query(self._index.schema, "language", language.lower()))
        if since is not None or until is not None:
            bounds = -_EVER if since is None else since, _EVER if until is None else until
            found.append(tantivy.Query.range_query(self._index.schema, "date", tantivy.FieldType.Float, *bounds))
        return [tantivy.Query.const_score_query(part, 0.0) for part in found]

    def _parse(self, query: str) -> tantivy.Query:
        """Parse a query; a URL that is not a valid query becomes one phrase."""
        phrase = '"' + query.replace('"', " ") + '"'
        for text in (query, phrase) if "://" in query else (query,):
            try:
                return self._index.parse_query(text, ["title", "text", "url"], field_boosts={"title": 3.0})
            except ValueError:
                continue
        raise UsageError("this query cannot be read: put words with signs in them in quotes")


def _made(folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    return str(folder)


def _hit(
    score: float, row: tantivy.Document, snippets: tantivy.SnippetGenerator, text: Callable[[int, float], str]
) -> Hit:
    first = row.get_first
    page, at = int(first("page") or 0), float(first("at") or 0)
    snippet, marks = _quote(text(page, at), snippets)
    return Hit(page, str(first("url")), str(first("title")), at, score, snippet, marks)


def _quote(text: str, snippets: tantivy.SnippetGenerator) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The part of a text that matches the query best, otherwise its beginning; and the matching ranges."""
    words = tantivy.Document()
    words.add_text("text", text)
    snippet = snippets.snippet_from_doc(words)
    quoted = snippet.fragment() or text[:_QUOTED]
    raw = quoted.encode()  # tantivy counts bytes
    marks = tuple(
        (len(raw[: part.start].decode(errors="ignore")), len(raw[: part.end].decode(errors="ignore")))
        for part in snippet.highlighted()
    )
    return quoted, marks
