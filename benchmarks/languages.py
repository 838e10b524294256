"""Search by language, before and after words of every language were known: `python -m benchmarks.languages`.

The texts are the messages of Django and Sphinx in the languages into which they are translated (BSD licence), one page
each; install them beside recrawl with `pip install django sphinx simplemma`. The queries are words of these texts:

    written     a word as it stands; pages with that word are relevant
    folded      in capitals, without accents and vowel marks; pages with a word that folds to the same are relevant
    inflected   a word that the texts have in several forms; pages with any form of it are relevant. Forms belong
                together if simplemma, a lemmatizer by dictionaries, says so

Words are told apart by `jieba` (Chinese), `janome` (Japanese) and `pythainlp` (Thai) if they are installed, in other
scripts without spaces by ICU (`icu4py`); without them such a language is left out. "Before" is an index with tantivy's
default analyzer. Recall and precision are means over the queries.

`python -m benchmarks.languages --archive FILE...` measures what the index costs on archives: CPU time and size per page
before and after, and the time in which a reader process reads such a page.

`python -m benchmarks.languages --encodings` measures how often the encoding of a page is recognized that states none:
pages of 3 and of 25 messages, in the encodings that pages of their language were written in before UTF-8.
"""

from __future__ import annotations

import argparse
import gettext
import importlib
import random
import re
import tempfile
import time
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import tantivy

from recrawl.compare.noise.filters import NO_NOISE
from recrawl.compare.parsing.encoding import decode
from recrawl.crawl.visits.messages import ReaderConfig, Task
from recrawl.crawl.visits.reader_process import PageReader
from recrawl.discover.urls import UrlRules
from recrawl.errors import UsageError
from recrawl.record.index import Document, Index

_QUERIES = 120
_LEAST_PAGES = 60
_LEAST_WORD = 3
_MARKUP = re.compile(r"%(?:\(\w+\))?[-#0 +]*\d*(?:\.\d+)?[a-zA-Z]|\{[^}]*\}|<[^>]+>|&\w+;|[%#&]")
_WORD = re.compile(r"\w+")
_SPACELESS = ("zh", "ja", "th", "km", "lo", "my")
_LIMIT = 2_000
_PAGES = 500
_ROUNDS = 3

_ENCODINGS = {
    "ar": "windows-1256 iso-8859-6", "bg": "windows-1251 koi8-r", "cs": "windows-1250 iso-8859-2", "da": "windows-1252",
    "de": "windows-1252", "el": "windows-1253 iso-8859-7", "es": "windows-1252", "et": "windows-1257",
    "fi": "windows-1252", "fr": "windows-1252", "he": "windows-1255", "hr": "windows-1250",
    "hu": "windows-1250 iso-8859-2", "is": "windows-1252", "it": "windows-1252", "ja": "cp932 euc-jp", "ko": "cp949",
    "lt": "windows-1257", "lv": "windows-1257", "nb": "windows-1252", "nl": "windows-1252",
    "pl": "windows-1250 iso-8859-2", "pt": "windows-1252", "ro": "windows-1250 iso-8859-2",
    "ru": "windows-1251 koi8-r iso-8859-5 ibm866", "sk": "windows-1250", "sl": "windows-1250", "sr": "windows-1251",
    "sv": "windows-1252", "th": "cp874", "tr": "windows-1254", "uk": "windows-1251 koi8-u", "vi": "windows-1258",
    "zh_Hans": "gb18030", "zh_Hant": "big5",
}  # fmt: skip
"""Python's names of the encodings before UTF-8, by language."""
_MESSAGES_OF_A_PAGE = (3, 25)
_PAGES_OF_AN_ENCODING = 12

Words = Callable[[str], list[str]]


class Before:
    """An index with the default analyzer."""

    def __init__(self, folder: Path | None = None) -> None:
        builder = tantivy.SchemaBuilder().add_integer_field("page", stored=True).add_text_field("text")
        self._index = tantivy.Index(builder.build(), path=None if folder is None else str(folder))

    def fill(self, texts: list[str], _language: str) -> None:
        writer = self._index.writer(heap_size=50_000_000, num_threads=1)
        for page, text in enumerate(texts):
            row = tantivy.Document(text=text)
            row.add_integer("page", page)
            writer.add_document(row)
        writer.commit()
        writer.wait_merging_threads()
        self._index.reload()

    def close(self) -> None:
        """Nothing is open."""

    def find(self, query: str) -> set[int]:
        try:
            parsed = self._index.parse_query(query, ["text"])
        except ValueError:
            return set()
        searcher = self._index.searcher()
        return {int(searcher.doc(at)["page"][0]) for _, at in searcher.search(parsed, limit=_LIMIT).hits}


class After:
    """recrawl's index."""

    def __init__(self, folder: Path | None = None) -> None:
        self._index = Index(folder)

    def fill(self, texts: list[str], language: str) -> None:
        for page, text in enumerate(texts):
            url = f"https://a.example/{page}"
            self._index.put(Document(page, url, "https://a.example", "", text, 1.0, new=True, language=language))
        self._index.commit()

    def close(self) -> None:
        """Wait for merges."""
        self._index.close()

    def find(self, query: str) -> set[int]:
        try:
            return {hit.page for hit in self._index.search(query, limit=_LIMIT)}
        except UsageError:
            return set()


