"""Search in every language: from the crawl to the command line, the API and the dashboard."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from recrawl.record.index import Document, Index
from recrawl.record.quotes import quote as quoted
from recrawl.record.search_query import QueryWords
from recrawl.record.search_words import Stems, folded, language_of, terms
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.test_record_index import old_index
from tests.world import Repo, Site

PAGES = {
    "zh": ("zh-CN", "今天北京的天气很好，明天会下雨。"),
    "ja": ("ja", "新しい図書館は来月、東京に開館します。"),
    "th": ("th", "กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย และมีสวนสาธารณะหลายแห่ง"),
    "ko": ("ko", "도서관에서 책을 읽습니다."),
    "en": ("en", "She was running to the libraries of the city, which is the best that we have."),
    "de": ("de", "Die Häuser der Stadt und die Universitätsbibliothek sind nicht für alle geöffnet."),
    "tr": ("tr", "İSTANBUL'da bu bir gün için çok güzel ve daha sıcak."),
    "ru": ("ru", "Ёлки стоят в домах, и это не все, что мы видели по пути."),
    "el": ("el", "Η βιβλιοθήκη και το σπίτι είναι στην Ελλάδα."),
    "ar": ("ar", "هذا كِتَابٌ من المكتبة في المدينة"),
    "hi": ("hi", "सभी मनुष्यों को गौरव और अधिकारों के मामले में स्वतन्त्रता प्राप्त है।"),
    "fr": ("fr", "L\u2019été, les élèves de l\u2019école sont dans les bibliothèques pour lire."),
    "wrong": ("en", "Das ist nicht die Frage, und der Rest ist für uns von den Kindern gekommen."),
    "none": ("", "Las bibliotecas de la ciudad son para los niños y las niñas que leen."),
}
_MIXED = (
    "The minutes of the meeting are for all that we have, and it was not to be the last of them by this year.",
    "Die Protokolle sind nicht für alle, und das ist es, was wir von den Versammlungen haben.",
)
PAGES["mixed"] = ("en", "</p><p>".join(_MIXED))
PAGES["unstated"] = ("", "همهٔ افراد بشر آزاد به دنیا می‌آیند و حیثیت و حقوقشان با هم برابر است.")
FOUND = [
    ("北京", ["zh"]), ("天气", ["zh"]), ("東京", ["ja"]), ("図書館", ["ja"]),
    ("กรุงเทพมหานคร", ["th"]), ("สวนสาธารณะ", ["th"]), ("도서관", ["ko"]), ("京", ["ja", "zh"]),
    ("run", ["en"]), ("library", ["en"]), ("haeuser", ["de"]), ("Haus", ["de"]), ("Bibliothek", ["de"]),
    ("istanbul", ["tr"]), ("дом", ["ru"]), ("елки", ["ru"]), ("βιβλιοθηκη", ["el"]), ("كتاب", ["ar"]),
    ("अधिकारों", ["hi"]), ("ecole", ["fr"]), ("bibliothèque", ["fr"]), ("ＲＵＮＮＩＮＧ", ["en"]),
    ("Kind", ["wrong"]), ("biblioteca", ["none"]), ("\"的天气\"", ["zh"]), ("\"libraries of the city\"", ["en"]),
    ("\"library of the city\"", []), ("running -libraries", []), ("title:図書館", []), ("title:ja", ["ja"]),
    ("Protokoll", ["mixed"]), ("Versammlung", ["mixed"]), ("meetings", ["mixed"]),
]  # fmt: skip


def _site() -> Site:
    def page(name: str, language: str, text: str) -> bytes:
        return f"<html lang='{language}'><title>{name}</title><p>{text}</html>".encode()

    links = "".join(f"<a href=/{name}>{name}</a>" for name in PAGES)
    pages = {f"/{name}": page(name, *about) for name, about in PAGES.items()}
    return Site(pages | {"/": f"<title>start</title><nav>{links}</nav>".encode()})


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Repo]:
    made = Repo.create(tmp_path_factory.mktemp("languages") / "repo")
    made.config(index=True)
    with _site() as site:
        made.crawl(site.url("/"))
        yield made


def _names(urls: list[str]) -> list[str]:
    return sorted(name for url in urls if (name := url.rpartition("/")[2]))


@pytest.mark.parametrize(("query", "pages"), FOUND)
def test_a_page_is_found_in_its_language(crawled: Repo, query: str, pages: list[str]) -> None:
    out = crawled.run("search", query, "--json").out
    hits = crawled.json("search", query) if out else []
    assert _names([hit["url"] for hit in hits]) == pages


def test_the_dashboard_and_the_api_find_what_the_command_finds(crawled: Repo) -> None:
    with Service(crawled.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        for query, pages in FOUND:
            items = ask.get(f"/api/v1/search?q={quote(query)}").json["items"]
            assert _names([item["url"] for item in items]) == pages, query
        shown = ask.get(f"/search?q={quote('天气')}", Accept="text/html").text
        assert "今天北京的<mark>天气</mark>很好" in shown
        shown = ask.get("/search?q=bibliothek", Accept="text/html").text
        assert "<mark>Universitätsbibliothek</mark>" in shown


@pytest.mark.parametrize(
    ("query", "language", "pages"),
    [
        ("Versammlung", "de", ["mixed"]), ("meeting", "en", ["mixed"]), ("kind", "de", ["wrong"]),
        ("بشر", "fa", ["unstated"]), ("بشر", "ar", []), ("biblioteca", "es", ["none"]), ("دنیا", "", ["unstated"]),
    ],
)  # fmt: skip
def test_a_page_is_found_by_the_languages_that_its_text_is_in(
    crawled: Repo, query: str, language: str, pages: list[str]
) -> None:
    given = ("search", query, "--language", language) if language else ("search", query)
    hits = crawled.json(*given) if crawled.run(*given, "--json").out else []
    assert _names([hit["url"] for hit in hits]) == pages


@pytest.fixture
def index() -> Iterator[Index]:
    with closing(Index(None)) as made:
        yield made


def _put(index: Index, *texts: str, language: str = "") -> None:
    for page, text in enumerate(texts):
        at = f"https://a.example/{page}"
        index.put(Document(page, at, "https://a.example", "", text, 1.0, language=language))
    index.commit()


def _pages(index: Index, query: str) -> list[int]:
    return [hit.page for hit in index.search(query)]


def test_the_exact_form_comes_first(index: Index) -> None:
    _put(
        index,
        "runs and running and runs, runs " * 5,
        "a run of the mill and " + "other words " * 60,
        "walk",
        language="en",
    )
    assert _pages(index, "run") == [1, 0]
    assert _pages(index, "runs") == [0, 1]
    assert sorted(_pages(index, "+run +other")) == [1]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Đặng Trần in Hà Nội", "đặng trần in hà nội"),
        ("Tokyo（東京）の hotel", "tokyo 東京 京 の hotel"),
        ("Android用アプリ", "android 用ア アプ プリ リ"),
        ("naïve, café. 日", "naïve café 日"),
        ("cafe\u0301 日", "café 日"),
        ("हिन्दी। भाषा", "हिन्दी भाषा"),
        ("Ёлка", "елка"),
        ("latex_documents", "latex documents"),
        ("ＡＢＣ１２３ ﬁsh", "abc123 fish"),
        ("x=ОК; Ελλάδα!", "x ок ελλαδα"),
    ],
)
def test_terms(text: str, found: str) -> None:
    assert " ".join(terms(text).split()) == found


def test_what_is_excluded_is_excluded_as_it_stands(index: Index) -> None:
    _put(index, "a library in the city", "many libraries of the city", language="en")
    assert _pages(index, "city -library") == [1]
    assert _pages(index, "library NOT libraries") == [0]


def test_spellings_without_umlauts_find_german_pages_only(index: Index) -> None:
    _put(index, "Die Häuser sind nicht für uns", language="de")
    index.put(Document(9, "https://a.example/9", "https://a.example", "", "the hauser of it is not for us", 1.0))
    index.commit()
    assert _pages(index, "haeuser") == [0]
    assert _pages(index, "Häuser") == [0, 9]


def test_a_page_is_stemmed_by_the_language_that_it_is_in() -> None:
    german = {"das", "ist", "nicht", "die", "frage", "und", "der", "rest", "von", "den", "kindern"}
    assert language_of("en", german) == language_of("", german) == language_of("de-at", german) == "de"
    assert language_of("nb", {"bilder"}) == "no"  # too little to doubt what the page states
    assert language_of("hi", {"word"}) == language_of("", {"word"}) == ""


@pytest.mark.parametrize(
    ("text", "query", "marked"),
    [
        ("Das Universitätsgebäude. " * 20 + "Der Rückblick auf die Häuser.", "häuser", ["Häuser"]),
        ("前言。" * 90 + "今天北京的天气很好。" + "后记。" * 90, "天气", ["天气"]),
        ("Set the value. " * 20 + "It is latex_documents here.", "documents", ["documents"]),
        ("يوم جديد. " * 40 + "هذا كِتَابٌ جديد", "كتاب", ["كِتَابٌ"]),
        ("Vor\u00adrede. " * 40 + "Die Uni\u00adversität ist groß.", "universität", ["Uni\u00adversität"]),
    ],
)
def test_a_quote_has_whole_words(index: Index, text: str, query: str, marked: list[str]) -> None:
    _put(index, text)
    (hit,) = index.search(query, text=lambda _page, _at: text)
    assert [hit.snippet[start:end] for start, end in hit.marks] == marked
    assert len(hit.snippet) <= 200
    before, after = text.partition(hit.snippet)[::2]
    assert not (before[-1:].isalnum() and hit.snippet[0].isalnum() and not "\u3400" < hit.snippet[0] < "\u9fff")
    assert not after[:1].isalnum() or "\u3400" < after[0] < "\u9fff"


@settings(max_examples=200, deadline=None)
@given(st.text("ab 天气ก่ाहि عَÄß.\n\u00ad", max_size=300), st.sampled_from(["a", "天", "天气", "ก", "ह", "عَ", "äß"]))
def test_marks_of_a_quote_are_in_it(text: str, word: str) -> None:
    wanted = QueryWords({tuple(terms(word).split())})
    found = quoted(text, wanted, Stems(), ())
    assert found.text in text
    assert all(0 <= start < end <= len(found.text) for start, end in found.marks)
    assert list(found.marks) == sorted(found.marks)


@given(st.text(max_size=40))
def test_folding_twice_changes_nothing(text: str) -> None:
    once = folded(text)
    assert folded(once) == once or not once.isascii()
    assert "  " not in " ".join(terms(text).split())


def test_an_index_of_an_earlier_version_is_made_anew_and_said_so(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo")
    repo.config(index=True)
    with _site() as site:
        repo.crawl(site.url("/"))
        made = Document(0, site.url("/zh"), site.url("/"), "zh", "今天北京的天气很好", 1.0)
        for file in (repo.folder / "index").iterdir():
            file.unlink()
        (repo.folder / "index").rmdir()
        old_index(repo.folder / "index", made)
        assert repo.json("search", "zh")
        said = repo.run("cycle", "--budget", "1", "--allow-private").err
        assert "the index was made by an earlier version; rebuilding it" in said
        assert "brought the index up to date with 17 pages" in said
        assert _names([hit["url"] for hit in repo.json("search", "北京")]) == ["zh"]
