r"""Dates, times and counters as they are written in the most used languages.

`date_names.json` has the names and forms of the Unicode CLDR (`python -m benchmarks.date_names`): months, weekdays,
halves of the day and eras, in the calendars that a language uses; "3 minutes ago"; the order of a date. The words that
pages add ("updated", "views", "all rights reserved") are listed here.

- `date_words` says which words of a line only tell a date; `STAMP_WORDS` are those that say what the date is of.
- `unspaced_words` splits a text without spaces so that such words stay whole.
- `patterns` and `never_news` are patterns of noise filters.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import chain, groupby
from typing import NamedTuple

from recrawl.words import has_spaceless, words

_STAMPS = {
    "ar": "آخر تحديث محدث محدثة عدلت تعديل نشر الحقوق محفوظة نسخ",
    "bn": "হালনাগাদ আপডেট সম্পাদিত প্রকাশিত সর্বশেষ স্বত্ব সংরক্ষিত",
    "cs": "aktualizováno aktualizace změněno upraveno aktualizovaná vyhrazena",
    "da": "opdateret ændret redigeret forbeholdt forbeholdes",
    "de": "aktualisiert aktualisierung geändert änderung bearbeitet stand vorbehalten",
    "el": "ενημέρωση ενημερώθηκε τροποποίηση τροποποιήθηκε δικαιώματος επιφύλαξη",
    "es": "actualizado actualizada actualización modificado modificada modificación editado editada reservados",
    "fa": "بروزرسانی روزرسانی بهروزرسانی ویرایش محفوظ حقوق",
    "fi": "päivitetty muokattu muutettu pidätetään",
    "fr": "modifié modifiée modification actualisé actualisée màj réservés",
    "gu": "અપડેટ સુધારેલ સુરક્ષિત",
    "he": "עודכן עדכון עודכנה נערך שמורות",
    "hi": "अद्यतन अपडेट अपडेटेड संशोधित प्रकाशित सर्वाधिकार सुरक्षित",
    "hu": "frissítve frissítés módosítva módosítás fenntartva",
    "id": "diperbarui diperbaharui pembaruan perbarui diubah disunting dilindungi",
    "it": "aggiornato aggiornata aggiornamento modificato modificata modifica riservati",
    "ja": "最終更新 更新日時 更新日 更新 最終改訂 最終変更 改訂 改定 著作権 無断転載",
    "ko": "업데이트 업데이트됨 수정 수정일 최종수정 최종 갱신 갱신일 생성 저작권 입력",
    "mr": "अद्ययावत अद्यतनित अपडेट सुधारित राखीव",
    "ms": "dikemas kemaskini kemas dikemaskini diubah terpelihara",
    "nl": "gewijzigd bijgewerkt aangepast laatst wijziging voorbehouden",
    "no": "oppdatert endret redigert reservert forbeholdt",
    "pa": "ਅੱਪਡੇਟ ਅਪਡੇਟ ਸੋਧਿਆ ਰਾਖਵੇਂ",
    "pl": "aktualizacja zaktualizowano aktualizacji zmodyfikowano modyfikacja modyfikacji zmiana zastrzeżone",
    "pt": "atualizado atualizada atualização actualizado modificado modificada modificação editado alterado alteração",
    "ro": "actualizat actualizată actualizare modificat modificată rezervate",
    "ru": "обновлено обновлена обновлён обновлен обновление обновления изменено изменена изменения отредактировано "
    "редакция защищены",
    "sv": "uppdaterad uppdaterat ändrad ändrat redigerad senast förbehållna förbehålles",
    "ta": "புதுப்பிக்கப்பட்டது புதுப்பித்தது மாற்றப்பட்டது உரிமைகள்",
    "te": "నవీకరించబడింది అప్డేట్ సవరించబడింది హక్కులు",
    "th": "อัปเดตล่าสุด อัพเดตล่าสุด อัปเดต อัพเดต อัพเดท ปรับปรุงล่าสุด ปรับปรุง แก้ไขล่าสุด แก้ไขเมื่อ แก้ไข สงวนลิขสิทธิ์ ลิขสิทธิ์",
    "tr": "güncelleme güncellendi güncellenme güncellenmiştir düzenlenme değiştirilme değiştirildi saklıdır",
    "uk": "оновлено оновлення оновлена змінено змінена редаговано редакція захищені захищено",
    "ur": "تجدید اپڈیٹ ترمیم محفوظ حقوق",
    "zh": "最后更新 最近更新 更新时间 更新日期 更新于 更新 最后修改 最近修改 修改时间 修改于 修订 "
    "编辑于 发布于 版权所有 版权",
    "zh-hant": "最後更新 最近更新 更新時間 更新日期 更新於 最後修改 最近修改 修改時間 修訂 編輯於 發佈於 版權所有 版權",
}  # fmt: skip
"""What a stamp says about its date: updated, changed, last, rights reserved."""
_VISITS = {
    "ar": "مشاهدة مشاهدات المشاهدات زيارة زيارات الزيارات زائر زوار الزوار قراءة قراءات متصل",
    "bn": "বার_দেখা বার_পঠিত দর্শক ভিউ ভিজিটর পাঠক",
    "cs": "zobrazení návštěv návštěvníků přečtení zhlédnutí",
    "da": "visninger visning besøgende besøg læst",
    "de": "Aufrufe Aufruf Besucher Besuche Zugriffe Ansichten Leser mal_gelesen mal_aufgerufen mal_angesehen",
    "el": "προβολές επισκέψεις επισκέπτες αναγνώσεις",
    "es": "visitas visitantes vistas visualizaciones lecturas invitados",
    "fa": "بازدید بازدیدها نمایش بازدیدکننده",
    "fi": "näyttökertaa katselukertaa kävijää lukukertaa vierailua",
    "fr": "vues visites visiteurs lectures invités consultations affichages",
    "he": "צפיות כניסות מבקרים ביקורים",
    "hi": "बार_देखा_गया बार_पढ़ा_गया दर्शक व्यूज आगंतुक",
    "hu": "megtekintés látogató látogatás olvasás",
    "id": "kali_dilihat kali_dibaca tayangan pengunjung kunjungan pembaca",
    "it": "visualizzazioni visite visitatori letture ospiti",
    "ja": "回視聴 回表示 回閲覧 ビュー 閲覧数 閲覧 アクセス数 アクセス 訪問者 人が閲覧中",
    "ko": "조회수 조회 방문자 방문자수 방문 명 접속",
    "ms": "tontonan paparan pelawat lawatan",
    "nl": "weergaven bezoekers bezoeken keer_bekeken keer_gelezen",
    "no": "visninger besøkende besøk lesere",
    "pl": "wyświetleń wyświetlenia wyświetlenie odsłon odsłony odwiedzin gości odwiedzających czytań",
    "pt": "visualizações visualização visitas visitantes acessos leituras exibições",
    "ro": "vizualizări vizite vizitatori afișări citiri",
    "ru": "просмотров просмотра просмотр посетителей посетителя посещений посещения прочтений гостей визитов",
    "sv": "visningar visning besökare besök läsningar",
    "ta": "பார்வைகள் பார்வையாளர்கள்",
    "th": "ครั้งที่เข้าชม ผู้เข้าชม ผู้ชม เข้าชม อ่าน วิว",
    "tr": "görüntülenme görüntüleme ziyaretçi ziyaret okunma kez_okundu kez_görüntülendi izlenme",
    "uk": "переглядів перегляди перегляд відвідувачів відвідувань гостей",
    "ur": "بار_دیکھا_گیا ناظرین مشاہدات",
    "vi": "lượt_xem lượt_truy_cập lượt_đọc khách_truy_cập đang_online",
    "zh": "次阅读 次浏览 次观看 次查看 次播放 次访问 阅读量 阅读 浏览量 浏览 观看 访问量 访问 访客 点击 人气 位访客",
    "zh-hant": "次閱讀 次瀏覽 次觀看 次檢視 次點閱 閱讀量 閱讀 瀏覽量 瀏覽 觀看 訪問量 造訪 訪客 點閱 人氣",
}  # fmt: skip
"""What counters of visits count; `_` stands for a space."""
_ANSWERS = {
    "ar": "تعليق تعليقات إعجاب مشاركة متابع تحميل",
    "de": "Kommentare Kommentar Likes Antworten Mitglieder Downloads Stimmen Abonnenten Beiträge",
    "es": "comentarios comentario respuestas seguidores descargas miembros votos compartidos",
    "fr": "commentaires commentaire réponses abonnés téléchargements membres partages",
    "hi": "टिप्पणियां टिप्पणियाँ टिप्पणी लाइक शेयर",
    "id": "komentar suka pengikut unduhan anggota balasan",
    "it": "commenti commento risposte iscritti download voti condivisioni",
    "ja": "件のコメント コメント いいね フォロワー ダウンロード",
    "ko": "댓글 좋아요 팔로워 다운로드 추천",
    "nl": "reacties reactie volgers downloads leden stemmen",
    "pl": "komentarzy komentarze komentarz polubień odpowiedzi pobrań",
    "pt": "comentários comentário respostas seguidores downloads membros votos curtidas",
    "ru": "комментариев комментария комментарий ответов подписчиков скачиваний голосов лайков",
    "sv": "kommentarer kommentar svar följare nedladdningar",
    "th": "ความคิดเห็น ถูกใจ แชร์ ดาวน์โหลด",
    "tr": "yorum beğeni takipçi indirme cevap",
    "uk": "коментарів коментарі коментар відповідей підписників",
    "vi": "bình_luận lượt_thích lượt_chia_sẻ lượt_tải",
    "zh": "条评论 评论 个赞 点赞 回复 收藏 下载 粉丝",
    "zh-hant": "則留言 留言 則評論 評論 回覆 收藏 下載",
}  # fmt: skip
"""What counters of answers count."""
_AROUND_NUMBERS = "年 月 日 号 號 時 时 分 秒 点 點 週 周 г р г. ч uhr h min годa года року de del d'o kl o'clock sa ch"
"""Words that belong to a date if a number or another word of a date is beside them."""
_CLEAR = 5
"""Letters of a name that is one wherever it stands."""
_SHOWN = 3
"""Letters of a word that shows that a text may be in a language, at least."""
_NUMERAL = "[〇零一二三四五六七八九十廿卅元]{1,4}(?=[年月日号號時时点點分])"
"""A number of a date in Chinese letters."""
_COUNT = r"\d[\d.,\u00a0\u202f\u066b\u066c]*(?:\s?(?:[KkMm]|mil|тыс\.?|万|萬|만|천|rb|jt|tys\.?|B|Tsd\.))?"
_DIGITAL = re.compile("(?!.*MMM)[HhmsyMd:./ -]+")
"""Forms that have no word: there are patterns for all languages."""
_FIELD = re.compile(r"'([^']*)'|([A-Za-z])\2*|\s+|.")
_DIGITS = {"d": r"\d{1,2}", "y": r"\d{1,4}", "m": r"\d{2}", "s": r"\d{2}"} | dict.fromkeys("HhKk", r"\d{1,2}")
_LONGEST = 3_500
"""Characters of a pattern, at most: it stands in settings."""


@cache
def _names() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The names and forms of each language."""
    found: Mapping[str, Mapping[str, Sequence[str]]] = json.loads(
        resources.files(__package__).joinpath("date_names.json").read_text("utf-8")
    )
    return found


