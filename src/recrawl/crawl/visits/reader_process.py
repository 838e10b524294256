"""The reader process: decode, parse, extract text and links, compare with the stored version, build the WARC records.

Parsing runs in a process of its own because it is most of the work, and because a hostile page can hold a parser for
minutes or crash it: then only this process dies, and the page is recorded as a failure. `TaskReader` and `PageReader`
also read pages from the archive, in the process of the caller.
"""

from __future__ import annotations

import contextlib
import gc
import signal
import sys
import traceback
from array import array
from collections.abc import Sequence
from itertools import compress
from multiprocessing.connection import Connection
from pathlib import Path

from turbohtml import Document

from recrawl import plugins
from recrawl.child_processes import end_with_parent, keep_freed_memory, limit_memory
from recrawl.compare import digest
from recrawl.compare.change_prior import change_priors
from recrawl.compare.common_ends import SplitTexts, split_texts
from recrawl.compare.content.changed_lines import changed_lines
from recrawl.compare.content.judge import content_words
from recrawl.compare.content.lines import Line, version_lines
from recrawl.compare.content.lines import lines as content_lines
from recrawl.compare.divergence import split_distance
from recrawl.compare.noise.filters import Noise
from recrawl.compare.parsing import text
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.parsing.file_types import hypertext
from recrawl.compare.parsing.media_types import HTML, is_json, is_xml
from recrawl.compare.tree.stated import page_fields
from recrawl.compare.unframed import page_texts
from recrawl.crawl.visits.messages import ReaderConfig, Reading, Scan, Task, bounded, pack
from recrawl.crawl.visits.stored_text import StoredText, header, media_type, plain
from recrawl.discover import requisites
from recrawl.discover.dates import parse_date
from recrawl.discover.endless_spaces import MOST_SAID
from recrawl.discover.links import MAX_LINKS, SKIP_SUFFIXES, LinkReader, PageLinks
from recrawl.discover.page_headers import header_links
from recrawl.discover.urls import canonical, key_bytes
from recrawl.errors import Unreadable
from recrawl.learn.copies.absent import shape_of
from recrawl.learn.copies.missing import MOST_WORDS, says_missing
from recrawl.learn.copies.sketch import sketch_of
from recrawl.model import Failure, RequisiteLevel
from recrawl.record import warc
from recrawl.record.packing import read_records

_MAX_KEYS = 100_000
_MAX_FEEDS = 4
"""Feeds of one page that are considered."""


_HEADING = 500
"""Characters of a heading that are read."""
_NO_LINKS = PageLinks([], [], None, follow=True, index=True)


