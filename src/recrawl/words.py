"""The words of a text in any language: the one place that says where a word begins and ends, and how many there are.

A word is a run of letters, digits and the marks that belong to them. Chinese, Japanese, Thai, Lao, Khmer and Burmese
have no spaces between words: there each letter with its marks is one. That needs no dictionary, and texts are compared
as exactly as by words. Where the number of words matters to a reader, the mean length of words in these scripts counts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

# Letters of scripts without spaces: Chinese and Japanese,
_HAN = "\u3005-\u3007\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff"
_HAN += "\uf900-\ufaff\uff66-\uff9d\U00020000-\U000323af"
# and Thai, Lao, Burmese, Khmer, New Tai Lue, Tai Tham.
_THAI = "\u0e01-\u0e30\u0e32\u0e33\u0e40-\u0e46\u0e81-\u0eb0\u0eb2\u0eb3\u0ebd-\u0ec6\u0edc-\u0edf\u1000-\u102a\u103f"
_THAI += "\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e\u1780-\u17b3\u17d7\u17dc"
_THAI += "\u1980-\u19c9\u1a20-\u1a54\ua9e0-\ua9fe\uaa60-\uaa7a\uaa7e\uaa7f"
_HANGUL = "\uac00-\ud7a3"
PAIRED = _HAN + _HANGUL
"""Letters whose runs are looked for by pairs of letters, as the inside of a class of a pattern."""
_STACKED = "\u17d2\u1039"
"""Signs that put the next letter beneath the one before."""
_LETTERS_PER_WORD = {"han": 1.8, "thai": 3.1}
"""Mean length of words, as dictionaries cut the texts of programs (1.6 to 2.0, and 3.0 to 3.6)."""

# The fast path handles text in Latin or Cyrillic letters: the UTF-8 lead bytes of those characters,
_CONTINUATION = bytes(range(0x80, 0xC0))
_PLAIN = bytes(range(0x80)) + _CONTINUATION + b"\xc2\xc3\xc4\xc5\xd0\xd1\xe2"
# their signs that are no letters (all of U+2000-2FFF), and ASCII with its signs as spaces.
_SIGNS = re.compile(rb"\xe2[\x80-\xbf]{2}|\xc2[\x80-\xa9\xab-\xb1\xb4\xb6-\xb8\xbb\xbf]|\xc3[\x97\xb7]")
_ASCII = bytes(c if c > 127 or chr(c).isalnum() or c == ord("_") else ord(" ") for c in range(256))
_ASCII_CODES = bytes(range(128))
_SMALL_ASCII = bytes(ord(chr(c).lower()) if c < 128 else c for c in _ASCII)
_FEW_CHANGES = 20
"""Different signs and capitals of a text that are replaced one after the other, in less time than by a pattern."""
_NO_LEAD = bytes(c for c in range(256) if c not in b"\xe0\xe1\xe3\xe4\xe5\xe6\xe7\xe8\xe9\xea\xef\xf0")
"""All but the UTF-8 lead bytes of scripts without spaces."""
_SOFT = re.compile("[\u00ad\u200c\u200d]")
"""Characters inside a word that are no part of it: a soft hyphen, and the joiners of Arabic and Indic letters."""
_FIRST_SPACELESS = "\u0e01"
_SOFT_BYTES = tuple(soft.encode() for soft in "\u00ad\u200c\u200d")
_SPACELESS_SHARE = 0.1
"""Share of a text's characters from which its words are not those between spaces."""


def words(text: str) -> list[str]:
    """Return the words of a text in lower case, in order; in scripts without spaces, its letters.

    >>> words("It's 7 o'clock: über 日本")
    ['it', 's', '7', 'o', 'clock', 'über', '日', '本']
    >>> words("ที่นี่ हिन्दी Uni\u00adversität")
    ['ที่', 'นี่', 'हिन्दी', 'universität']
    """
    plain = plain_words(text)
    return _PATTERNS.word.findall(without_soft(text.lower())) if plain is None else plain.split()