def _normal(text: str) -> str:
    """A text as `content.lines` compares it."""
    return unicodedata.normalize("NFKC", text).casefold()


class _Words(NamedTuple):
    clear: frozenset[str]
    """Names of months and weekdays, and others that are one wherever they stand."""
    near: frozenset[str]
    """Short names, and parts of longer ones: they belong to a date beside a number or another word of one."""
    unspaced: re.Pattern[str]
    """Names and words of stamps in scripts without spaces."""


@cache
def _words() -> _Words:
    clear, near, unspaced = set[str](), set(_AROUND_NUMBERS.split()), set[str]()
    for tag, language in _names().items():
        for name in (*_months(tag, language), *language["days"], *language["halves"], *language["eras"]):
            parts = words(_normal(name.replace("{0}", " ")))
            if has_spaceless(name):
                normal = _normal(name.replace("{0}", ""))
                (unspaced if len(normal) > 1 else near).add(normal)
            elif len(parts) == 1:
                (clear if len(parts[0]) >= _CLEAR else near).add(parts[0])
            else:
                near.update(parts)
    clear |= unspaced
    stamps = {_normal(word) for listed in _STAMPS.values() for word in listed.split() if has_spaceless(word)}
    return _Words(frozenset(clear), frozenset(near), re.compile(_any_of(unspaced | stamps) + f"|{_NUMERAL}"))