class PageReader:
    """Parses pages into text and links; does not compare them with the stored version."""

    def __init__(self, config: ReaderConfig) -> None:
        self._config = config
        self._links = LinkReader(config.rules, SKIP_SUFFIXES - {"pdf"} if config.pdf else SKIP_SUFFIXES)
        self._keys: dict[str, bytes] = {}
        self.tree: Document | None = None

    def lines(self, noise: Noise) -> list[Line] | None:
        """The lines of the page parsed last, once; None if it was not HTML."""
        tree, self.tree = self.tree, None
        return None if tree is None else content_lines(tree, noise)

    def parse(self, task: Task) -> Reading:
        """Text and links of a page; raises `Unreadable` if the page is not safe to parse."""
        self.tree = None
        content_type, mime = media_type(task.body, task.headers)
        noise = self._config.noises[task.noise]
        said = header_links(task.headers)
        decoded = hypertext(task.body, content_type, mime)
        if decoded is None:
            return self._parse_other(task, content_type, mime)
        tree = self.tree = parse(task.rendered or decoded.text)
        links = self._links.read(tree, task.url, said.refreshes, said.canonical)
        styles, files = _needed(tree, task)  # before the text: noise filters remove elements
        stated = page_fields(tree, header(task.headers, "content-language"))
        title = text.title(tree) or stated.title
        words, own = page_texts(tree, noise)
        of = digest.of_text(words)
        differs = text.visible(parse(decoded.text), noise) != words if task.rendered else None
        count = words.count(" ") + 1
        return Reading(
            task.ticket,
            mime=mime,
            encoding=decoded.encoding,
            title=title,
            language=stated.language,
            description=stated.description,
            image=requisites.absolute(stated.image, task.url) or "" if stated.image else "",
            published=parse_date(stated.published) if stated.published else None,
            updated=parse_date(stated.updated) if stated.updated else None,
            text=words,
            said=text.said(tree, noise, MOST_SAID) if self._is_judged(task) else "",
            digest=of,
            urls="\n".join(links.urls),
            keys=self._keys_of(links.urls),
            follow=links.follow and said.robots.follow,
            searchable=links.index and said.robots.index,
            feeds="\n".join(links.feeds[:_MAX_FEEDS]),
            updates=links.updates,
            render_differs=differs,
            styles=styles,
            files=files,
            sketch=b"" if task.same_noise and of == task.digest else sketch_of(own, title),
            claim=links.canonical or "",
            moved=self._target(said.moved, task.url) or links.moved,
            missing=count < MOST_WORDS and says_missing(title, _heading(tree), count),
            shape=shape_of(words, task.url) if count < MOST_WORDS else b"",
        )

    def _is_judged(self, task: Task) -> bool:
        """Whether what the page says decides whether its URL space is endless: of a first version always."""
        return not task.stored and (self._config.want_text or task.digest is None)

    def _target(self, target: str, url: str) -> str:
        """The canonical URL of where a header sends browsers; empty if that is the page itself."""
        found = canonical(target, url, self._config.rules) if target else None
        return found if found and found != url else ""

    def links(self, body: bytes, headers: tuple[tuple[str, str], ...], url: str) -> set[str]:
        """The links of a stored page, as `parse` finds them."""
        content_type, mime = media_type(body, headers)
        page, targets = hypertext(body, content_type, mime), list(header_links(headers).refreshes)
        if page is None:
            targets = [*targets, *_feed_links(body, url, mime)]
        return set(self._links.read(parse("" if page is None else page.text), url, targets).urls)

    def _parse_other(self, task: Task, content_type: str, mime: str) -> Reading:
        """Text of a page that is not HTML; links are in its headers, and in a feed."""
        noise = self._config.noises[task.noise]
        said = header_links(task.headers)
        words, encoding, title = plain(task.body, content_type, mime, noise)
        of = digest.of_text(words) if encoding else digest.of_payload(task.body)[:16]
        targets = [*said.refreshes, *_feed_links(task.body, task.url, mime)]
        links = self._links.read(parse(""), task.url, targets) if targets else _NO_LINKS
        return Reading(
            task.ticket,
            mime=mime,
            encoding=encoding,
            title=title,
            text=words,
            said=words[:MOST_SAID] if self._is_judged(task) else "",
            digest=of,
            urls="\n".join(links.urls),
            keys=self._keys_of(links.urls),
            follow=said.robots.follow,
            searchable=said.robots.index,
            claim=self._target(said.canonical, task.url),
            moved=self._target(said.moved, task.url),
        )

    def _keys_of(self, urls: list[str]) -> bytes:
        """Keys of URLs; cached, since menus repeat on every page."""
        try:
            return b"".join(map(self._keys.__getitem__, urls))
        except KeyError:
            if len(self._keys) > _MAX_KEYS:
                self._keys.clear()
            for url in urls:
                if url not in self._keys:
                    self._keys[url] = key_bytes(url)
        return b"".join(map(self._keys.__getitem__, urls))


def _feed_links(body: bytes, url: str, mime: str) -> list[str]:
    """The pages that a feed lists; none for any other document."""
    if not (is_xml(mime) or is_json(mime)):
        return []
    from recrawl.discover import sitemaps  # lazy: few pages are feeds, and it loads lxml

    return [entry.url for entry in sitemaps.parse(body, url, max_entries=MAX_LINKS).entries]