def plain_words(text: str) -> str | None:
    """A text in Latin or Cyrillic letters, in lower case and with its signs as spaces, in a tenth of a pattern's time;
    None for others.

    >>> plain_words("It's 7 o'clock"), plain_words("日本")
    ('it s 7 o clock', None)
    """
    data = text.encode("utf-8", "replace")
    if not data.isascii():
        changes = {}
        for letter in set(data.translate(None, _ASCII_CODES).decode()):
            small = letter.lower().encode()
            if small.translate(None, _PLAIN):
                return None
            small = b"" if small in _SOFT_BYTES else _SIGNS.sub(b" ", small)
            if small != (code := letter.encode()):
                changes[code] = small
        if len(changes) > _FEW_CHANGES:
            return _without_signs(text.lower().encode("utf-8", "replace")).decode()
        for code, small in changes.items():
            data = data.replace(code, small)
    return data.translate(_SMALL_ASCII).decode()


def without_signs(text: str) -> str:
    """A text with spaces for the signs of Latin and Cyrillic scripts; other characters stay.

    >>> without_signs("a-b 日本。")
    'a b 日本。'
    """
    return _without_signs(text.encode("utf-8", "replace")).decode()


def _without_signs(data: bytes) -> bytes:
    if not data.isascii():
        for soft in _SOFT_BYTES:
            if soft in data:
                data = data.replace(soft, b"")
        data = _SIGNS.sub(b" ", data)
    return data.translate(_ASCII)


def word_places(text: str) -> Iterator[tuple[str, int, int]]:
    """The `words` of a text as it stands, with their first and last places in it."""
    return ((found[0], found.start(), found.end()) for found in _PATTERNS.word.finditer(text))


def letter_runs(text: str) -> Iterator[tuple[str, Sequence[str] | None]]:
    """The words of a text; a run without spaces, or a Korean word, with its letters.

    >>> [(run, letters and list(letters)) for run, letters in letter_runs("Thai ไทย, 日本")]
    [('Thai', None), ('ไทย', ['ไ', 'ท', 'ย']), ('日本', ['日', '本'])]
    """
    for found in _PATTERNS.run.finditer(text):
        kind, run = found.lastgroup, found[0]
        yield run, None if kind == "word" else run if kind == "letters" else _PATTERNS.thai.findall(run)


def without_soft(text: str) -> str:
    """A text without soft hyphens and joiners.

    >>> without_soft("Uni\u00adversität")
    'Universität'
    """
    if text.isascii() or not ("\u00ad" in text or "\u200c" in text or "\u200d" in text):
        return text
    return _SOFT.sub("", text)


def count_words(text: str) -> int:
    """The number of words that a reader sees: those between spaces; without spaces, by the mean length of a word.

    >>> count_words("one two three"), count_words("今天北京的天气很好"), count_words("Python で書く")
    (3, 5, 3)
    """
    if not has_spaceless(text):
        return len(text.split())
    patterns = _PATTERNS
    rest, thai = patterns.thai.subn(" ", text)
    rest, han = patterns.han.subn(" ", rest)
    spaced = sum(1 for part in rest.split() if any(map(str.isalnum, part)))
    return spaced + round(thai / _LETTERS_PER_WORD["thai"] + han / _LETTERS_PER_WORD["han"])


def cut_words(text: str, most: int) -> list[str]:
    """Cut a text into pieces of at most so many words, at spaces; without spaces, after a sign if there is one.

    >>> cut_words("one two three", 2), cut_words("今天北京的天气很好。明天也好。", 6)
    (['one two', 'three'], ['今天北京的天气很好。', '明天也好。'])
    """
    if not has_spaceless(text):
        parts = text.split(" ")
        return [" ".join(parts[start : start + most]) for start in range(0, len(parts), most)]
    pieces, piece, size = list[str](), "", 0
    for part in _PATTERNS.clause.findall(text):
        for short in [part] if count_words(part) <= most else _slices(part, most):
            count = count_words(short)
            if piece and size + count > most:
                pieces.append(piece.strip())
                piece, size = "", 0
            piece += short
            size += count
    return [*pieces, piece.strip()] if piece.strip() else pieces


def tokens(text: str) -> list[str]:
    """A text in pieces for a comparison word by word: words, letters of scripts without spaces, spaces, signs.

    >>> tokens("气温100度, at 9")
    ['气', '温', '100', '度', ',', ' ', 'at', ' ', '9']
    """
    return _PATTERNS.token.findall(text)


def has_spaceless(text: str) -> bool:
    """Whether a text has letters of scripts without spaces.

    >>> has_spaceless("日本"), has_spaceless("हिन्दी"), has_spaceless("Русский")
    (True, False, False)
    """
    return bool(_leads(text)) and _PATTERNS.spaceless.search(text) is not None


