"""URLs for people: hosts and words in their own letters, unless these imitate others."""

from __future__ import annotations

import re
import unicodedata

from ada_url import idna

_ESCAPED = re.compile("(?:%[89A-Fa-f][0-9A-Fa-f])+")
_HOST = re.compile(r"(?<=://)[^/?#:]+")
_TOGETHER = (frozenset(("HAN", "HIRAGANA", "KATAKANA", "LATIN")), frozenset(("HAN", "BOPOMOFO", "LATIN")),
             frozenset(("HAN", "HANGUL", "LATIN")))  # fmt: skip
"""Scripts that the words of a language mix."""
_LOOKALIKES = frozenset("асԁеһіјӏорԛѕԝхуъЬҽпгѵѡ" + "αινορυ" + "օոսհցզ")
"""Letters of other scripts that look like Latin ones."""


def readable_url(url: str) -> str:
    """A URL with its host and its words in their letters.

    A host stays as it is if its letters are of several scripts, or all look like Latin ones. Only letters and digits
    are decoded: what separates parts of a URL, or changes the direction of writing, is not.

    >>> readable_url("https://xn--bcher-kva.example/%E5%8C%97%E4%BA%AC?q=%D8%A7&a=%2F")
    'https://bücher.example/北京?q=ا&a=%2F'
    >>> readable_url("https://xn--80ak6aa92e.com/%E2%80%AE")  # Cyrillic letters that look like apple
    'https://xn--80ak6aa92e.com/%E2%80%AE'
    """
    if "%" in url:
        url = _ESCAPED.sub(lambda found: _decoded(found[0]), url)
    return _HOST.sub(lambda found: readable_host(found[0]), url, count=1) if "xn--" in url else url


def readable_host(host: str) -> str:
    """A host in its own letters, unless these imitate others.

    >>> readable_host("xn--r8jz45g.xn--zckzah"), readable_host("xn--pypal-4ve.com")
    ('例え.テスト', 'xn--pypal-4ve.com')
    """
    labels = host.split(".")
    shown = [idna.decode(label) if label.startswith("xn--") else label for label in labels]
    latin = labels[-1].isascii() and not labels[-1].startswith("xn--")
    return ".".join(
        own if own and own != label and _is_plain(own, latin=latin) else label
        for label, own in zip(labels, shown, strict=True)
    )


def _is_plain(label: str, *, latin: bool) -> bool:
    """Whether a label is of one script and does not imitate another; `latin`: its top-level domain is in Latin."""
    letters = [letter for letter in label if letter.isalpha()]
    scripts = {unicodedata.name(letter, "?").partition(" ")[0].replace("CJK", "HAN") for letter in letters}
    if len(scripts) > 1 and not any(scripts <= together for together in _TOGETHER):
        return False
    if not all(letter.isalnum() or letter in "-・" or unicodedata.category(letter)[0] == "M" for letter in label):
        return False
    return scripts == {"LATIN"} or not (latin and letters and all(letter in _LOOKALIKES for letter in letters))


def _decoded(escaped: str) -> str:
    """Percent-encoded bytes as text, if they are letters, digits and their marks."""
    try:
        text = bytes.fromhex(escaped.replace("%", "")).decode()
    except UnicodeDecodeError:
        return escaped
    return text if all(unicodedata.category(letter)[0] in "LNM" for letter in text) else escaped