class TaskReader:
    """Parses pages and compares them with the stored version."""

    def __init__(self, config: ReaderConfig) -> None:
        self._config = config
        self._pages = PageReader(config)

    def read(self, task: Task) -> Reading:
        """Read a page; a page that is not safe to parse gives a reading with a failure."""
        return self.read_all([task])[0]

    def read_all(self, tasks: Sequence[Task]) -> list[Reading]:
        """Read pages. One step for all of them, then the next: the code of a step then stays in the processor's cache,
        which saves a sixth of the time. Trees are large, so a page is parsed and compared in one step."""
        readings = [self._parse_and_compare(task) for task in tasks]
        pairs = list(zip(tasks, readings, strict=True))
        records = [b"" if reading.failure or task.stored else _records(task) for task, reading in pairs]
        first = [task.prior and not reading.failure for task, reading in pairs]
        asked = [(task.url, reading.text, task.at) for task, reading in compress(pairs, first)]
        priors = iter(change_priors(asked))
        kept = self._config.want_text
        return [
            bounded(
                reading._replace(record=record, prior=next(priors) if new else None, text=reading.text if kept else "")
            )
            for reading, record, new in zip(readings, records, first, strict=True)
        ]

    def _parse_and_compare(self, task: Task) -> Reading:
        try:
            return self._compared(task)
        except Unreadable as error:
            return Reading(task.ticket, failure=Failure.TOO_DEEP.value, detail=str(error))
        except MemoryError:
            self._pages.tree = None
            return self.too_large(task)
        except plugins.ERRORS as error:
            self._pages.tree = None
            return Reading(task.ticket, failure=Failure.PARSE_CRASH.value, detail=_where(error))

    def too_large(self, task: Task) -> Reading:
        """The failure of a page that needs more memory than there is."""
        problem = f"parsing this page needs more than {self._config.memory >> 20:,} MiB of memory"
        return Reading(task.ticket, failure=Failure.PARSE_MEMORY.value, detail=problem)

    def _compared(self, task: Task) -> Reading:
        reading = self._pages.parse(task)
        if task.digest is not None:
            reading = self._compare(task, reading)
        if task.counted and reading.changed and not reading.lines:
            reading = reading._replace(lines=_keys(self._pages.lines(self._config.noises[task.noise]) or []))
        return reading

    def _compare(self, task: Task, reading: Reading) -> Reading:
        level = self._config.levels[task.level]
        same = task.same_noise and reading.digest == task.digest
        if task.before is None or (same and level.kind != "out-link"):
            return reading._replace(changed=False) if same else reading
        try:
            if level.kind == "out-link":
                old_links = self._pages.links(*_stored_page(task.before), task.url)
                new_links = set(filter(None, reading.urls.split("\n"))) - old_links
                reading = reading._replace(out_links=len(new_links))
            if same:
                return reading._replace(changed=False)
            old = self._stored_text(task)
        except (OSError, ValueError, Unreadable):
            return reading._replace(changed=not same)  # its record is damaged: nobody knows by how much it differs
        if old.text == reading.text and reading.encoding:  # without an encoding the bytes count, not the text
            return reading._replace(changed=False)
        texts = split_texts(old.text, reading.text)
        apart, total = split_distance(texts)
        reading = reading._replace(
            divergence=apart / total if apart else 0.0,
            words_apart=apart,
            significant=_significant(texts),
            relevance=level.differs_in_relevance(old.text, reading.text) if level.queries else None,
        )
        return self._compare_lines(task, reading, old)

    def _compare_lines(self, task: Task, reading: Reading, old: StoredText) -> Reading:
        """Add the lines that differ; pages that are not HTML have none."""
        noise = self._config.noises[task.noise]
        if old.tree is None or self._pages.tree is None:
            return reading
        before, after = version_lines(old.tree, self._pages.tree, noise)
        self._pages.tree = None
        return reading._replace(
            changes=changed_lines(before, after),
            words=content_words(before, after),
            lines=_keys(after) if task.counted else b"",
            old_lines=_keys(before) if task.counted else b"",
        )

    def _stored_text(self, task: Task) -> StoredText:
        assert task.before is not None
        body, headers = _stored_page(task.before)
        return StoredText(body, headers, self._config.noises[task.noise])


