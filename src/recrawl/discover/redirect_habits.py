"""Trailing slashes and index files, learned only from a server's redirects (spec K4).

`/news` and `/news/` may be one page or two, and only the server knows. When it has redirected one form to the other
three times, and never answered in both, new URLs are rewritten to its form before they are requested: this saves a
download for every such link. A page that answers in the other form ends the habit for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

_MIN_SEEN = 3
_NEVER = -1
_KINDS = ("add-slash", "drop-slash", "drop-index")
_INDEX = ("/index.html", "/index.htm", "/index.php")


def kind_of(source: str, target: str) -> str:
    """The habit that a permanent redirect shows, '' for none.

    >>> kind_of("https://a.example/news", "https://a.example/news/")
    'add-slash'
    >>> kind_of("https://a.example/news/index.html", "https://a.example/news/")
    'drop-index'
    >>> kind_of("https://a.example/news", "https://a.example/sport/")
    ''
    """
    for kind in _KINDS:
        if _rewritten(source, kind) == target != source:
            return kind
    return ""


@dataclass(slots=True)
class RedirectHabits:
    """How often each habit was observed; -1 after a contradiction."""

    seen: dict[str, int]

    @classmethod
    def load(cls, text: str) -> RedirectHabits:
        """The habits from the text of `dump`.

        >>> RedirectHabits.load("add-slash=3").apply("https://a.example/x")
        'https://a.example/x/'
        """
        pairs = (part.partition("=") for part in text.split(",") if part)
        return cls({name: int(count) for name, _, count in pairs if name in _KINDS})

    def dump(self) -> str:
        """The habits as a short text, for the store."""
        return ",".join(f"{name}={count}" for name, count in sorted(self.seen.items()))

    def learn(self, source: str, target: str) -> bool:
        """Update from a permanent redirect; True if the habits have changed."""
        kind = kind_of(source, target)
        count = self.seen.get(kind, 0)
        if not kind or count == _NEVER or count >= _MIN_SEEN:
            return False
        self.seen[kind] = count + 1
        return True

    def contradict(self, url: str) -> bool:
        """Update from a URL that answered with a page; True if that ends a habit."""
        if not self.seen:
            return False
        ended = [kind for kind, count in self.seen.items() if count > 0 and _rewritten(url, kind) != url]
        for kind in ended:
            self.seen[kind] = _NEVER
        return bool(ended)

    def apply(self, url: str) -> str:
        """The URL in the server's form."""
        if not self.seen:
            return url
        for kind, count in self.seen.items():
            if count >= _MIN_SEEN:
                url = _rewritten(url, kind)
        return url


def _rewritten(url: str, kind: str) -> str:
    """The URL in the form of a server with this habit; unchanged if the habit does not apply."""
    parts = urlsplit(url)
    path = parts.path
    name = path.rsplit("/", 1)[-1]
    if kind == "add-slash" and name and "." not in name:
        path += "/"
    elif kind == "drop-slash" and len(path) > 1 and path.endswith("/"):
        path = path.rstrip("/")
    elif kind == "drop-index":
        for index in _INDEX:
            if path.endswith(index):
                path = path[: -len(index) + 1]
    return url if path == parts.path else parts._replace(path=path).geturl()
