"""Trailing slashes and index files, learned only from what a server's redirects say (spec K4).

`/news` and `/news/` may be one page or two, and only the server knows. When it has redirected one form to the other
often enough, and never answered both, new addresses are put in its form before they are asked for: a download saved
for every such link. A page that answers in the other form ends the habit for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urlsplit

_ENOUGH = 3
_NEVER = -1
_KINDS = ("add-slash", "drop-slash", "drop-index")
_INDEX = ("/index.html", "/index.htm", "/index.php")


def kind_of(source: str, target: str) -> str:
    """Which habit a permanent redirect shows, '' for none.

    >>> kind_of("https://a.example/news", "https://a.example/news/")
    'add-slash'
    >>> kind_of("https://a.example/news/index.html", "https://a.example/news/")
    'drop-index'
    >>> kind_of("https://a.example/news", "https://a.example/sport/")
    ''
    """
    for kind in _KINDS:
        if _shape(source, kind) == target != source:
            return kind
    return ""


@dataclass(slots=True)
class RedirectHabits:
    """How often each habit was seen; -1 once it was contradicted."""

    seen: dict[str, int]

    @classmethod
    def load(cls, text: str) -> RedirectHabits:
        """From what `dump` gave.

        >>> Habits.load("add-slash=3").apply("https://a.example/x")
        'https://a.example/x/'
        """
        pairs = (part.partition("=") for part in text.split(",") if part)
        return cls({name: int(count) for name, _, count in pairs if name in _KINDS})

    def dump(self) -> str:
        """As a short text."""
        return ",".join(f"{name}={count}" for name, count in sorted(self.seen.items()))

    def learn(self, source: str, target: str) -> bool:
        """Take in a permanent redirect; True when something was learned."""
        kind = kind_of(source, target)
        count = self.seen.get(kind, 0)
        if not kind or count == _NEVER or count >= _ENOUGH:
            return False
        self.seen[kind] = count + 1
        return True

    def contradict(self, url: str) -> bool:
        """Take in that this very address answered with a page; True when a habit ends by it."""
        if not self.seen:
            return False
        ended = [kind for kind, count in self.seen.items() if count > 0 and _shape(url, kind) != url]
        for kind in ended:
            self.seen[kind] = _NEVER
        return bool(ended)

    def apply(self, url: str) -> str:
        """The address in the server's own form."""
        if not self.seen:
            return url
        for kind, count in self.seen.items():
            if count >= _ENOUGH:
                url = _shape(url, kind)
        return url


def _shape(url: str, kind: str) -> str:
    """The address as a server with this habit would have it; unchanged where the habit does not apply."""
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