def mostly_spaceless(*texts: str) -> bool:
    """Whether so many of their letters are of scripts without spaces that spaces do not separate their words.

    >>> mostly_spaceless("今天 天气"), mostly_spaceless("The word 中 means middle, or so I was told")
    (True, False)
    """
    least = _SPACELESS_SHARE * sum(map(len, texts))
    return sum(map(_leads, texts)) > least and sum(map(_spaceless_letters, texts)) > least


def share_of_words(counts: Mapping[str, int]) -> float:
    """How many words the counted `words` make for a reader, where some are single letters.

    >>> round(share_of_words({"python": 1, "天": 2, "气": 1}), 2)
    2.67
    """
    return sum(count * _weight(word) for word, count in counts.items())


def _weight(word: str) -> float:
    if word < _FIRST_SPACELESS or not _PATTERNS.spaceless.match(word):
        return 1.0
    return 1 / _LETTERS_PER_WORD["han" if _PATTERNS.han.match(word) else "thai"]


def _spaceless_letters(text: str) -> int:
    return sum(1 for _ in _PATTERNS.spaceless.finditer(text))


def _leads(text: str) -> int:
    """The number of characters that may be of a script without spaces: at most so many are."""
    return 0 if text.isascii() else len(text.encode("utf-8", "replace").translate(None, _NO_LEAD))


def _slices(text: str, most: int) -> list[str]:
    """Cut a long stretch into equal parts at letters, each with at most so many words."""
    units = _PATTERNS.unit.findall(text)
    size = max(1, len(units) * most // max(1, count_words(text)))
    return ["".join(units[start : start + size]) for start in range(0, len(units), size)]


class _Patterns:
    """Patterns with all marks of Unicode in them: each made when a text first needs it."""

    @cached_property
    def marks(self) -> str:
        return "\u00ad\u200c\u200d" + "".join(
            map(_ranges, ((0x300, 0x3400), (0xA000, 0xAC00), (0xF900, 0xFE00), (0xFE10, 0x1F000)))
        )

    @cached_property
    def spaceless(self) -> re.Pattern[str]:
        return re.compile(f"[{_HAN}{_THAI}]")

    @cached_property
    def han(self) -> re.Pattern[str]:
        return re.compile(f"[{_HAN}]")

    @cached_property
    def thai(self) -> re.Pattern[str]:
        return re.compile(self._thai)

    @cached_property
    def word(self) -> re.Pattern[str]:
        letters = rf"[^\W\u2000-\u2fff{_HAN}{_THAI}]++"
        return re.compile(rf"[{_HAN}]|{letters}(?:[{self.marks}]++(?:{letters})?+)*+|{self._thai}")

    @cached_property
    def run(self) -> re.Pattern[str]:
        letters = rf"[^\W\u2000-\u2fff{_HAN}{_THAI}{_HANGUL}]++"
        word = rf"{letters}(?:[{self.marks}]++(?:{letters})?+)*+"
        return re.compile(rf"(?P<letters>[{_HAN}{_HANGUL}]++)|(?P<word>{word})|(?P<thai>(?:{self._thai})++)")

    @cached_property
    def token(self) -> re.Pattern[str]:
        letters, marks = rf"[^\W{_HAN}{_THAI}]++", f"[{self.marks}]"
        spaced = f"{letters}(?:{marks}++(?:{letters})?+)*+"
        return re.compile(rf"[{_HAN}]|{spaced}|\s+|{self._thai}|[^\w\s]{marks}*+|.")

    @cached_property
    def unit(self) -> re.Pattern[str]:
        return re.compile(rf"{self._thai}|\S[{self.marks}]*+|\s+")

    @cached_property
    def clause(self) -> re.Pattern[str]:
        return re.compile(r"[^\s。！？；.!?;，、]*+(?:[。！？；.!?;，、]++|\s++)|[^\s。！？；.!?;，、]++")

    @property
    def _thai(self) -> str:
        """A letter, the letters beneath it, and the marks of both."""
        return f"[{_THAI}](?:[{_STACKED}][{_THAI}]|[{self.marks}])*+"


def _ranges(block: tuple[int, int]) -> str:
    """The combining marks of a block of Unicode, as ranges of a pattern. Variation selectors are none."""
    found: list[list[int]] = []
    for code in range(*block):
        if unicodedata.category(chr(code)) in ("Mn", "Mc"):
            if found and found[-1][1] == code - 1:
                found[-1][1] = code
            else:
                found.append([code, code])
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in found)


_PATTERNS = _Patterns()
