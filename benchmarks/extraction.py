"""Main content of real pages beside other extractors, and the fit of what judges blocks.

    python -m benchmarks.extraction report PAGES.parquet [--peers]
    python -m benchmarks.extraction markdown PAGES.parquet [--peers]
    python -m benchmarks.extraction dates PAGES.parquet [--peers]
    python -m benchmarks.extraction lines PAGES.parquet
    python -m benchmarks.extraction fit PAGES.parquet

`report` fits on four fifths of the pages and judges the last one, five times over; sites are kept together, so that no
page is judged by what was fitted on its own site. It prints word F1, precision and recall by kind of page (means over
pages), and the CPU time of a page. `fit` fits on all pages and writes `compare/tree/main_content.json`.

`markdown` counts what the content tree of the pages has, and what a reader of the Markdown that is made of it shows,
HTML enabled: headings, code, links and so on, and elements that the Markdown brings in. `dates` compares dates of
publication with those of the column `published`. `lines` counts the pages of which a visit reads other lines than their
tree shows, and prints the CPU time of both.

The file has the columns id, url, type, html and content. Both need lightgbm and rapidfuzz, `--peers` trafilatura,
resiliparse, lxml_html_clean, html2text and htmldate: install them into an environment of their own.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from importlib import import_module
from itertools import accumulate, groupby
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow.parquet as pq
import turbohtml
from markdown_it import MarkdownIt

from recrawl.columns import Floats
from recrawl.compare.content.lines import Line, lines
from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode
from recrawl.compare.tree import main_content
from recrawl.compare.tree.blocks import BlockKind, ContainerKind, ContentBlock, ContentTree
from recrawl.compare.tree.builder import html_tree
from recrawl.compare.tree.documents import parse_html, read_html
from recrawl.compare.tree.fields import fields
from recrawl.compare.tree.main_content import block_features, judged_blocks, main_blocks
from recrawl.compare.tree.renderers import markdown, plain_text, text_lines
from recrawl.lab.extraction import extract

FOLDS = 5
SEED = 1
MODEL = Path(main_content.__file__).with_name("main_content.json")
_WORD = re.compile(r"\w+")
_PARAMETERS = {
    "n_estimators": 160, "learning_rate": 0.07, "num_leaves": 20, "max_depth": 9, "min_child_samples": 30,
    "reg_lambda": 5.0, "max_bin": 63, "subsample": 0.7, "subsample_freq": 1, "colsample_bytree": 0.5,
    "random_state": 0, "n_jobs": 1, "verbose": -1,
}  # fmt: skip


@dataclass
class Sample:
    """A page with its blocks and what is content of them."""

    kind: str
    host: str
    content: str
    texts: list[str]
    words: Floats
    features: Floats
    tree: ContentTree
    share: Floats
    """Of each block's words, the share that is content."""


def agreement(extracted: str, content: str) -> tuple[float, float, float]:
    """Word F1, precision and recall: words as multisets."""
    ours, theirs = (Counter(_WORD.findall(text.lower())) for text in (extracted, content))
    common = (ours & theirs).total()
    if not common:
        return 0.0, 0.0, 0.0
    precision, recall = common / ours.total(), common / theirs.total()
    return 2 * precision * recall / (precision + recall), precision, recall


def samples(rows: list[dict[str, Any]]) -> Iterator[Sample]:
    """The pages with the features and labels of their blocks."""
    for row in rows:
        tree = parse_html(decode(row["html"]).text, row["url"] or "").tree
        tree.blocks = judged_blocks(tree)
        texts = [block.text for block in tree.blocks]
        found = [_WORD.findall(text.lower()) for text in texts]
        yield Sample(
            row["type"],
            (urlsplit(row["url"] or "").hostname or "").removeprefix("www."),
            row["content"],
            texts,
            np.array([len(words) for words in found], np.float64),
            block_features(tree),
            tree,
            content_share(found, _WORD.findall(row["content"].lower())),
        )


def content_share(blocks: list[list[str]], content: list[str]) -> Floats:
    """For each block, the share of its words in the longest common subsequence of page and content.

    Content in another order than on the page is found by its runs of four words.
    """
    opcodes = import_module("rapidfuzz.distance").LCSseq.opcodes
    owner = [number for number, words in enumerate(blocks) for _ in words]
    matched = np.zeros(len(blocks))
    number_of = {word: number for number, word in enumerate({*content, *(w for words in blocks for w in words)})}
    ours = [number_of[word] for words in blocks for word in words]
    for part in opcodes(ours, [number_of[word] for word in content]):
        if part.tag == "equal":
            for at in range(part.src_start, part.src_end):
                matched[owner[at]] += 1
    share: Floats = matched / np.maximum([len(words) for words in blocks], 1)
    runs = {tuple(content[at : at + 4]) for at in range(len(content) - 3)}
    for number, words in enumerate(blocks):
        if len(words) >= 6:
            in_runs = float(np.mean([tuple(words[at : at + 4]) in runs for at in range(len(words) - 3)]))
            share[number] = max(in_runs, min(share[number], in_runs + 0.3))
    return share