def messages(language: str) -> list[str]:
    """The translated messages of Django and Sphinx in a language, without placeholders and markup."""
    found = set()
    for package in ("django", "sphinx"):
        folder = Path(str(importlib.import_module(package).__file__)).parent
        for path in folder.glob(f"**/locale/{language}/LC_MESSAGES/*.mo"):
            with path.open("rb") as file:
                catalog: dict[Any, str] = gettext.GNUTranslations(file)._catalog  # type: ignore[attr-defined]
            found |= {
                " ".join(_MARKUP.sub(" ", text).split())
                for key, text in catalog.items()
                if key and text and key != text
            }
    return sorted(text for text in found if any(map(str.isalpha, text)))


def languages() -> list[str]:
    """The languages of the messages."""
    folder = Path(str(importlib.import_module("django").__file__)).parent
    return sorted(path.name for path in (folder / "conf" / "locale").iterdir() if path.is_dir())


def splitter(language: str) -> Words | None:
    """What splits a text into words, other than recrawl; None without one for this language."""
    if language not in _SPACELESS:
        return _spaced
    try:
        if language == "zh":
            jieba = importlib.import_module("jieba")
            jieba.setLogLevel(60)
            return lambda text: list(jieba.cut(text))
        if language == "ja":
            janome = importlib.import_module("janome.tokenizer").Tokenizer()
            return lambda text: [token.surface for token in janome.tokenize(text)]
        if language == "th":
            thai = importlib.import_module("pythainlp")
            return lambda text: list(thai.word_tokenize(text, engine="newmm"))
        icu = importlib.import_module("icu4py.breakers")
    except ImportError:
        return None
    return lambda text: list(icu.WordBreaker(text, language))


def _spaced(text: str) -> list[str]:
    """Runs of letters, digits and their marks."""
    marked = (char if unicodedata.category(char)[0] in "LNM" or char in "\u200c\u200d" else " " for char in text)
    return "".join(marked).split()


def folded(word: str) -> str:
    """A word in lower case without the marks that people leave out when they search."""
    word = word.casefold().replace("ı", "i").replace("ё", "е").replace("\u0307", "")
    found = []
    for letter in word:
        name = unicodedata.name(letter, "")
        if name.startswith(("LATIN", "GREEK")):
            found += (c for c in unicodedata.normalize("NFKD", letter) if not unicodedata.combining(c))
        elif not (unicodedata.combining(letter) and name.startswith(("COMBINING", "ARABIC", "HEBREW"))):
            found.append(letter)
    return "".join(found)


def kinds(texts: list[str], language: str, split: Words) -> Iterator[tuple[str, list[tuple[str, set[int]]]]]:
    """The queries of each kind, with the relevant pages."""
    pages: dict[str, set[int]] = defaultdict(set)
    for page, text in enumerate(texts):
        for word in split(text):
            if len(word) >= (2 if language in _SPACELESS else _LEAST_WORD) and word[0].isalpha():
                pages[word.casefold()].add(page)
    chosen = sorted(pages)
    random.Random(7).shuffle(chosen)
    yield "written", [(word, pages[word]) for word in chosen[:_QUERIES]]
    same: dict[str, set[int]] = defaultdict(set)
    for word, found in pages.items():
        same[folded(word)] |= found
    marked = [word for word in chosen if folded(word) != word] or chosen
    yield "folded", [(folded(word).upper(), same[folded(word)]) for word in marked[:_QUERIES]]
    if language in _SPACELESS or not _lemmatized(language):
        return
    lemmatize = importlib.import_module("simplemma").lemmatize
    forms: dict[str, list[str]] = defaultdict(list)
    for word in chosen:
        forms[lemmatize(word, lang=language).casefold()].append(word)
    several = [group for group in forms.values() if len(group) > 1]
    yield "inflected", [(group[0], set().union(*(pages[word] for word in group))) for group in several[:_QUERIES]]


def _lemmatized(language: str) -> bool:
    try:
        importlib.import_module("simplemma").lemmatize("a", lang=language)
    except (ImportError, ValueError):
        return False
    return True


def measures(index: Before | After, queries: list[tuple[str, set[int]]]) -> tuple[float, float]:
    """Mean recall, and mean precision of the queries that find something."""
    recalls, precisions = [], []
    for query, relevant in queries:
        found = index.find(query)
        recalls.append(len(found & relevant) / len(relevant))
        if found:
            precisions.append(len(found & relevant) / len(found))
    return sum(recalls) / max(1, len(recalls)), sum(precisions) / max(1, len(precisions))


def cost(index: Before | After, folder: Path, texts: list[str]) -> tuple[float, float]:
    """CPU microseconds and bytes per page of an index on disk, its commit included."""
    begun = time.process_time()
    index.fill(texts, "en")
    index.close()
    spent = time.process_time() - begun
    size = sum(file.stat().st_size for file in folder.iterdir())
    return spent / len(texts) * 1e6, size / len(texts)


