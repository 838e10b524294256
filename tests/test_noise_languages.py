"""Dates, times and counters in the most used languages are no news: from the crawl to what a filter proposes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from recrawl.compare.content.changed_lines import changed_lines
from recrawl.compare.content.judge import NoEvidence
from recrawl.compare.content.lines import Line
from recrawl.compare.noise.candidates import never_news
from recrawl.compare.noise.date_words import patterns
from recrawl.compare.noise.filters import Noise
from recrawl.compare.noise.news import NewsJudge
from recrawl.compare.noise.proposals import propose
from tests.world import Repo, Site

STAMPS = {
    "ar": ("آخر تحديث: ١ مايو ٢٠٢٦", "آخر تحديث: ١٢ يونيو ٢٠٢٦"),
    "bn": ("শেষ হালনাগাদ: ৫ মে ২০২৬", "শেষ হালনাগাদ: ৬ জুন ২০২৬"),
    "cs": ("Aktualizováno 5. května 2026", "Aktualizováno 6. června 2026"),
    "de": ("Aktualisiert: Mo., 4. Mai 2026, 15:30 Uhr", "Aktualisiert: Di., 12. Juni 2026, 9:05 Uhr"),
    "el": ("Τελευταία ενημέρωση: 5 Μαΐου 2026", "Τελευταία ενημέρωση: 6 Ιουνίου 2026"),
    "es": ("Última actualización: 1 de enero de 2026", "Última actualización: 3 de febrero de 2027"),
    "fa": ("آخرین ویرایش ۱۲ اردیبهشت ۱۴۰۵", "آخرین ویرایش ۱ خرداد ۱۴۰۵"),
    "fr": ("Mis à jour le lundi 3 août 2026 à 14h30", "Mis à jour le mardi 4 août 2026 à 9h05"),
    "he": ("עודכן ב-5 במאי 2026", "עודכן ב-6 ביוני 2026"),
    "hi": ("अंतिम अद्यतन: ५ मई २०२६", "अंतिम अद्यतन: ६ जून २०२६"),
    "id": ("Diperbarui Senin, 4 Mei 2026", "Diperbarui Selasa, 5 Juni 2026"),
    "it": ("Aggiornato il 5 maggio 2026", "Aggiornato il 6 giugno 2026"),
    "ja": ("最終更新 令和8年5月1日(金)", "最終更新 令和8年6月2日(火)"),
    "ko": ("최종수정 2026년 5월 1일 오후 3:05", "최종수정 2026년 6월 2일 오전 9:05"),
    "nl": ("Laatst gewijzigd: 5 mei 2026", "Laatst gewijzigd: 6 juni 2026"),
    "pl": ("Ostatnia aktualizacja: 5 maja 2026", "Ostatnia aktualizacja: 6 czerwca 2026"),
    "pt": ("Atualizado em 5 de maio de 2026", "Atualizado em 6 de junho de 2026"),
    "ru": ("Обновлено 5 мая 2026 г.", "Обновлено 6 июня 2026 г."),
    "th": ("ปรับปรุงล่าสุด 1 มกราคม พ.ศ. 2569", "ปรับปรุงล่าสุด 12 กุมภาพันธ์ พ.ศ. 2569"),
    "tr": ("Son güncelleme: 5 Mayıs 2026 Salı", "Son güncelleme: 6 Haziran 2026 Cuma"),
    "uk": ("Оновлено 5 травня 2026 р.", "Оновлено 6 червня 2026 р."),
    "ur": ("آخری تجدید 5 مئی، 2026", "آخری تجدید 6 جون، 2026"),
    "vi": ("Cập nhật: Thứ Hai, 4 tháng 5, 2026", "Cập nhật: Thứ Ba, 5 tháng 6, 2026"),
    "zh": ("最后更新：2026年5月1日 星期五", "最后更新：2026年6月12日 星期一"),
    "zh-Hant": ("最後更新：二〇二六年五月一日", "最後更新：二〇二六年六月十二日"),
    "rights": ("© 2025 Tutti i diritti riservati", "© 2026 Tutti i diritti riservati"),
}
NEWS = {
    "ar": ("استقال الوزير", "عُيّن وزير جديد أمس"),
    "de": ("Das Bad öffnet am 4. Mai", "Das Bad bleibt geschlossen"),
    "ja": ("図書館は来月開館します", "図書館の開館は中止です"),
    "th": ("รัฐมนตรีลาออกแล้ว", "แต่งตั้งรัฐมนตรีใหม่"),
    "zh": ("北京市长张三辞职", "北京市长李四上任"),
    "ru": ("Министр ушёл в отставку", "Назначен новый министр"),
}
FILLER = "<p>One line of the page that stays.</p>" * 3


@pytest.mark.parametrize("language", STAMPS)
def test_a_stamp_changes_without_anybody_writing(language: str) -> None:
    old, new = ([Line.of(text)] for text in STAMPS[language])
    assert all(change.mechanical for change in changed_lines(old, new))


@pytest.mark.parametrize("language", NEWS)
def test_what_somebody_wrote_is_no_stamp(language: str) -> None:
    old, new = ([Line.of(text)] for text in NEWS[language])
    assert not any(change.mechanical for change in changed_lines(old, new))


def test_stamps_of_all_languages_are_no_change_of_content_in_a_crawl(tmp_path: Path) -> None:
    repo = Repo.create(tmp_path / "repo", change="content")
    pages = STAMPS | {f"news-{language}": texts for language, texts in NEWS.items()}

    def shown(version: int) -> dict[str, bytes]:
        return {
            f"/{name}": f"<title>{name}</title>{FILLER}<p>{texts[version]}".encode() for name, texts in pages.items()
        }

    links = "".join(f"<a href=/{name}>{name}</a>" for name in pages)
    with Site(shown(0) | {"/": links.encode()}) as web:
        repo.crawl(web.url("/"))
        for path, body in shown(1).items():
            web[path] = body
        repo.later(days=1)
        repo.cycle()
        changed = {row["url"].rpartition("/")[2] for row in repo.json("changes") if row["content"]}
    assert changed == {f"news-{language}" for language in NEWS}


COUNTERS = {
    "de": "{} mal gelesen", "fr": "{} vues", "ru": "{} просмотров", "ja": "閲覧数：{}", "zh": "{} 次浏览",
    "zh-Hant": "瀏覽 {}", "ko": "조회수 {}", "es": "{} visitas", "pt": "{} visualizações", "it": "{} visualizzazioni",
    "ar": "{} مشاهدة", "hi": "{} बार देखा गया", "tr": "{} görüntülenme", "id": "{} kali dilihat", "vi": "{} lượt xem",
    "th": "{} ผู้เข้าชม", "pl": "{} odsłon", "nl": "{} weergaven", "fa": "{} بازدید", "uk": "{} переглядів",
    "ago-de": "vor {} Minuten", "ago-fr": "il y a {} minutes", "ago-ja": "{} 分前", "ago-zh": "{}分钟前",
    "ago-ar": "قبل {} دقيقة", "ago-pt": "há {} minutos", "ago-ru": "{} минут назад", "ago-th": "{} นาทีที่ผ่านมา",
}  # fmt: skip


@pytest.mark.parametrize("name", COUNTERS)
def test_a_counter_or_an_age_is_hidden_by_a_filter_of_its_own(name: str) -> None:
    days = [f"{FILLER}<div>{COUNTERS[name].format(13 + 7 * day)}</div>" for day in range(5)]
    judge = NewsJudge(days, NoEvidence())
    assert not any(judge.news)
    found = propose(days, judge.news, lambda noise: not judge.hidden(noise))
    assert [proposal.kind for proposal in found] == ["pattern"]
    assert found[0].value != r"\d+"
    assert (found[0].hides, found[0].of) == (4, 4)


@pytest.mark.parametrize("name", [name for name in STAMPS if name not in ("zh-Hant", "rights", "cs")])
def test_a_date_is_hidden_by_a_pattern_of_its_language(name: str) -> None:
    for text in STAMPS[name]:
        longest = max((found[0] for pattern in patterns(text) for found in re.finditer(pattern, text)), key=len)
        assert len(longest) >= 8, longest


def test_patterns_are_valid_filters_in_every_language() -> None:
    Noise(patterns=(*never_news(), *patterns(" ".join(text for both in STAMPS.values() for text in both)))).check()


def test_english_text_is_read_as_before() -> None:
    old, new = [Line.of("We set out in May with 5 boats")], [Line.of("We set out in June with 6 boats and no sail")]
    assert not any(change.mechanical for change in changed_lines(old, new))
