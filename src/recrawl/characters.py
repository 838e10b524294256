"""Texts that every database, file and protocol can hold: valid Unicode, without NUL, of bounded length.

A body's bytes decode to such a text (`compare.parsing.encoding`). What is decoded again inside it need not be one: an
escape of JSON can write half of a character, or a NUL.
"""

from __future__ import annotations

import re
import unicodedata

REPLACEMENT = "\ufffd"
_JOINER = "\u200d"
_MARKS = 20
"""Marks of one letter, at most."""
_UNFIT = re.compile("[\0\ud800-\udfff]")


def storable(text: str, most: int | None = None) -> str:
    r"""The text, at most so many characters of it; U+FFFD stands for NUL and for halves of surrogate pairs.

    >>> storable("a\0b\ud83d"), storable("a title", 4), storable("हिन्दी", 3)
    ('a\ufffdb\ufffd', 'a ti', 'हि')
    """
    if most is not None and len(text) > most:
        text = text[: _border(text, most)]
    if is_storable(text):
        return text
    return _UNFIT.sub(REPLACEMENT, text)


def _border(text: str, most: int) -> int:
    """Where to cut a longer text: before a letter whose marks would be cut off, or the other half of a joined sign."""
    least, end = max(0, most - _MARKS), most
    while end > least and (unicodedata.category(text[end])[0] == "M" or _JOINER in text[end - 1 : end + 1]):
        end -= 1
    return end if end > least else most


def is_storable(text: str) -> bool:
    """Whether a text is valid Unicode without NUL."""
    if not text.isascii():
        try:
            text.encode()  # a fraction of the time that a search by pattern takes
        except UnicodeEncodeError:
            return False
    return "\0" not in text