def _months(tag: str, language: Mapping[str, Sequence[str]]) -> list[str]:
    """The names of months; in Hebrew, "in May" is one word."""
    return [*language["months"], *(f"ב{name}" for name in language["months"] if tag == "he")]


def _any_of(texts: Iterable[str]) -> str:
    """A pattern that matches one of these texts, the longest if several fit; quick where none begins."""
    ordered = sorted(texts, key=lambda text: (text[0], -len(text)))
    heads = groupby(ordered, key=lambda text: text[0])
    return "|".join(f"{head}(?:{'|'.join(re.escape(text[1:]) for text in texts)})" for head, texts in heads)


STAMP_WORDS: frozenset[str] = frozenset(_normal(word) for listed in _STAMPS.values() for word in listed.split())
"""Words that say what a date is of: updated, changed, all rights reserved."""


def date_words(text: Sequence[str], *, numbers: re.Pattern[str]) -> frozenset[str]:
    """Those of the words of a line that tell a date, without its numbers, which `numbers` matches.

    >>> sorted(date_words("stand mo 4 mai 2026 im mai".split(), numbers=re.compile(r"\\d+")))
    ['mai', 'mo']
    """
    known = _words()
    found = known.clear.intersection(text)
    if short := known.near.intersection(text):
        last = False
        for before, word, after in zip(("", *text), text, (*text[1:], ""), strict=False):
            last = word in found or (
                word in short and (last or numbers.match(before) is not None or numbers.match(after) is not None)
            )
            if last:
                found = found | {word}
            last = last or numbers.match(word) is not None
    return found