def costs(archive: Path) -> list[str]:
    """The row of an archive."""
    bodies: dict[str, bytes] = {}
    for batch in pyarrow.parquet.ParquetFile(archive).iter_batches(500, columns=["url", "html"]):
        for row in batch.to_pylist():
            if row["html"]:
                bodies.setdefault(row["url"], row["html"])
        if len(bodies) >= _PAGES:
            break
    reader = PageReader(ReaderConfig(UrlRules(), (NO_NOISE,)))
    headers = (("Content-Type", "text/html"),)
    tasks = [
        Task(n, url, 0.0, "", 200, headers, b"", body, b"", 0, None, None, same_noise=True)
        for n, (url, body) in enumerate(bodies.items())
    ][:_PAGES]
    begun = time.process_time()
    texts = [reader.parse(task).text for task in tasks]
    read = (time.process_time() - begun) / len(texts) * 1e6
    rounds: dict[type[Before | After], list[tuple[float, float]]] = {Before: [], After: []}
    for _ in range(_ROUNDS):
        for kind, found in rounds.items():
            with tempfile.TemporaryDirectory() as folder:
                found.append(cost(kind(Path(folder)), Path(folder), texts))
    (before, small), (after, large) = min(rounds[Before]), min(rounds[After])
    letters = sum(map(len, texts)) / len(texts)
    return [archive.stem, f"{len(texts)}", f"{letters:,.0f}", f"{read:,.0f}", f"{before:,.0f}", f"{after:,.0f}",
            f"{(read + after) / (read + before):.2f}", f"{small:,.0f}", f"{large:,.0f}"]  # fmt: skip


def recognized() -> Iterator[tuple[str, str, int, int]]:
    """Language, encoding, pages that state none and were read as they were written, and all pages."""
    chooser = random.Random(0)
    for language, encodings in _ENCODINGS.items():
        texts = messages(language)
        for encoding in encodings.split():
            right = pages = 0
            for size in _MESSAGES_OF_A_PAGE:
                for _ in range(_PAGES_OF_AN_ENCODING):
                    lines = chooser.sample(texts, size)
                    written = "".join(f"<p>{line}</p>" for line in lines)
                    if language == "vi":
                        written = unicodedata.normalize("NFD", written)
                    body = written.encode(encoding, "ignore")
                    if not body.isascii():
                        pages += 1
                        right += decode(body, "text/html").text == body.decode(encoding)
            yield language, encoding, right, pages


def main() -> None:
    """Print a row for each language or archive."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("languages", nargs="*", help="language codes of Django; all by default")
    parser.add_argument("--archive", nargs="+", type=Path, default=[], help="measure the cost on archives (Parquet)")
    parser.add_argument("--encodings", action="store_true", help="measure how often an encoding is recognized")
    given = parser.parse_args()
    if given.encodings:
        rows = list(recognized())
        print("| language | encoding | recognized | pages |\n|---|---|--:|--:|")
        print("\n".join(f"| {language} | {name} | {right} | {pages} |" for language, name, right, pages in rows))
        print(f"| all | | {sum(row[2] for row in rows)} | {sum(row[3] for row in rows)} |")
        return
    asked = given.languages
    if given.archive:
        heads = [
            "archive",
            "pages",
            "letters a page",
            "reader, µs",
            "index before, µs",
            "after, µs",
            "reader and index",
        ]
        print("| " + " | ".join([*heads, "bytes before", "after"]) + " |\n|---" + "|--:" * 8 + "|")
        for path in given.archive:
            print("| " + " | ".join(costs(path)) + " |", flush=True)
        return
    print(
        "| language | pages | "
        + " | ".join(f"{kind}: before | after" for kind in ("written", "folded", "inflected"))
        + " |"
    )
    print("|---|--:|" + "--:|" * 6)
    sums: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for name in asked or languages():
        language = "no" if name in ("nb", "nn") else name.partition("_")[0]
        texts, split = messages(name), splitter(language)
        if len(texts) < _LEAST_PAGES or split is None:
            continue
        before, after = Before(), After()
        before.fill(texts, language)
        after.fill(texts, language)
        cells = []
        for kind, queries in kinds(texts, {"no": "nb"}.get(language, language), split):
            for label, index in (("before", before), ("after", after)):
                found = measures(index, queries)
                sums[kind, label].append(found)
                cells.append("{:.2f} / {:.2f}".format(*found))
        cells += ["–"] * (6 - len(cells))
        print(f"| {name} | {len(texts)} | " + " | ".join(cells) + " |", flush=True)
    cells = []
    for kind in ("written", "folded", "inflected"):
        for label in ("before", "after"):
            found = sums[kind, label]
            cells.append(" / ".join(f"{sum(v[i] for v in found) / max(1, len(found)):.2f}" for i in (0, 1)))
    print(f"| mean of {len(sums['written', 'after'])} | | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
