"""Pages that say that they are not there, although the server says that they are: soft 404s.

A title or a first heading that is nothing but such a sentence counts, on a short page; an article about error pages has
other words in its title.
"""

from __future__ import annotations

import re

MOST_WORDS = 250
"""Visible words of a page, its menu among them, that can say that it is not there."""
_NUMBER = "404"
_FILLERS = frozenset(
    [
        "404",
        "http",
        "status",
        "error",
        "erreur",
        "fehler",
        "fout",
        "erro",
        "errore",
        "fel",
        "feil",
        "fejl",
        "virhe",
        "hata",
        "błąd",
        "chyba",
        "hiba",
        "ошибка",
        "помилка",
        "σφάλμα",
        "code",
        "kod",
        "oops",
        "ups",
        "whoops",
        "hoppla",
        "sorry",
        "uh",
        "oh",
        "huch",
        "the",
        "this",
        "that",
        "is",
        "was",
        "were",
        "are",
        "be",
        "been",
        "you",
        "we",
        "your",
        "our",
        "requested",
        "looking",
        "for",
        "at",
        "ist",
        "wurde",
        "leider",
        "die",
        "diese",
        "der",
        "das",
        "angeforderte",
        "gewünschte",
        "est",
        "cette",
        "la",
        "le",
        "l",
        "a",
        "o",
        "a",
        "été",
        "pas",
        "n",
        "que",
        "vous",
        "demandée",
        "no",
        "se",
        "ha",
        "pudo",
        "ser",
        "solicitada",
        "esta",
        "questa",
        "richiesta",
        "запрошенная",
        "запрошенной",
    ]
)
"""Words beside a number or a sentence that change nothing."""
_LISTED = """
    not found; page not found; file not found; document not found; resource not found; url not found;
    content not found; page could not found; page cannot found; page can not found; page couldn t found;
    page can t found; page wasn t found; page isn t here; page does not exist; page doesn t exist;
    page no longer exists; page no longer available; page not available; page unavailable; page missing;
    nothing found; nothing here; nothing found here; nothing to see here; article not found; post not found;
    object not found; product not found; we can t find page; can t find page; could not find page;
    couldn t find page; nicht gefunden; seite nicht gefunden; seite konnte nicht gefunden werden;
    konnte nicht gefunden werden; seite existiert nicht; seite nicht vorhanden; datei nicht gefunden;
    inhalt nicht gefunden; page non trouvée; page introuvable; non trouvé; page n existe; page existe;
    page demandée introuvable; document introuvable; página no encontrada; página encontrada; página existe;
    página no existe; página não encontrada; não encontrado; página não existe; página não foi encontrada;
    no encontrado; no encontrada; no encontró página; encontró página; pàgina no trobada; pàgina trobada;
    página non atopada; orria ez da aurkitu; pagina non trovata; non trovata; non trovato; pagina non esiste;
    pagina inesistente; pagina niet gevonden; niet gevonden; pagina bestaat niet; sidan hittades inte;
    sidan kunde inte hittas; sidan finns inte; siden blev ikke fundet; siden findes ikke;
    siden kunne ikke findes; siden ble ikke funnet; siden finnes ikke; fant ikke siden; ikke funnet;
    ikke fundet; hittades inte; sivua ei löydy; sivua ei löytynyt; ei löydy; síða fannst ekki; nie znaleziono;
    nie znaleziono strony; strona nie znaleziona; strona nie została znaleziona; strona nie istnieje;
    stránka nenalezena; stránka nebyla nalezena; stránka neexistuje; stránka nenájdená; stránka nebola nájdená;
    az oldal nem található; oldal nem található; nem található; a keresett oldal nem található;
    keresett oldal nem található; pagina nu a fost găsită; pagina nu fost găsită; pagina nu există;
    stranica nije pronađena; stran ni najdena; puslapis nerastas; lapa nav atrasta; lehte ei leitud;
    sayfa bulunamadı; bulunamadı; aradığınız sayfa bulunamadı; страница не найдена; не найдено; не найдена;
    страница не существует; сторінку не знайдено; сторінка не знайдена; страницата не е намерена;
    страница није пронађена; η σελίδα δεν βρέθηκε; σελίδα δεν βρέθηκε; 页面不存在; 页面未找到; 未找到页面;
    找不到页面; 找不到该页面; 找不到此页面; 网页不存在; 您访问的页面不存在; 页面没有找到; 找不到頁面;
    頁面不存在; 找不到網頁; 404页面; 404頁面; ページが見つかりません; ページが見つかりませんでした;
    お探しのページは見つかりません; お探しのページは見つかりませんでした; お探しのページが見つかりません;
    お探しのページが見つかりませんでした; ページは存在しません; ページが存在しません;
    페이지를 찾을 수 없습니다; 요청하신 페이지를 찾을 수 없습니다; 존재하지 않는 페이지입니다;
    الصفحة غير موجودة; لم يتم العثور على الصفحة; הדף לא נמצא; העמוד לא נמצא; صفحه یافت نشد; صفحه پیدا نشد;
    पृष्ठ नहीं मिला; पेज नहीं मिला; ไม่พบหน้า; ไม่พบหน้าที่คุณต้องการ; ไม่พบหน้านี้; không tìm thấy trang;
    trang không tồn tại; không tìm thấy; halaman tidak ditemukan; tidak ditemukan; laman tidak dijumpai
"""
_SENTENCES = frozenset(" ".join(sentence.split()) for sentence in _LISTED.split(";"))
"""Sentences that such pages have as title, without the fillers, by language."""
_PART = re.compile(r"\s+[-–—:]+\s+|\s*[|•·»]\s*|:\s+")
_WORD = re.compile(r"[^\s!-/:-@\[-`{-~¡¿…–—“”„«»。！、，]+")
_LONGEST = 120


def says_missing(title: str, heading: str, words: int) -> bool:
    """Whether a page of so many words says, in its title or its first heading, that it is not there.

    >>> says_missing("Sorry, this page could not be found | Example", "", 40), says_missing("Error 404", "", 12)
    (True, True)
    >>> says_missing("Seite nicht gefunden - Beispiel", "", 30), says_missing("", "ページが見つかりません", 9)
    (True, True)
    >>> says_missing("How to design a page not found page", "", 80), says_missing("Page not found", "", 2000)
    (False, False)
    """
    if words > MOST_WORDS:
        return False
    return any(_is_sentence(part) for text in (title, heading) for part in (text, *_PART.split(text)))


def _is_sentence(text: str) -> bool:
    if len(text) > _LONGEST:
        return False
    words = _WORD.findall(text.casefold())
    left = " ".join(word for word in words if word not in _FILLERS)
    return left in _SENTENCES or " ".join(words) in _SENTENCES or (not left and _NUMBER in words)
