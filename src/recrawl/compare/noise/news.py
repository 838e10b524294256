"""Which changes of a page are news at the level of content, so that no filter is proposed that would hide one.

Judged with what is known of the site, and with what the page's whole history tells about lines that come and go. That a
number changes at nearly every visit does not make it noise here, unless its words say that it counts visitors or tells
the time: it may be the number of a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from recrawl.compare.content.changed_lines import changed_lines
from recrawl.compare.content.judge import LineChange, LineEvidence, content_words, judge
from recrawl.compare.content.lines import Line, lines
from recrawl.compare.content.own_history import OwnHistory
from recrawl.compare.noise.candidates import never_news
from recrawl.compare.noise.filters import NO_NOISE, Noise
from recrawl.compare.parsing.document import parse


class NewsJudge:
    """Judges the changes between consecutive versions of a page."""

    def __init__(self, versions: Sequence[str], known: LineEvidence) -> None:
        """`versions` is HTML, oldest first; `known` tells about the other pages of the site."""
        self._versions = versions
        self._known = known
        self._lines: dict[Noise, list[list[Line]]] = {}
        history = OwnHistory()
        for old, new in pairwise(self._read(NO_NOISE)):
            history.note(changed_lines(old, new))
        self._rotating = OwnHistory(left=history.left)
        self.news = tuple(self._is_news(change, NO_NOISE) for change in range(len(versions) - 1))
        """Whether each change is news."""

    def hidden(self, noise: Noise) -> int:
        """How many of the news a filter would hide: what is left of them is not content."""
        return sum(not self._is_news(change, noise) for change, news in enumerate(self.news) if news)

    def _is_news(self, change: int, noise: Noise) -> bool:
        """Whether a change is one of content under a filter, also without what is never news."""
        both = Noise(noise.selectors, (*noise.patterns, *never_news()), noise.frame, noise.content)
        return self._content(change, noise) and self._content(change, both)

    def _content(self, change: int, noise: Noise) -> bool:
        old, new = self._read(noise)[change : change + 2]
        found: Sequence[LineChange] = self._rotating.explain(changed_lines(old, new))
        return judge(found, content_words(old, new), self._known).content

    def _read(self, noise: Noise) -> list[list[Line]]:
        if noise not in self._lines:
            self._lines[noise] = [lines(parse(html), noise) for html in self._versions]
        return self._lines[noise]
