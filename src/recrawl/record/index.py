"""Full-text index of the newest version of every page (tantivy), current within seconds of the visit (spec K8).

A commit per document would cost forty times the indexing itself, so documents are collected and the crawl commits by
time. The index can be rebuilt from store and archive. It does not store texts: for snippets the caller passes the text
from the archive. Storing it here would make the index three times as large and indexing 25 % slower.

`search_words` says what the words of a text are in the index, `search_query` what those of a query may be there, and
`quotes` cuts the snippets.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import tantivy

from recrawl.errors import DamagedIndex, DiskFull, UsageError
from recrawl.record.index_files import damage
from recrawl.record.quotes import quote
from recrawl.record.search_query import QueryWords, QueryWriter
from recrawl.record.search_words import STEMMERS, WORDS, Stems, analyzer, detected, terms, words_by_language

_HEAP = 64_000_000
_COMPLETIONS = 400
"""Terms that begin with the same letters, at most."""
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
    also: tuple[str, ...] = ()
    """The URLs of its copies."""


Same = Callable[[Sequence[int]], Mapping[int, int]]
"""Of pages those that are copies, each with the page that it is a copy of."""


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("page", stored=True, indexed=True, fast=True)
    builder.add_bytes_field("address", stored=True, indexed=False)
    builder.add_bytes_field("heading", stored=True, indexed=False)
    builder.add_text_field("url", tokenizer_name=WORDS)
    builder.add_text_field("site", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", tokenizer_name=WORDS)
    builder.add_text_field("text", tokenizer_name=WORDS)
    builder.add_text_field("stems", tokenizer_name=WORDS, index_option="basic")
    builder.add_float_field("at", stored=True, indexed=True, fast=True)
    builder.add_text_field("language", tokenizer_name="raw", index_option="basic", stored=True)
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
            self._index.register_tokenizer(WORDS, analyzer())
        self._stems = Stems()
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

    def put(self, document: Document) -> str:
        """Add a page or replace it; why it is refused, or an empty string. A refused page is not in the index."""
        try:
            row = _row(document, self._stems)
        except (ValueError, TypeError, OverflowError) as error:
            self.remove(document.page)
            return f"{type(error).__name__}: {error}"
        if document.new:
            self._open_writer()
            self.pending += 1
        else:
            self.remove(document.page)
        with self._failures:
            self._writer.add_document(row)
        return ""

    def remove(self, page: int) -> None:
        """Remove a page."""
        self._open_writer()
        with self._failures:
            self._writer.delete_documents_by_term("page", page)
        self.pending += 1

    def clear(self) -> None:
        """Remove all pages; with the next `commit`, no file of the index has anything of them."""
        self._open_writer()
        with self._failures:
            self._writer.delete_all_documents()
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

    def stored_texts(self) -> Iterator[bytes]:
        """The addresses and titles that it has stored."""
        with self._failures:
            self._index.reload()
            searcher = self._index.searcher()
            found = searcher.search(tantivy.Query.all_query(), limit=max(1, int(searcher.num_docs)), count=False)
            for _, address in found.hits:
                row = searcher.doc(address)
                yield b"\n".join(bytes(it) for name in ("address", "heading") for it in row.get_all(name))

    def knows_words(self, text: str) -> bool:
        """Whether all words of a text are among its words, those of documents that were deleted too."""
        with self._failures:
            self._index.reload()
            searcher, words = self._index.searcher(), terms(text).split()
            return bool(words) and all(
                any(searcher.terms_with_prefix(field, word, limit=1) for field in ("url", "title", "text"))
                for word in words
            )

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
        same: Same | None = None,
    ) -> list[Hit]:
        """The best pages for a query: words, "phrases", +must, -not, title:word, url:word.

        `since` and `until` bound the date that the page states, else the time of its version. `text` returns the text
        of a page at a time, for snippets; without it they are empty. With `same`, only the best of each group of copies
        is found.
        """
        if not query.strip():
            raise UsageError("the query is empty: say what to search for")
        with self._failures:
            self._index.reload()
            searcher = self._index.searcher()
            writer = self._query_writer(searcher)
            parsed = self._parse(query, writer)
            if only := self._only(site, language, since, until):
                must = tantivy.Occur.Must
                parsed = tantivy.Query.boolean_query([(must, parsed), *((must, part) for part in only)])
            rows = (
                _rows(searcher, parsed, limit, offset)
                if same is None
                else _distinct(searcher, parsed, limit, offset, same)
            )
        return [self._hit(score, row, writer.wanted, text) for score, row in rows]

    def _query_writer(self, searcher: tantivy.Searcher) -> QueryWriter:
        """What writes queries for the languages that the index has."""
        if not self.current:
            return QueryWriter((), lambda _field, _prefix: (), self._stems)

        def completions(field: str, prefix: str) -> list[str]:
            return [term for term, _ in searcher.terms_with_prefix(field, prefix, limit=_COMPLETIONS)]

        spoken = [tag for tag in STEMMERS if searcher.doc_freq("stems", f"{tag}:")]
        return QueryWriter(spoken, completions, self._stems)

    def _hit(self, score: float, row: tantivy.Document, wanted: QueryWords, text: Callable[[int, float], str]) -> Hit:
        first = row.get_first
        page, at = int(first("page") or 0), float(first("at") or 0)
        url, title = (_text(first(new)) or _text(first(old)) for new, old in (("address", "url"), ("heading", "title")))
        snippet = quote(text(page, at), wanted, self._stems, row.get_all("language"))
        return Hit(page, url, title, at, score, *snippet)

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

    def _parse(self, query: str, writer: QueryWriter) -> tantivy.Query:
        """Parse a query; a URL that is not a valid query becomes one phrase."""
        phrase = '"' + query.replace('"', " ") + '"'
        for text in (query, phrase) if "://" in query else (query,):
            try:
                return self._index.parse_query(
                    writer.write(text), ["title", "text", "url"], field_boosts={"title": 3.0}
                )
            except ValueError:
                continue
        raise UsageError("this query cannot be read: put words with signs in them in quotes")


def _rows(
    searcher: tantivy.Searcher, query: tantivy.Query, limit: int, offset: int
) -> list[tuple[float, tantivy.Document]]:
    """The best rows for a query, with their scores."""
    found = searcher.search(query, limit=limit, offset=offset, count=False)
    return [(score, searcher.doc(address)) for score, address in found.hits]


def _distinct(
    searcher: tantivy.Searcher, query: tantivy.Query, limit: int, offset: int, same: Same
) -> list[tuple[float, tantivy.Document]]:
    """The same, of each group of copies only the best one."""
    kept: list[tuple[float, tantivy.Document]] = []
    seen: set[int] = set()
    start, size = 0, offset + limit
    while len(kept) < offset + limit and (rows := _rows(searcher, query, size, start)):
        pages = [int(row.get_first("page") or 0) for _, row in rows]
        leaders = same(pages)
        for page, found in zip(pages, rows, strict=True):
            leader = leaders.get(page, page)
            if leader not in seen:
                seen.add(leader)
                kept.append(found)
        start += len(rows)
    return kept[offset : offset + limit]


def refused_documents(documents: Sequence[Document]) -> dict[int, str]:
    """Documents at which an index fails as a whole, by page with the reason.

    They are found by halving, in indexes in memory.
    """
    problem = _failure_with(documents)
    if not problem or len(documents) == 1:
        return {document.page: problem for document in documents if problem}
    middle = len(documents) // 2
    return refused_documents(documents[:middle]) | refused_documents(documents[middle:])


def _failure_with(documents: Sequence[Document]) -> str:
    trial = Index(None)
    try:
        for document in documents:
            trial.put(document)
        trial.commit()
    except DamagedIndex as error:
        return str(error.__cause__).partition("\n")[0]
    return ""


def _row(document: Document, stems: Stems) -> tantivy.Document:
    title, text = terms(document.title), terms(document.text)
    words = f"{title} {text}".split()
    row = tantivy.Document()
    row.add_integer("page", document.page)
    row.add_bytes("address", document.url.encode())
    row.add_bytes("heading", document.title.encode())
    row.add_text("url", terms(unquote(document.url)))
    row.add_text("site", document.site)
    row.add_text("title", title)
    row.add_text("text", text)
    by_language = words_by_language(document.language, document.text, words)
    for spoken, own in by_language.items():
        row.add_text("stems", stems.terms(spoken, own))
    tags = [document.language, *by_language] if document.language or by_language else [detected(document.text)]
    row.add_float("at", document.at)
    row.add_float("date", document.at if document.date is None else document.date)
    # de-at is found by de too, and a page by the languages that its text is in
    for tag in dict.fromkeys((tags[0], tags[0].partition("-")[0], *tags[1:])):
        if tag:
            row.add_text("language", tag)
    return row


def _text(value: Any) -> str:
    """A stored text: of this version as bytes, so that it is not indexed as it stands."""
    return value.decode() if isinstance(value, bytes) else str(value or "")


def _made(folder: Path) -> str:
    folder.mkdir(exist_ok=True)
    return str(folder)
