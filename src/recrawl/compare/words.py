"""The words of a text: runs of letters and digits in lower case; in scripts without spaces, single characters."""

from __future__ import annotations

import re

_SPACELESS = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_SPACELESS}]|[^\W\u2000-\u2fff{_SPACELESS}]+")
# The fast path handles text in Latin or Cyrillic letters: the UTF-8 lead bytes of those characters,
_CONTINUATION = bytes(range(0x80, 0xC0))
_PLAIN = bytes(range(0x80)) + _CONTINUATION + b"\xc2\xc3\xc4\xc5\xd0\xd1\xe2"
# their signs that are no letters (all of U+2000-2FFF), and ASCII with its signs as spaces.
_SIGNS = re.compile(rb"\xe2[\x80-\xbf]{2}|\xc2[\x80-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf]|\xc3[\x97\xb7]")
_ASCII = bytes(c if c > 127 or chr(c).isalnum() or c == ord("_") else ord(" ") for c in range(256))


def words(text: str) -> list[str]:
    """Return the words of a text, in order.

    >>> words("It's 7 o'clock: über 日本")
    ['it', 's', '7', 'o', 'clock', 'über', '日', '本']
    """
    text = text.lower()
    data = text.encode("utf-8", "replace")
    if data.translate(None, _PLAIN):
        return _WORD.findall(text)
    if not data.isascii():
        data = _SIGNS.sub(b" ", data)
    return data.translate(_ASCII).decode().split()