def unspaced_words(text: str) -> list[str]:
    """The words of a text with letters of a script without spaces: each letter is one, but for names of dates.

    >>> unspaced_words("最終更新 令和8年5月1日(金) 晴れ")
    ['最終更新', '令和', '8', '年', '5', '月', '1', '日', '金', '晴', 'れ']
    """
    found, start = list[str](), 0
    for name in _words().unspaced.finditer(text):
        found += words(text[start : name.start()])
        found.append(name[0])
        start = name.end()
    return found + words(text[start:])


class _Spoken(NamedTuple):
    """What shows that a text is in a language, and its patterns."""

    words: frozenset[str]
    unspaced: tuple[str, ...]
    patterns: tuple[str, ...]


def patterns(text: str) -> list[str]:
    """Regular expressions of what changes without anybody writing, for the languages that a text may be in.

    English is left out. Those of a language are together, the most specific first.

    >>> [pattern for pattern in patterns("vor 3 Minuten") if re.search(pattern, "vor 5 Minuten")] != []
    True
    """
    text = text.casefold()
    shown = frozenset(words(text))
    spoken = (
        found.patterns
        for found in _spoken()
        if not found.words.isdisjoint(shown) or any(map(text.__contains__, found.unspaced))
    )
    return list(dict.fromkeys(chain.from_iterable(spoken)))