def fitted(pages: list[Sample]) -> Any:
    """Trees fitted on pages; each page has about the same weight, and each word of it."""
    features = np.vstack([page.features for page in pages])
    share = np.concatenate([page.share for page in pages])
    weight = np.concatenate([page.words / (len(page.content.split()) + 100) + 0.002 for page in pages])
    both = np.vstack([features, features])
    labels = np.r_[np.ones(len(share)), np.zeros(len(share))]
    weights = np.r_[weight * share, weight * (1 - share)]
    used = weights > 0
    model = import_module("lightgbm").LGBMClassifier(**_PARAMETERS)
    return model.fit(both[used], labels[used], sample_weight=weights[used] / weights[used].mean())


def as_numbers(model: Any) -> dict[str, Any]:
    """The trees as `main_content` reads them."""
    told: dict[str, Any] = {
        "depth": 0,
        "roots": [],
        "features": [],
        "limits": [],
        "below": [],
        "above": [],
        "values": [],
    }

    def add(node: dict[str, Any], depth: int) -> int:
        told["depth"] = max(told["depth"], depth)
        number = len(told["features"])
        for name, value in (("features", 0), ("limits", 0.0), ("below", number), ("above", number), ("values", 0.0)):
            told[name].append(value)
        if "leaf_value" in node:
            told["values"][number] = float(f"{node['leaf_value']:.4g}")
            return number
        told["features"][number] = node["split_feature"]
        told["limits"][number] = float(f"{np.float32(node['threshold']):.7g}")
        told["below"][number] = add(node["left_child"], depth + 1)
        told["above"][number] = add(node["right_child"], depth + 1)
        return number

    for tree in model.booster_.dump_model()["tree_info"]:
        told["roots"].append(add(tree["tree_structure"], 0))
    return told


def cross_validated(pages: list[Sample]) -> list[str]:
    """The content of each page, as judged by trees that were fitted on other sites."""
    hosts = sorted({page.host for page in pages})
    fold = dict(zip(hosts, np.random.default_rng(SEED).permutation(len(hosts)) % FOLDS, strict=True))
    found = [""] * len(pages)
    for number in range(FOLDS):
        model = fitted([page for page in pages if fold[page.host] != number])
        for at, page in enumerate(pages):
            if fold[page.host] == number and page.texts:
                for block, chance in zip(page.tree.blocks, model.predict_proba(page.features)[:, 1], strict=True):
                    block.main = float(chance)
                found[at] = plain_text(main_blocks(page.tree))
    return found


def peers() -> dict[str, Callable[[dict[str, Any]], str]]:
    """Other extractors."""
    trafilatura, resiliparse = import_module("trafilatura"), import_module("resiliparse.extract.html2text")
    return {
        "trafilatura": lambda row: trafilatura.extract(row["html"], url=row["url"]) or "",
        "resiliparse": lambda row: resiliparse.extract_plain_text(
            row["html"].decode("utf-8", "replace"), main_content=True
        ),
        "turbohtml": lambda row: turbohtml.parse(row["html"].decode("utf-8", "replace")).article().text or "",
    }


def report(rows: list[dict[str, Any]], with_peers: bool) -> None:
    """Print the agreement of each extractor by kind of page."""
    pages = list(samples(rows))
    found = {"recrawl": cross_validated(pages)}
    seconds = {}
    started = time.process_time()
    for row in rows:
        extract(row["html"], row["url"] or "", date(2100, 1, 1))
    seconds["recrawl"] = time.process_time() - started
    for name, read in peers().items() if with_peers else ():
        started = time.process_time()
        found[name] = [read(row) for row in rows]
        seconds[name] = time.process_time() - started
    for name, texts in found.items():
        scores = defaultdict(list)
        for row, text in zip(rows, texts, strict=True):
            score = agreement(text, row["content"])
            scores[row["type"]].append(score)
            scores["all"].append(score)
        for kind, values in sorted(scores.items()):
            f1, precision, recall = np.mean(values, axis=0)
            print(f"{name}\t{kind}\t{len(values)}\t{f1:.3f}\t{precision:.3f}\t{recall:.3f}")
        print(f"{name}\tCPU ms a page\t{1000 * seconds[name] / len(rows):.1f}")


_SHOWN = {
    "headings": "heading_open", "code": "fence", "tables": "table_open", "items": "list_item_open",
    "links": "link_open", "images": "image", "elements brought in": "html",
}  # fmt: skip


