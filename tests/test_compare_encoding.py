"""Bytes to text: the order of evidence, wrong labels, and that nothing ever raises."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from recrawl.compare.parsing.encoding import decode

RUSSIAN = "Съешь же ещё этих мягких французских булок, да выпей чаю. " * 20
JAPANESE = "これは日本語の文章です。文字コードの判定を試みる。" * 20
GERMAN = "Über den Wolken muss die Freiheit wohl grenzenlos sein, größer als Häuser. " * 20


@pytest.mark.parametrize(
    ("body", "content_type", "text", "encoding"),
    [
        (b"\xef\xbb\xbfa\xc3\xa9", "text/html; charset=latin1", "aé", "utf-8"),
        ("aé".encode("utf-16le"), "", "a\x00é", ""),
        (b"\xff\xfe" + "aé".encode("utf-16le"), "text/html; charset=utf-8", "aé", "utf-16le"),
        (b"\xfe\xff" + "aé".encode("utf-16be"), "", "aé", "utf-16be"),
        ("é€".encode("cp1252"), "text/html; charset=ISO-8859-1", "é€", "windows-1252"),
        ("ж".encode("koi8-r"), 'text/html; charset="KOI8-R"', "ж", "koi8-r"),
        (b'<meta charset="windows-1251">' + "ж".encode("cp1251"), "text/html", None, "windows-1251"),
        (
            b'<META http-equiv=Content-Type content="text/html; charset=shift_jis">' + "あ".encode("cp932"),
            "",
            None,
            "shift_jis",
        ),
        (b'<meta charset="utf-16">\xc3\xa9', "", None, "utf-8"),
        (b"<!-- <meta charset=koi8-r> -->\xc3\xa9", "", None, "utf-8"),
        (b" " * 1024 + b"<meta charset=koi8-r>\xc3\xa9", "", None, "koi8-r"),
        (b" " * 1024 + b"<meta charset=koi8-r>\xc3\xa9", "text/plain", None, "utf-8"),
        ("<?xml version='1.0'?><p>é".encode("utf-16le"), "", None, "utf-16le"),
        ("<?xml version='1.0'?><p>é".encode("utf-16be"), "", None, "utf-16be"),
        (b"\xc3\xa9", "text/html; charset=no-such", "é", "utf-8"),
        (b"\xc3\xa9", "text/html; charset=iso-2022-kr", "é", "utf-8"),
    ],
)
def test_evidence_in_order(body, content_type, text, encoding):
    got = decode(body, content_type)
    if encoding:
        assert got.encoding == encoding
    if text is not None:
        assert got.text == text.replace("\0", "") or not encoding


CONTENT = b'content="text/html; charset=koi8-r"'
PRAGMA = b"http-equiv=content-type"


@pytest.mark.parametrize(
    "page",
    [
        b"<meta charset=koi8-r>",
        b"<META CHARSET = ' koi8-r\n'>",
        b"<meta/charset='KOI8-R'/>",
        b"<meta charset=koi8-r charset=utf-8>",
        b"<meta " + PRAGMA + b" " + CONTENT + b">",
        b"<meta " + CONTENT + b" " + PRAGMA + b">",
        b"<meta http-equiv='Content-TYPE' content='a; CharSet =  koi8-r ; b'>",
        b"<meta http-equiv=content-type content='charset charset=koi8-r'>",
        b"<meta http-equiv=content-type content='charset=\"koi8-r\"'>",
        b"<meta " + PRAGMA + b" content='charset=big5' charset=koi8-r>",
        b"<meta charset=bogus><meta charset=koi8-r>",
        b"<meta content='charset=big5'><meta charset=koi8-r>",
        b"<meta name=a =b c><meta charset=koi8-r>",
        b"<!--><meta charset=koi8-r>",
        b"<!-- > <meta charset=big5> --><meta charset=koi8-r>",
        b"<p title='<meta charset=big5>'><meta charset=koi8-r>",
        b"<? <meta charset=big5> <meta charset=koi8-r>",
        b"</p <meta charset=big5> <meta charset=koi8-r>",
        b"</meta charset=big5><meta charset=koi8-r>",
        b"<metadata charset=big5><meta charset=koi8-r>",
        b"<script>'<meta charset=koi8-r>'</script>",
        b" " * 5000 + b"<meta charset=koi8-r>",
        b" " * 1024 + b"<script>'<meta charset=big5>'</SCRIPT ><meta charset=koi8-r>",
        b"<script>" + b" " * 1024 + b"'<meta charset=big5>'</script><meta charset=koi8-r>",
        b"<title>" + b" " * 1024 + b"<meta charset=big5></title><meta charset=koi8-r>",
        b"<?xml version='1.0' encoding='koi8-r'?>",
        b'<?xml encoding = "koi8-r"',
    ],
)
def test_the_declaration_of_a_document_is_found(page: bytes) -> None:
    assert decode(page + b"<p>").encoding == "koi8-r"


@pytest.mark.parametrize(
    "page",
    [
        b"<meta " + CONTENT + b">",
        b"<meta name=content-type " + CONTENT + b">",
        b"<meta http-equiv='content-type ' " + CONTENT + b">",
        b"<meta http-equiv=content-style-type " + CONTENT + b">",
        b"<meta http-equiv='content-type " + CONTENT + b">",
        b"<meta http-equiv=content-type content='charset=\"koi8-r'>",
        b"<meta http-equiv=content-type content='charset koi8-r'>",
        b"<meta " + PRAGMA + b" " + CONTENT + b" charset=bogus>",
        b"<meta charset=koi8-r",
        b"<meta charset='koi8-r>",
        b"<meta charset=koi8-r'>",
        b"<meta a=' charset=koi8-r><p>'",
        b"<p title='x>\n<meta charset=koi8-r>\n<p>",
        b"<!-- <meta charset=koi8-r>",
        b"<! <meta charset=koi8-r",
        b"<metacharset=koi8-r>",
        b"< meta charset=koi8-r>",
        b" " * 1024 + b"<textarea><meta charset=koi8-r>",
        b"<?xml version='1.0' encoding=koi8-r?>",
        b" <?xml version='1.0' encoding='koi8-r'?>",
        b"<?xml version='1.0'?> encoding='koi8-r'",
    ],
)
def test_what_only_looks_like_a_declaration_is_none(page: bytes) -> None:
    assert decode(page).encoding == "utf-8"


def test_a_hostile_page_is_scanned_in_linear_time() -> None:
    for piece in (b"<script>", b"<!--", b"<a b='", b"<meta charset=x ", b"<", b"<meta a='' "):
        decode(piece * (2_000_000 // len(piece)) + b"charset\xff")


@pytest.mark.parametrize(
    ("text", "codec", "encoding"),
    [
        (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "koi8-r", "koi8-u"),  # the same letters, and more
        (RUSSIAN, "iso8859-5", "iso-8859-5"),
        (RUSSIAN, "cp866", "ibm866"),
        (JAPANESE, "cp932", "shift_jis"),
        (JAPANESE, "euc-jp", "euc-jp"),
        ("กรุงเทพมหานครเป็นเมืองหลวงของประเทศไทย", "cp874", "windows-874"),
        ("Zażółć gęślą jaźń, książka w bibliotece jest nowa.", "iso-8859-2", "iso-8859-2"),
        ("İstanbul'da güneşli bir gün, şehir çok güzel ve ışıklı.", "cp1254", "windows-1254"),
        ("هذا كتاب جديد من المكتبة في المدينة", "iso8859-6", "iso-8859-6"),
        ("Šodien pilsētā ir saulains laiks, un bērni spēlējas parkā līdz vēlam vakaram.", "cp1257", "windows-1257"),
    ],
)
def test_detection_without_any_label(text, codec, encoding):
    got = decode(b"<html><body><p>" + text.encode(codec) + b"</p>")
    assert got.encoding == encoding
    assert text in got.text


def test_western_letters_survive_detection():
    assert GERMAN in decode(b"<p>" + GERMAN.encode("cp1252")).text


def test_wrong_label_falls_back():
    got = decode(RUSSIAN.encode(), "text/html; charset=shift_jis")
    assert (got.text, got.encoding) == (RUSSIAN, "utf-8")


def test_utf8_label_with_one_bad_byte_stays_utf8():
    got = decode(RUSSIAN.encode() + b"\xff" + RUSSIAN.encode(), "text/html; charset=utf-8")
    assert got.encoding == "utf-8"
    assert got.text.count("\ufffd") == 1


def test_utf8_cut_in_the_middle_of_a_letter_stays_utf8():
    assert decode(RUSSIAN.encode()[:-3]).encoding == "utf-8"


def test_nul_characters_go():
    assert decode(b"a\0b\0").text == "ab"


@given(st.binary(max_size=400), st.text(max_size=60))
@example(b"\xff\xfe\x00\xd8", "")
@example(b"\x1b$)C\x0e\xff", "text/html; charset=iso-2022-jp")
@example(b"\xff", "charset=\ud800")
def test_never_raises_and_is_clean(body, content_type):
    text = decode(body, content_type).text
    assert "\0" not in text
    text.encode()


@given(
    st.binary(max_size=300),
    st.sampled_from(["gb18030", "big5", "euc-kr", "hz-gb-2312", "utf-16", "x-user-defined", "koi8-u"]),
)
def test_every_label_gives_clean_text(body, label):
    decode(body, f"text/html; charset={label}").text.encode()


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=200))
def test_utf8_comes_back(text):
    assert decode(text.encode(), "text/html; charset=utf-8").text == text


@pytest.mark.parametrize(
    ("label", "codec", "text"),
    [
        ("shift_jis", "cp932", "①は～株式会社㈱髙島屋"),  # NEC's and IBM's letters
        ("euc-jp", "euc_jp", "日本語の頁"),
        ("euc-kr", "cp949", "똠방각하 펲시콜라"),  # syllables of the unified Hangul code
        ("big5", "big5hkscs", "香港嘅天氣好靚"),  # letters of Hong Kong
        ("gbk", "gb18030", "朱镕基说：天气很好"),
        ("gb2312", "gbk", "朱镕基"),  # pages that state the small set and use the large one
        ("tis-620", "cp874", "กรุงเทพ “มหานคร”"),
        ("iso-8859-9", "cp1254", "İstanbul’da “gün”"),
        ("windows-1256", "cp1256", "هذا كتاب جديد"),
        ("iso-8859-8-i", "iso8859_8", "ספר חדש"),
        ("koi8-u", "koi8_u", "Київ і Львів"),
        ("iso-2022-jp", "iso2022_jp", "日本語"),
    ],
)
def test_legacy_encodings_are_decoded_as_browsers_do(label: str, codec: str, text: str) -> None:
    found = decode(text.encode(codec), f"text/html; charset={label}")
    assert found.text == text


def test_the_euro_sign_of_gbk_and_a_short_u_of_koi8() -> None:
    assert decode(b"<p>\x80 100", "text/html; charset=gbk").text == "<p>€ 100"
    assert decode(b"\xf7\xc1\xae\xd2\xc1", "text/html; charset=koi8-u").text == "Ваўра"