@cache
def _spoken() -> tuple[_Spoken, ...]:
    made = []
    for tag, language in _others():
        named = [*_months(tag, language), *language["halves"], *language["ago"]]
        named += _listed(_VISITS.get(tag, "")) + _listed(_ANSWERS.get(tag, ""))
        folded = {part.casefold() for name in named for part in name.split("{0}")}
        unspaced = {text.strip() for text in folded if tag == "ko" or has_spaceless(text)} - {""}
        spaced = {word for text in folded - unspaced for word in words(text) if len(word) + (word > "z") >= _SHOWN}
        made.append(_Spoken(frozenset(spaced), tuple(unspaced), tuple(_forms(tag, language))))
    return tuple(made)


def _others() -> list[tuple[str, Mapping[str, Sequence[str]]]]:
    return [(tag, language) for tag, language in _names().items() if tag != "en"]


def never_news() -> Iterator[str]:
    """Patterns of all languages for "3 minutes ago" and shorter than a day, and for counters of visits."""
    yield from _joined(form for _, found in _others() for form in _ago(found["ago_brief"]))
    yield from _joined(form for tag, _ in _others() for form in _counted(_listed(_VISITS.get(tag, ""))))


def _joined(patterns: Iterable[str]) -> Iterator[str]:
    """As few patterns as settings can hold, which match what any of these do."""
    found = ""
    for pattern in patterns:
        if found and len(found) + len(pattern) > _LONGEST:
            yield f"(?i){found}"
            found = ""
        found += f"|{pattern}" if found else pattern
    if found:
        yield f"(?i){found}"


def _forms(tag: str, language: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for form in (*language["dates"], *language["clocks"]):
        if not _DIGITAL.fullmatch(form):
            yield f"(?i){_pattern(form, language)}"
    yield from _joined(_ago(language["ago"]))
    yield from _joined(_counted(_listed(_VISITS.get(tag, "")) + _listed(_ANSWERS.get(tag, ""))))


def _listed(texts: str) -> list[str]:
    """The words of a list; `_` stands for a space in one."""
    return [text.replace("_", " ") for text in texts.split()]


def _counted(named: Sequence[str]) -> Iterator[str]:
    """Patterns of a number and what it counts, in either order."""
    if named:
        either = "|".join(map(re.escape, named))
        yield rf"{_COUNT}\s?(?:{either})|(?:{either})\s?[:：]?\s?{_COUNT}"


def _ago(forms: Sequence[str]) -> Iterator[str]:
    """Patterns of forms such as "3 minutes ago"."""
    return (_escaped(form).replace("{0}", r"\d+") for form in forms if "{0}" in form)


def _escaped(text: str) -> str:
    """A text as a pattern, in which spaces may be missing."""
    return re.escape(text).replace(r"\{0\}", "{0}").replace(r"\ ", r"\s?")


def _pattern(form: str, language: Mapping[str, Sequence[str]]) -> str:
    """A form of the CLDR as a regular expression."""
    found = ""
    for piece in _FIELD.finditer(form):
        text, letter = piece[0], piece[2]
        if letter in ("M", "L"):
            found += _one_of(language["months"]) if len(text) > 2 else r"\d{1,2}"
        elif letter in _DIGITS:
            found += _DIGITS[letter]
        elif letter:
            found += _one_of(language[{"E": "days", "c": "days", "G": "eras"}.get(letter, "halves")])
        else:
            found += r"\s?" if text.isspace() else _escaped(text if piece[1] is None else piece[1])
            found += "?" * (text in ",،")
    return found


def _one_of(names: Sequence[str]) -> str:
    ordered = sorted(names, key=lambda name: (-len(name), name))
    return "(?:{})".format("|".join(_escaped(name) for name in ordered)).replace("{0}", r"\d{1,2}")
