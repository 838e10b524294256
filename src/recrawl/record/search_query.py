"""A query in the terms of the index: tantivy parses it after its words have been replaced by what the index may have.

A word is looked for as it stands, then by its stem in every language that pages are in, as the last part of a compound,
and in other spellings; these score less, so that the exact form comes first. A word of a script without spaces is a
phrase of letter pairs. Phrases, words after `-`, and words of one field are looked for as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from recrawl.record.search_words import Stems, compound_prefix, folded, query_words, terms, unaccented
from recrawl.words import letter_runs, words

_PIECES = re.compile(
    r"""(?P<space>\s+)
    |(?P<asis>\w+:\s*(?:[\[{<>]|IN\s*\[)[^\]}]*[\]}]?|[\[{][^\]}]*[\]}]?|(?:AND|OR|NOT)(?=[\s(])|(?<!\S)\*(?!\S))
    |(?P<field>(?:title|text|url):)(?=["(\w])
    |"(?P<phrase>[^"]*)"(?P<how>~\d+|\*)?
    |(?P<sign>[-+()])
    |(?P<word>[^\s()"]+)""",
    re.VERBOSE,
)
_BOOST = re.compile(r"\^(\d+(?:\.\d+)?)$")
_FIELD = re.compile(r"[A-Za-z_]\w*:(?!//)")
_SLIGHT = 0.2
"""What a stem scores, of what the exact form does."""
_FIRST_PART = 3
"""Letters of the first part of a compound, at least."""

Completions = Callable[[str, str], Sequence[str]]
"""The terms of a field that begin with a text, the commonest first."""


@dataclass
class QueryWords:
    """What a query looks for, to mark it in a text: `words` in sequence, and stems by language."""

    phrases: set[tuple[str, ...]] = field(default_factory=set)
    stems: dict[str, set[str]] = field(default_factory=dict)


class QueryWriter:
    """Rewrites queries for an index."""

    def __init__(self, languages: Sequence[str], completions: Completions, stems: Stems) -> None:
        self._languages = languages
        self._completions = completions
        self._stems = stems
        self.wanted = QueryWords()

    def write(self, query: str) -> str:
        """The query as tantivy shall parse it."""
        found, field_name, excluded = [], "", False
        for piece in _PIECES.finditer(query):
            kind, text = piece.lastgroup, piece[0]
            if kind in ("phrase", "how"):
                text = self._phrase(piece["phrase"], piece["how"] or "", wanted=not excluded)
            elif kind == "word":
                text = self._word(text, field_name, excluded)
            found.append(text)
            if kind == "field":
                field_name = text
            elif kind in ("phrase", "how", "word", "space"):
                field_name = ""
            excluded = (kind == "sign" and text == "-") or text == "NOT" or (excluded and kind in ("space", "field"))
        return "".join(found)

    def _phrase(self, text: str, how: str, *, wanted: bool) -> str:
        if wanted:
            self._want(text)
        return f'"{_as_phrase(text)}"{how}'

    def _word(self, text: str, field_name: str, excluded: bool) -> str:
        """A word as it stands, and what else it may be in the index."""
        if not field_name and _FIELD.match(text):
            return text  # a field that tantivy knows, or complains of
        boost = _BOOST.search(text)
        text, boosted = (text[: boost.start()], boost[0]) if boost else (text, "")
        exact = _as_phrase(text)
        if not exact:
            return ""
        if not excluded and field_name in ("", "text:"):
            self._want(text)
        if field_name or excluded:
            return f'"{exact}"{boosted}'
        others = [*self._letter(exact), *self._inflected(text)]
        return f'("{exact}" {" ".join(others)}){boosted}' if others else f'"{exact}"{boosted}'

    def _letter(self, exact: str) -> list[str]:
        """All pairs that begin with a single letter of a script without spaces."""
        [(_, letters), *_] = letter_runs(exact)
        if letters is None or len(letters) != 1:
            return []
        return [
            f"{name}: IN [{' '.join(pairs)}]" for name in ("title", "text") if (pairs := self._completions(name, exact))
        ]

    def _inflected(self, text: str) -> list[str]:
        """The stems of a word in the languages of the index, and compounds that end with it."""
        found = words(folded(text.replace("_", " ")))
        if len(found) != 1:
            return []
        others, [plain] = [], unaccented(found)
        for language in self._languages:
            for stem in self._stems.query(language, found[0]):
                compounds = self._compounds(language, stem)
                self.wanted.stems.setdefault(language, set()).update([stem, *compounds])
                others.append(f'stems:"{language}:{stem}"^{_SLIGHT}')
                if stem != plain:  # a word that is its own stem is not among the stems
                    others.append(f'(+"{stem}" +stems:"{language}:")^{_SLIGHT}')
                others += [f'stems:"{language}<{compound[::-1]}"^{_SLIGHT / 2}' for compound in compounds]
        if (spelt := found[0].replace("ä", "ae").replace("ö", "oe").replace("ü", "ue")) and spelt != found[0]:
            self._want(spelt)
            others.append(f'"{spelt}"^{_SLIGHT}')
        return others

    def _compounds(self, language: str, stem: str) -> list[str]:
        """The stems of the compounds whose last part has this stem."""
        prefix = compound_prefix(language, stem)
        found = [term.partition("<")[2][::-1] for term in self._completions("stems", prefix)] if prefix else []
        return [compound for compound in found if len(compound) >= len(stem) + _FIRST_PART]

    def _want(self, text: str) -> None:
        if found := tuple(query_words(text)):
            self.wanted.phrases.add(found)


def _as_phrase(text: str) -> str:
    """The terms of a part of a query: those of a page, but its last letter may be followed by others there."""
    found = terms(text).split()
    runs = list(letter_runs(folded(text)))
    letters = runs[-1][1] if runs else None
    return " ".join(found if letters is None or len(letters) < 2 else found[:-1])