def _stored_page(before: tuple[str, int, int] | bytes) -> tuple[bytes, tuple[tuple[str, str], ...]]:
    """The body and the headers of a stored version."""
    blob = before if isinstance(before, bytes) else read_records(Path(before[0]), *before[1:])
    _, headers, body = warc.read_shown(blob)
    return body, headers


def _records(task: Task) -> bytes:
    """The WARC records of a page."""
    url = task.answered_url or task.url
    record = warc.response(url, task.at, task.ip, task.status, task.headers, task.body, task.payload, task.request)
    if task.rendered:
        record += warc.conversion(url, task.at, task.rendered.encode("utf-8", "replace"))
    return record


def _needed(tree: Document, task: Task | Scan) -> tuple[str, str]:
    """URLs of the stylesheets and other files that a page needs, one per line."""
    if not task.requisites:
        return "", ""
    url = (task.answered_url if isinstance(task, Task) else "") or task.url
    found = requisites.of_page(tree, url, RequisiteLevel(task.requisites))
    return "\n".join(found.styles), "\n".join(found.files)


def scan(task: Scan) -> Reading:
    """Search a stylesheet, or a stored page, for requisites; what cannot be read needs none."""
    styles, files, headers, body = "", "", task.headers, task.body
    with contextlib.suppress(*plugins.ERRORS, MemoryError, Unreadable):
        if task.stored is not None:
            _, headers, body = warc.read_shown(read_records(Path(task.stored[0]), *task.stored[1:]))
        content_type, mime = media_type(body, headers)
        if task.stored is None:
            found = requisites.of_stylesheet(decode(body, content_type).text, task.url)
            styles, files = "\n".join(found.styles), "\n".join(found.files)
        elif mime.startswith(HTML):
            styles, files = _needed(parse(decode(body, content_type).text), task)
    return bounded(Reading(task.ticket, styles=styles, files=files))


def _read_all(reader: TaskReader, tasks: list[Task]) -> list[Reading]:
    """Read pages; without the memory for a step that all share, each is to be tried alone."""
    try:
        return reader.read_all(tasks)
    except MemoryError:
        return [reader.too_large(task) for task in tasks]


def _where(error: BaseException) -> str:
    """An error that no page should cause, and the line that raised it."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    said = " ".join(str(error).split())[:200]
    return f"the reader failed on this page: {type(error).__name__}: {said} ({Path(last.filename).name}:{last.lineno})"


def _heading(tree: Document) -> str:
    """The text of the first heading."""
    heading = tree.find("h1") or tree.find("h2")
    return " ".join(heading.text[:_HEADING].split()) if heading is not None else ""


def _keys(lines: list[Line]) -> bytes:
    return array("q", {line.key for line in lines}).tobytes()


def _significant(texts: SplitTexts) -> bool:
    """The chi-squared test, imported with the first change: a first crawl has none."""
    from recrawl.compare.significance import split_significant  # lazy: few sites need it

    return bool(split_significant(texts))


def main() -> None:
    """The process: its arguments are the number of its end of the connection, and the parent."""
    end_with_parent(int(sys.argv[2]))
    read_tasks(Connection(int(sys.argv[1])))


def read_tasks(connection: Connection) -> None:
    """Read the tasks from the parent's connection until it closes."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the parent decides when to stop
    keep_freed_memory()
    gc.set_threshold(50_000, 20, 20)  # pages create many objects but no reference cycles
    with connection, contextlib.suppress(EOFError, OSError):
        config: ReaderConfig = connection.recv()
        limit_memory(config.memory)
        reader = TaskReader(config)
        while True:  # recv raises EOFError when the parent has closed its end
            tasks: list[Task | Scan] = connection.recv()
            signal.setitimer(signal.ITIMER_REAL, config.deadline)  # SIGALRM ends the process, whatever it is doing
            pages = iter(_read_all(reader, [task for task in tasks if isinstance(task, Task)]))
            readings = [scan(task) if isinstance(task, Scan) else next(pages) for task in tasks]
            signal.setitimer(signal.ITIMER_REAL, 0.0)
            connection.send_bytes(pack(readings))


if __name__ == "__main__":
    main()
