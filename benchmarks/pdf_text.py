"""What reads the text of PDF files best: CPU time, text found and weight of three libraries on generated files.

    python -m benchmarks.pdf_text [--files 8] [--pages 10] [--rounds 3]

Needs `pip install pypdf pdfminer.six reportlab` besides `recrawl[pdf]`. Files have random words with umlauts, of four
kinds in turn: a standard font; an embedded TrueType font; two columns, written line by line across both; words placed
one by one, without spaces between them, as typesetting programs do. *Words* is the share of all words that the library
returns, *in order* the share of neighbouring pairs of words that it returns as neighbours. MB counts the package and
what it requires.
"""

from __future__ import annotations

import argparse
import io
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from itertools import pairwise
from pathlib import Path

import numpy as np
import pypdfium2
from pdfminer.high_level import extract_text
from pypdf import PdfReader
from reportlab.lib.pagesizes import A4
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen import canvas

_FONTS = Path(canvas.__file__).parents[1] / "fonts"
_SYLLABLES = "ba be bi bo bu da de di do fa fe ko ku la le mi mo na ne ra re sa se ta to ü ä ö ß é".split()  # noqa: SIM905
PACKAGES = {"pypdfium2": ["pypdfium2"], "pypdf": ["pypdf"], "pdfminer.six": ["pdfminer.six", "cryptography", "cffi"]}


def made(number: int, pages: int) -> tuple[bytes, list[str]]:
    """A file and its words."""
    rng = np.random.default_rng(number)
    file, words = io.BytesIO(), []
    pdf = canvas.Canvas(file, pagesize=A4)
    font = "Helvetica"
    if number % 4 == 1:
        font = "Vera"
        pdfmetrics.registerFont(TTFont(font, str(_FONTS / "Vera.ttf")))
    columns = 2 if number % 4 == 2 else 1
    for _ in range(pages):
        lines = [["".join(rng.choice(_SYLLABLES, rng.integers(2, 5))) for _ in range(6)] for _ in range(55 * columns)]
        words += [word for line in lines for word in line]
        pdf.setFont(font, 10)
        for row in range(55):
            for column in range(columns):
                line = lines[column * 55 + row]
                places = [0] if number % 4 < 3 else [0, 80, 160, 240, 320, 400]
                for place, piece in zip(places, [" ".join(line)] if len(places) == 1 else line, strict=True):
                    pdf.drawString(50 + column * 260 + place, 790 - 13 * row, piece)
        pdf.showPage()
    pdf.save()
    return file.getvalue(), words


def with_pypdfium2(body: bytes) -> str:
    """As the reader process does it."""
    document = pypdfium2.PdfDocument(body)
    try:
        return "\n".join(page.get_textpage().get_text_bounded() for page in document)
    finally:
        document.close()


def with_pypdf(body: bytes) -> str:
    """By pypdf."""
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(body)).pages)


def with_pdfminer(body: bytes) -> str:
    """By pdfminer.six."""
    return extract_text(io.BytesIO(body))


LIBRARIES: dict[str, Callable[[bytes], str]] = {
    "pypdfium2": with_pypdfium2,
    "pypdf": with_pypdf,
    "pdfminer.six": with_pdfminer,
}


def found(words: list[str], text: str) -> tuple[float, float]:
    """The share of words, and of neighbouring pairs, that a text has."""
    got = text.split()
    hit = sum((Counter(words) & Counter(got)).values()) / len(words)
    pairs = list(pairwise(words))
    return hit, sum((Counter(pairs) & Counter(pairwise(got))).values()) / len(pairs)


def weight(packages: list[str]) -> float:
    """MB of these packages."""
    files = (Path(str(file.locate())) for name in packages for file in distribution(name).files or ())
    return sum(file.stat().st_size for file in files if file.is_file() and file.suffix != ".pyc") / 1e6


def costs(files: list[tuple[bytes, list[str]]], rounds: int) -> Iterator[tuple[str, list[float], float, float]]:
    """For each library: CPU ms a page of each round, words and pairs found."""
    used: dict[str, list[float]] = {name: [] for name in LIBRARIES}
    shares: dict[str, list[tuple[float, float]]] = {name: [] for name in LIBRARIES}
    for _ in range(rounds):
        for name, read in LIBRARIES.items():
            begun = time.process_time()
            texts = [read(body) for body, _ in files]
            used[name].append(time.process_time() - begun)
            shares[name] = [found(words, text) for (_, words), text in zip(files, texts, strict=True)]
    for name in LIBRARIES:
        hits, pairs = zip(*shares[name], strict=True)
        yield name, used[name], statistics.mean(hits), statistics.mean(pairs)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.pdf_text", description=__doc__)
    parser.add_argument("--files", type=int, default=8)
    parser.add_argument("--pages", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    files = [made(number, chosen.pages) for number in range(chosen.files)]
    pages = chosen.files * chosen.pages
    print("| library | CPU ms a page | against pypdfium2 | words | in order | MB |\n|---|---:|---:|---:|---:|---:|")
    base: list[float] = []
    for name, used, hits, pairs in costs(files, chosen.rounds):
        base = base or used
        ratios = sorted(one / other for one, other in zip(used, base, strict=True))
        ratio = f"{statistics.median(ratios):.1f} ({ratios[0]:.1f} to {ratios[-1]:.1f})"
        cost = 1000 * statistics.median(used) / pages
        print(f"| {name} | {cost:.2f} | {ratio} | {hits:.1%} | {pairs:.1%} | {weight(PACKAGES[name]):.0f} |")


if __name__ == "__main__":
    main()
