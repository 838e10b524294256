"""Check what a repository says against its WARC files alone: every stored version is read again from its record.

Digests, titles, which versions changed and what a search finds are computed anew and compared with the database and the
index. That the records are sound, and that their bodies have the digests of the versions, `recrawl.record.check` tells.

A text digest depends on the noise filter that was in use. Where the filter of a site is another one today, versions
that were made with an earlier one differ without being wrong; they are counted in a note.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

from recrawl.compare.noise.filters import NO_NOISE
from recrawl.crawl.options import CrawlOptions
from recrawl.crawl.visits.messages import Reading
from recrawl.crawl.visits.reread import VersionToRead, reread
from recrawl.crawl.visits.servers import noise_table
from recrawl.errors import DamagedIndex
from recrawl.model import Outcome
from recrawl.record.check import Findings
from recrawl.record.index import Document, Index
from recrawl.record.rows import VersionRow
from recrawl.record.storage import Storage
from recrawl.record.warc import warc_date
from recrawl.words import words

_WORDS = 2
"""Words of each page that are searched for: its longest."""
_MOST_WORDS = 5000
"""Words that are searched for in all."""
_LONGEST_WORD = 40
_NAMED = 20
"""Problems of one kind that are named one by one."""


class _Truth:
    """The pages under way: versions that were sent to the readers, and what came back."""

    def __init__(self, storage: Storage, options: CrawlOptions, findings: Findings, scratch: Path) -> None:
        self._storage, self._options, self._findings = storage, options, findings
        self._origins = {row.id: row.origin for row in storage.store.sites.all()}
        self._noises = noise_table(options)
        self._versions: dict[int, list[VersionRow]] = {}
        self._readings: dict[int, dict[int, Reading]] = {}
        self._page_of: dict[int, int] = {}
        self._indexed = dict(storage.index.pages()) if options.index and (storage.folder / "index").is_dir() else {}
        self._told: dict[str, int] = {}
        self._compared: set[int] = set()
        """Pages whose indexed version is in the index of what the records say."""
        self.index = Index(scratch)
        self.words: dict[str, str] = {}
        """Words to search for, with the URL of a page that has each."""
        self.other_noise = 0

    def all_versions(self, go_on: Callable[[], None]) -> Iterator[VersionToRead]:
        """Every version that can be read; the ticket of its reading is its own number."""
        store = self._storage.store
        for page in range(store.next_id("pages")):
            go_on()
            rows = [row for row in store.versions.of_page(page) if row.length and not row.rendered]
            if not rows:
                continue
            url, site, *_ = store.pages.get(page)
            noise = self._noises.index(self._options.noise(self._origins[site]))
            self._versions[page], self._readings[page] = rows, {}
            for row in rows:
                self._page_of[row.id] = page
                yield VersionToRead(row._replace(page=row.id), url, noise)

    def returned(self, reading: Reading) -> None:
        """A version was read; a page is compared when all of its versions were."""
        page = self._page_of.pop(reading.ticket)
        readings = self._readings[page]
        readings[reading.ticket] = reading._replace(keys=b"", urls="")
        if len(readings) == len(self._versions[page]):
            self._compare(page, self._versions.pop(page), self._readings.pop(page))

    def rest(self) -> None:
        """Compare the pages of which a record could not be read."""
        for page, rows in list(self._versions.items()):
            readings = self._readings[page]
            self._compare(page, [row for row in rows if row.id in readings], readings)

    def _compare(self, page: int, rows: list[VersionRow], readings: dict[int, Reading]) -> None:
        url, site, _, _, state = self._storage.store.pages.get(page)
        noise = self._options.noise(self._origins[site])
        same = set()
        for row in rows:
            reading, name = readings[row.id], f"the version of {url} of {warc_date(row.at)}"
            if reading.failure:
                self._tell("archive", "failure", f"{name} cannot be read again: {reading.failure} {reading.detail}")
                continue
            if reading.digest == row.digest:
                same.add(row.id)
            elif state.noise == noise.fingerprint and (noise == NO_NOISE or row.id == state.version):
                self._tell("database", "digest", f"{name} has another text than its record")
            else:
                self.other_noise += 1
            if reading.title != row.title:
                self._tell("database", "title", f"{name} has another title than its record")
            if self._indexed.get(page) == row.at and row.id in same:
                self._index(page, url, self._origins[site], row, reading)
        gone = self._gone(page) if len(rows) > 1 else []
        for before, after in pairwise(rows):
            if before.id not in same or after.id not in same:
                continue
            returned = any(before.at < at <= after.at for at in gone)
            if not returned and (before.digest != after.digest) != bool(after.changed):
                said = "changed" if after.changed else "unchanged"
                self._tell("database", "changed", f"{url} of {warc_date(after.at)} is recorded as {said}; it is not")

    def _gone(self, page: int) -> list[float]:
        visits = self._storage.store.visits.history([page], self._storage.store.next_id("visits"))
        return [
            float(at) for at, outcome in zip(visits["at"], visits["outcome"], strict=True) if outcome == Outcome.GONE
        ]

    def _index(self, page: int, url: str, origin: str, row: VersionRow, reading: Reading) -> None:
        """Put the page into the index of what the records say, and choose words of it."""
        self._compared.add(page)
        date = row.published if row.updated is None else row.updated
        self.index.put(
            Document(page, url, origin, reading.title, reading.text, row.at, new=True, language=row.language, date=date)
        )
        plain = {word for word in words(reading.text) if word.isalpha() and len(word) <= _LONGEST_WORD}
        for word in sorted(plain, key=lambda it: (-len(it), it))[:_WORDS]:
            if len(self.words) < _MOST_WORDS:
                self.words.setdefault(word, url)

    def _tell(self, part: str, kind: str, what: str) -> None:
        self._told[kind] = self._told.get(kind, 0) + 1
        if self._told[kind] <= _NAMED:
            self._findings.add(part, what)

    def search(self) -> None:
        """Compare what is found for the chosen words in the index and in that of what the records say."""
        self.index.commit()
        most = max(1, len(self.index), len(self._storage.index))
        for word, url in self.words.items():
            query = f'"{word}"'
            found = {hit.page for hit in self._storage.index.search(query, limit=most)}
            true = {hit.page for hit in self.index.search(query, limit=most)}
            found &= self._compared
            if found != true:
                which = f"{len(true - found):,} pages too few, {len(found - true):,} too many"
                self._tell("index", "search", f"a search for '{word}' finds {which}, going by the records of {url}")

    def conclude(self) -> None:
        """Note what was not named one by one."""
        for kind, number in self._told.items():
            if number > _NAMED:
                self._findings.notes.append(f"{number - _NAMED:,} more problems of this kind: {kind}")
        if self.other_noise:
            self._findings.notes.append(
                f"{self.other_noise:,} versions were made with other noise filters than today's: their texts differ"
            )


def check_truth(
    storage: Storage, options: CrawlOptions, findings: Findings, go_on: Callable[[], None] = lambda: None
) -> None:
    """Compare versions, changes and search with what the records of the archive say."""
    with tempfile.TemporaryDirectory(prefix="recrawl-") as scratch:
        truth = _Truth(storage, options, findings, Path(scratch) / "index")
        try:
            for reading in reread(storage, options, truth.all_versions(go_on), text=True):
                truth.returned(reading)
            truth.rest()
            if options.index:
                try:
                    truth.search()
                except DamagedIndex as error:
                    findings.add("index", str(error))
            truth.conclude()
        finally:
            truth.index.close()
