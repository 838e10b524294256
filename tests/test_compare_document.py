"""Parsing: real and untidy pages are read, hostile ones end quickly."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.parsing.document import parse
from recrawl.compare.parsing.encoding import decode

DATA = Path(__file__).parents[1].parent / "shared" / "data"
FONTS = "".join(f"<font size={i}><p>" for i in range(20_000))
ATTRIBUTES = " ".join(f"a{i}=1" for i in range(50_000))

SOUP = re.findall(
    "[^;]+",
    "<div>;</div>;<p>;</p>;<b>;</b>;<i>;</i>;<a>;</a>;<span>;</span>;<table>;</table>;<td>;</td>;<li>;<ul>;</ul>"
    ";x;<object>;</object>;<font size=1>;</font>;<svg>;</svg>;<option>;<!--;-->;<br>;<h1>;</h1>;<button>",
)

BOMBS = {
    "nested": "<div>" * 100_000,
    "nested and closed": "<div>" * 50_000 + "</div>" * 50_000,
    "lists": "<ul><li>" * 50_000,
    "formatting": "<b><i><a>" * 33_000,
    "distinct formatting": FONTS,
    "tables": "<table><td>" * 50_000,
    "foreign": "<svg>" + "<g>" * 100_000,
    "foreign raw text": "<svg><style>" + "<g>" * 100_000,
    "end tags behind a wall": "<div><object></div></object>" * 30_000,
    "end tags in attributes": "<div a='</div>'>" * 50_000,
    "end tags in comments": "<div><!--</div>-->" * 50_000,
    "end tags in raw text": "<div><textarea></div></textarea>" * 30_000,
    "end tags that are ignored": "<span><div></span></div>" * 30_000,
    "adoption": "<b><div></b>" * 40_000,
    "links": "<a><div>" * 40_000,
    "options": "<option><b>" * 40_000,
    "attributes": f"<p {ATTRIBUTES}>x",
    "root attributes": "".join(f"<body a{i}=1>" for i in range(50_000)),
    "upper case": "<DIV>" * 100_000,
    "opened again": "<p>a" + "".join(f"<i a{i}>" for i in range(100)) + "<p>x</p>" * 2_000,
    "menus": "<nav>" * 3_000 + "</nav>" * 3_000,
}

LARGE = {"distinct formatting": "parse-memory", "root attributes": "parse-memory", "opened again": "too-deep"}
"""Those that need more memory than a reader has, or are refused."""
_READ = """
import json, resource, sys
from recrawl.child_processes import limit_memory
from recrawl.crawl.visits.messages import ReaderConfig, Task
from recrawl.crawl.visits.reader_process import TaskReader
from recrawl.discover.urls import UrlRules

resource.setrlimit(resource.RLIMIT_CPU, (120, 120))
limit_memory(1 << 30)
html = (("Content-Type", "text/html"),)
for name, page in json.load(sys.stdin).items():
    reader = TaskReader(ReaderConfig(UrlRules(), memory=1 << 30))
    task = Task(0, "https://a.example/", 1.7e9, "192.0.2.1", 200, html, b"", page.encode(), b"", 0, None, None, True)
    reading = reader.read(task)
    if not reading.failure:
        changed = task._replace(body=f"<p>zero{page}<p>one".encode(), digest=reading.digest, before=reading.record)
        reading = reader.read(changed)
    print(name, reading.failure, sep=":")
"""

UNTIDY = {
    "empty": "",
    "text only": "word " * 50_000,
    "paragraphs never closed": "<p>a" * 30_000,
    "items never closed": "<ul>" + "<li>a" * 30_000,
    "cells never closed": "<table>" + "<tr><td>a<td>b" * 20_000,
    "fonts never closed in cells": "<table>" + "<tr><td><font color=red>a" * 20_000,
    "definitions": "<dl>" + "<dt>a<dd>b" * 15_000,
    "drawing": "<svg>" + "<path d='M0 0'/>" * 20_000 + "</svg>",
    "images": "<img src=a>" * 30_000,
    "line breaks": "a<br>" * 30_000,
    "script with tags": "<script>" + "document.write('<div>');" * 30_000 + "</script>",
    "long text without tags": "<p>" + "x" * 200_000,
    "inline image": "<img src='data:image/png;base64," + "A" * 300_000 + "'>",
    "many inline images": ("<img src='data:image/png;base64," + "A" * 9_000 + "'>") * 50,
    "options": "<select>" + "<option>a" * 30_000,
}


def text_of(html: str) -> str:
    return "".join(parse(html).strings)


@pytest.mark.parametrize("name", UNTIDY)
def test_untidy_pages_are_read(name):
    assert parse(UNTIDY[name]).root is not None


def test_hostile_pages_are_read_or_refused_within_the_limits_of_a_reader():
    """As new pages and as changed ones, with a reader's memory; the limit of CPU time is for all of them."""
    words = [sys.executable, "-c", _READ]
    ended = subprocess.run(words, input=json.dumps(BOMBS), capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]
    assert dict(line.split(":") for line in ended.stdout.splitlines()) == {name: LARGE.get(name, "") for name in BOMBS}


@pytest.mark.parametrize("html", ["<a " * 50_000, '<a x="' * 50_000, "<!--" * 50_000, "<" * 200_000, "</" * 100_000])
def test_broken_tags_end(html):
    assert parse(html).root is not None


def test_a_chosen_option_is_not_copied():
    html = "<select><button><selectedcontent></selectedcontent></button><option selected>one</option></select>"
    (copy,) = parse(html).select("selectedcontent")
    assert copy.text == ""


@pytest.mark.parametrize(
    "html",
    [
        "<p>shown<template><a href=x>hidden</a><template>deeper</template></template>",
        "<p>shown<template shadowrootmode=open>hidden</template>",
        "<p>shown<TEMPLATE>hidden",
    ],
)
def test_the_contents_of_templates_are_no_part_of_the_page(html):
    tree = parse(html)
    assert text_of(html) == "shown"
    assert tree.select("a") == []


def test_a_template_of_a_drawing_is_an_element_like_others():
    assert text_of("<svg><template>shown</template></svg>") == "shown"


def test_half_characters_are_left_out():
    assert text_of("<p>a\ud83db<p>\U0001f600") == "ab\U0001f600"


@given(st.lists(st.sampled_from(SOUP), max_size=80))
def test_any_tag_soup_is_parsed(parts):
    assert parse("".join(parts)).html.endswith("</html>")


@given(st.text(max_size=300))
def test_any_text_is_parsed(text):
    parse(text)


@pytest.mark.skipif(not DATA.is_dir(), reason="shared/data is not here")
def test_no_real_page_is_refused():
    import pyarrow.parquet as pq

    pages = pq.read_table(DATA / "extraction" / "pages.parquet", columns=["html"])["html"].to_pylist()
    for page in pages:
        assert parse(decode(page, "text/html").text).root is not None
    assert len(pages) == 550
