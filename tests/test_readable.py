"""URLs, titles and tables in every script, as people see them."""

from __future__ import annotations

import io
import sys
from urllib.parse import quote

import pytest

from recrawl.characters import storable
from recrawl.cli.terminal import output
from recrawl.repository.results.addresses import readable_host, readable_url
from recrawl.serve.service import Service, ServiceConfig
from tests.serving import Asker
from tests.world import Repo, Site


@pytest.mark.quick
@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("xn--mnchen-3ya.de", "münchen.de"),
        ("xn--e1afmkfd.xn--p1ai", "пример.рф"),
        ("xn--fiqs8s", "中国"),
        ("xn--mgbh0fb.example", "مثال.example"),
        ("xn--80ak6aa92e.com", "xn--80ak6aa92e.com"),  # аррӏе in Cyrillic letters
        ("xn--pypal-4ve.com", "xn--pypal-4ve.com"),  # one Cyrillic letter among Latin ones
        ("xn--a", "xn--a"),
        ("a.example", "a.example"),
    ],
)
def test_hosts(host: str, shown: str) -> None:
    assert readable_host(host) == shown


@pytest.mark.quick
@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/wiki/%E5%8C%97%E4%BA%AC", "/wiki/北京"),
        ("/%D0%BF%D1%83%D1%82%D1%8C/%20x", "/путь/%20x"),
        ("/%E2%80%AEgnp.exe", "/%E2%80%AEgnp.exe"),  # would turn the direction of writing
        ("/%C3%28", "/%C3%28"),
        ("/%E3%80%80", "/%E3%80%80"),  # a wide space
    ],
)
def test_paths(path: str, shown: str) -> None:
    assert readable_url(f"https://a.example{path}") == f"https://a.example{shown}"


@pytest.mark.quick
def test_a_cut_keeps_letters_with_their_marks() -> None:
    assert storable("นที่", 2) == "น"
    assert storable("क्षेत्र", 5) == "क्षे"
    assert storable("a👩\u200d👩\u200d👧 family", 3) == "a"
    assert storable("a" + "\u0301" * 50, 30) == "a" + "\u0301" * 29


def test_columns_of_wide_letters_are_aligned(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    shown = Terminal()
    monkeypatch.setattr(sys, "stdout", shown)
    monkeypatch.setenv("COLUMNS", "60")
    rows = [
        {"title": "北京天气", "url": "https://a.example/%E5%8C%97"},
        {"title": "e\u0301te\u0301", "url": "https://a.example/b"},
    ]
    output.table(rows, {"title": "title", "url": "url"})
    lines = shown.getvalue().splitlines()
    assert lines[1].rstrip() == "北京天气  https://a.example/北"
    assert lines[2].rstrip() == "e\u0301te\u0301       https://a.example/b"


def test_the_dashboard_gives_each_text_its_own_direction(repo: Repo) -> None:
    title = "مكتبة جديدة"
    repo.config(index=True)
    with Site({"/": f"<html lang=ar><title>{title}</title><p>قديم في المدينة <a href=/%D9%85>م</a>".encode()}) as site:
        repo.crawl(site.url("/"))
        site["/"] = f"<html lang=ar><title>{title}</title><p>جديد في المدينة <a href=/%D9%85>م</a>".encode()
        repo.later(hours=3)
        repo.cycle()
    with Service(repo.folder, ServiceConfig(schedule=False)) as service:
        ask = Asker(service)
        assert f'dir="auto" href="/pages/0">{title}</a>' in ask.get("/changes", Accept="text/html").text
        assert f'<h1 dir="auto">{title}</h1>' in ask.get("/pages/0", Accept="text/html").text
        for view in ("inline", "side"):
            difference = ask.get(f"/pages/0/diff?view={view}", Accept="text/html").text
            assert 'lang="ar"' in difference
            assert '<td dir="auto"' in difference
        text = ask.get("/pages/0/text", Accept="text/html").text
        assert '<div class="reading" lang="ar">' in text
        assert '<p dir="auto">' in text
        assert '<p class="snippet" dir="auto">' in ask.get(f"/search?q={quote('جديد')}", Accept="text/html").text