def shown_by(text: str) -> Counter[str]:
    """What a reader of Markdown shows, with HTML enabled."""
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    tokens = [inner for token in parser.parse(text) for inner in [token, *(token.children or [])]]
    counts = Counter("html" if token.type.startswith("html_") else token.type for token in tokens)
    return Counter({name: counts[kind] for name, kind in _SHOWN.items()})


def held_by(blocks: list[ContentBlock]) -> Counter[str]:
    """The same of blocks."""
    found: Counter[str] = Counter()
    items = set()
    for block in blocks:
        found["headings"] += block.kind is BlockKind.HEADING
        found["code"] += block.kind is BlockKind.CODE
        found["tables"] += block.kind is BlockKind.TABLE
        items |= {id(one) for one in block.within if one.kind is ContainerKind.ITEM}
        for spans in [block.spans, *(cell for row in block.rows for cell in row)]:
            for link, group in groupby(spans, key=lambda span: span.link):
                texts = list(group)
                found["links"] += bool(link) and any(span.text.strip() or span.image for span in texts)
                found["images"] += sum(bool(span.image) for span in texts)
    found["items"] = len(items)
    return found


def report_markdown(rows: list[dict[str, Any]], with_peers: bool) -> None:
    """Print what is in the content, and in the Markdown made of it."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        tree = read_html(decode(row["html"]).text, row["url"] or "").tree
        blocks = main_blocks(tree)
        counts["content tree"].update(held_by(blocks))
        counts["its Markdown"].update(shown_by(markdown(blocks)))
        if with_peers:
            text = row["html"].decode("utf-8", "replace")
            made = import_module("trafilatura").extract(
                row["html"], url=row["url"], output_format="markdown", include_links=True, include_images=True
            )
            counts["trafilatura"].update(shown_by(made or ""))
            counts["turbohtml, whole page"].update(shown_by(turbohtml.parse(text).to_markdown()))
            counts["html2text, whole page"].update(shown_by(import_module("html2text").html2text(text)))
    print("", *_SHOWN, sep="\t")
    for name, found in counts.items():
        print(name, *(found[one] for one in _SHOWN), sep="\t")


def report_dates(rows: list[dict[str, Any]], with_peers: bool) -> None:
    """Print how many dates of publication are right, wrong and missing."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        if not row["published"]:
            continue
        text = decode(row["html"]).text
        parsed = parse_html(text, row["url"] or "")
        stated = fields(parsed.page, parsed.said, parsed.tree, date(2100, 1, 1)).published
        found = {"recrawl": stated.isoformat() if stated else ""}
        if with_peers:
            found["htmldate"] = import_module("htmldate").find_date(text, original_date=True, url=row["url"]) or ""
        for name, told in found.items():
            right = told == str(row["published"])[:10]
            counts[name]["right" if right else "wrong" if told else "none"] += 1
    for name, told_counts in counts.items():
        print(name, *(f"{kind}\t{told_counts[kind]}" for kind in ("right", "wrong", "none")), sep="\t")


def report_lines(rows: list[dict[str, Any]], _: bool) -> None:
    """Print how many pages have other letters or line ends in a visit than in their tree, and what each costs."""
    wrong, seconds = Counter[str](), Counter[str]()
    for row in rows:
        text = decode(row["html"]).text
        started = time.process_time()
        page = parse(text)
        seconds["parsed"] += time.process_time() - started
        started = time.process_time()
        visited = [line.text.replace(" ", "") for line in lines(page)]
        seconds["lines of a visit"] += time.process_time() - started
        page = parse(text)
        started = time.process_time()
        shown = [part for line in text_lines(html_tree(page, row["url"] or "")) for part in line.parts]
        of_tree = [line.text.replace(" ", "") for line in map(Line.of, shown) if line.text]
        seconds["lines of the tree"] += time.process_time() - started
        wrong["letters"] += "".join(visited) != "".join(of_tree)
        wrong["line ends"] += not set(accumulate(map(len, of_tree))) <= set(accumulate(map(len, visited)))
    print(len(rows), "pages,", *(f"{wrong[name]} with other {name}" for name in ("letters", "line ends")))
    for name, spent in seconds.items():
        print(f"{name}\t{1000 * spent / len(rows):.2f} ms a page")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.extraction", description=__doc__)
    parser.add_argument("task", choices=("report", "markdown", "dates", "lines", "fit"))
    parser.add_argument("pages", type=Path)
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    rows = pq.read_table(options.pages).to_pylist()
    if options.task == "fit":
        told = as_numbers(fitted(list(samples(rows))))
        MODEL.write_text(json.dumps(told, separators=(",", ":")))
        print(f"{len(told['roots'])} trees, {len(told['features'])} nodes")
    else:
        reports = {"report": report, "markdown": report_markdown, "dates": report_dates, "lines": report_lines}
        reports[options.task](rows, options.peers)


if __name__ == "__main__":
    main()
