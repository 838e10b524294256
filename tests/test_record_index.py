"""Full text: put, replace, remove, search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
import tantivy
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.errors import UsageError
from recrawl.record.index import Document, Index


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with closing(Index(tmp_path / "index")) as made:
        yield made


def document(page: int, text: str, *, title: str = "", site: str = "https://a.example") -> Document:
    return Document(page, f"{site}/p{page}", site, title, text, 1000.0 + page)


def old_index(folder: Path, made: Document) -> None:
    """An index as earlier versions made it, with the texts in it."""
    builder = tantivy.SchemaBuilder()
    builder.add_integer_field("page", stored=True, indexed=True, fast=True)
    builder.add_text_field("url", stored=True)
    builder.add_text_field("site", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("title", stored=True)
    builder.add_text_field("text", stored=True)
    builder.add_float_field("at", stored=True, indexed=True, fast=True)
    folder.mkdir()
    writer = tantivy.Index(builder.build(), path=str(folder)).writer(heap_size=15_000_000, num_threads=1)
    row = tantivy.Document(url=made.url, site=made.site, title=made.title, text=made.text)
    row.add_integer("page", made.page)
    row.add_float("at", made.at)
    writer.add_document(row)
    writer.commit()
    writer.wait_merging_threads()


def pages(index: Index, query: str, **how: str) -> list[int]:
    return [hit.page for hit in index.search(query, **how)]  # type: ignore[arg-type]


def test_a_page_is_found_by_its_words(index: Index) -> None:
    index.put(document(3, "the quick brown fox", title="Animals"))
    index.put(document(0, "nothing of interest", title="Other"))
    index.commit()
    (hit,) = index.search("fox")
    assert (hit.page, hit.url, hit.title, hit.at) == (3, "https://a.example/p3", "Animals", 1003.0)
    assert hit.score > 0
    assert (hit.snippet, hit.marks) == ("", ())  # it was not said what to quote from


def test_a_page_is_quoted_from_the_text_that_is_given(index: Index) -> None:
    index.put(document(3, "the quick brown fox", title="Animals"))
    index.commit()
    asked: list[tuple[int, float]] = []

    def text(page: int, at: float) -> str:
        asked.append((page, at))
        return "the quick brown fox"

    (hit,) = index.search("fox", text=text)
    assert asked == [(3, 1003.0)]
    assert hit.snippet == "the quick brown fox"
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["fox"]
    (hit,) = index.search("title:animals", text=lambda _page, _at: "word " * 100)
    assert (hit.snippet, hit.marks) == (("word " * 40).strip(), ())


def test_texts_are_not_kept(index: Index, tmp_path: Path) -> None:
    index.put(document(3, "zebra quagga okapi", title="Striped beasts"))
    index.commit()
    files = [path.read_bytes() for path in (tmp_path / "index").iterdir()]
    assert any(b"Striped beasts" in file for file in files)
    assert not any(b"zebra quagga" in file for file in files)


def test_an_index_of_an_earlier_shape_can_be_searched(index: Index, tmp_path: Path) -> None:
    assert index.current
    old_index(tmp_path / "old", document(3, "the quick brown fox", title="Animals"))
    with closing(Index(tmp_path / "old")) as old:
        assert not old.current
        (hit,) = old.search("fox", text=lambda _page, _at: "brown fox")
        assert (hit.page, hit.title, hit.snippet) == (3, "Animals", "brown fox")


def test_page_0_is_a_page_like_any_other(index: Index) -> None:
    index.put(document(0, "first"))
    index.put(document(0, "again"))
    index.commit()
    assert pages(index, "again") == [0]
    assert pages(index, "first") == []
    assert len(index) == 1


def test_putting_a_page_again_replaces_it(index: Index) -> None:
    for words in ("old text", "newer text", "newest text"):
        index.put(document(1, words))
    index.commit()
    index.put(document(1, "latest words"))
    index.commit()
    assert pages(index, "text") == []
    assert pages(index, "latest") == [1]
    assert len(index) == 1


def test_a_page_that_is_removed_is_not_found(index: Index) -> None:
    index.put(document(1, "word"))
    index.put(document(2, "word"))
    index.commit()
    index.remove(1)
    index.remove(77)
    index.commit()
    assert pages(index, "word") == [2]


def test_searches_see_what_was_committed_and_no_more(index: Index, tmp_path: Path) -> None:
    index.put(document(1, "word"))
    assert index.pending
    assert pages(index, "word") == []
    index.commit()
    assert not index.pending
    assert pages(index, "word") == [1]
    with closing(Index(tmp_path / "index")) as reader:
        assert pages(reader, "word") == [1]
        index.put(document(2, "word"))
        index.commit()
        assert sorted(pages(reader, "word")) == [1, 2]


def test_closing_commits(tmp_path: Path) -> None:
    with closing(Index(tmp_path / "index")) as index:
        index.put(document(1, "word"))
    with closing(Index(tmp_path / "index")) as index:
        assert pages(index, "word") == [1]


def test_a_title_counts_more_than_the_text(index: Index) -> None:
    index.put(document(1, "comet and other words of a page of some length"))
    index.put(document(2, "other words of a page of some length indeed", title="comet"))
    index.commit()
    assert pages(index, "comet") == [2, 1]


def test_the_forms_of_a_query(index: Index) -> None:
    index.put(document(1, "red green blue", title="colours"))
    index.put(document(2, "blue green red", title="reversed"))
    index.put(document(3, "red only", title="single"))
    index.commit()
    assert pages(index, '"red green"') == [1]
    assert sorted(pages(index, "+red -only")) == [1, 2]
    assert pages(index, "title:single") == [3]
    assert pages(index, "url:p2") == [2]
    assert sorted(pages(index, "green OR only")) == [1, 2, 3]


def test_only_one_site(index: Index) -> None:
    index.put(document(1, "word"))
    index.put(document(2, "word", site="https://b.example:8080"))
    index.commit()
    assert pages(index, "word", site="https://b.example:8080") == [2]
    assert pages(index, "word", site="https://b.example") == []


def test_only_some_time(index: Index) -> None:
    for page in range(5):
        index.put(document(page, "news"))
    index.commit()
    assert {hit.page for hit in index.search("news", since=1003.0)} == {3, 4}
    assert {hit.page for hit in index.search("news", until=1001.0)} == {0, 1}
    assert {hit.page for hit in index.search("news", since=1001.0, until=1002.0, site="https://a.example")} == {1, 2}
    assert index.search("news", since=1002.0)[0].score == index.search("news")[0].score


def test_the_date_is_the_stated_one_or_else_that_of_the_version(index: Index) -> None:
    index.put(document(1, "news"))
    index.put(replace(document(2, "news"), date=500.0))
    index.commit()
    assert [hit.page for hit in index.search("news", since=1000.0)] == [1]
    assert [hit.page for hit in index.search("news", until=999.0)] == [2]


def test_a_language_is_found_with_its_regions(index: Index) -> None:
    for page, language in enumerate(("de", "de-at", "en", "")):
        index.put(replace(document(page, "news"), language=language))
    index.commit()
    assert sorted(pages(index, "news", language="de")) == [0, 1]
    assert pages(index, "news", language="DE-at") == [1]
    assert pages(index, "news", language="fr") == []


def test_an_old_index_says_that_it_knows_no_languages(tmp_path: Path) -> None:
    old_index(tmp_path / "old", document(3, "fox"))
    with (
        closing(Index(tmp_path / "old")) as old,
        pytest.raises(UsageError, match="the next crawl or cycle makes it anew"),
    ):
        old.search("fox", language="de")


def test_limit_and_offset_page_through_all(index: Index) -> None:
    for page in range(25):
        index.put(document(page, "word " * (page + 1)))
    index.commit()
    seen = [hit.page for offset in range(0, 30, 10) for hit in index.search("word", limit=10, offset=offset)]
    assert sorted(seen) == list(range(25))


def test_marks_count_characters_not_bytes(index: Index) -> None:
    index.put(document(1, "Über die Größe der Brücke spräche man: Fähre"))
    index.commit()
    (hit,) = index.search("Fähre", text=lambda _page, _at: "Über die Größe der Brücke spräche man: Fähre")
    assert [hit.snippet[start:end] for start, end in hit.marks] == ["Fähre"]


@pytest.mark.parametrize("query", ["nofield:x", "(", "[1 TO"])
def test_a_query_that_cannot_be_read_is_a_sentence(index: Index, query: str) -> None:
    with pytest.raises(UsageError, match="this query cannot be read"):
        index.search(query)


@settings(max_examples=150, deadline=None)
@given(query=st.text(max_size=30) | st.text('+-"()[]{}:*~^\\ ab', max_size=20))
def test_no_query_breaks_it(tmp_path_factory: pytest.TempPathFactory, query: str) -> None:
    with closing(Index(tmp_path_factory.getbasetemp() / "any-query")) as index:
        if not len(index):
            index.put(document(1, "a b ab"))
            index.commit()
        with suppress(UsageError):
            index.search(query)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.sampled_from(["put", "remove", "commit"])), max_size=25))
def test_it_holds_the_last_word_on_every_page(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[int, str]]
) -> None:
    expected: dict[int, str] = {}
    with closing(Index(tmp_path_factory.mktemp("index") / "index")) as index:
        for number, (page, what) in enumerate(steps):
            if what == "put":
                expected[page] = f"word{number}"
                index.put(document(page, f"word{number}"))
            elif what == "remove":
                expected.pop(page, None)
                index.remove(page)
            else:
                index.commit()
        index.commit()
        assert len(index) == len(expected)
        for page, word in expected.items():
            assert pages(index, word) == [page]
