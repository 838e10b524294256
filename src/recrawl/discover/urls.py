"""The canonical form of a URL, so that a page has one row and not twenty (spec K4).

URLs are parsed as WHATWG specifies, by `ada_url`, as browsers do. Further rules make the URLs of equal pages equal: no
fragment, no user name, no dot after the host, one form of percent-encoding, no tracking or session parameters,
parameters sorted by name. A trailing slash or an `index.html` stays, because only a redirect can show that the two are
one page.

In the one form of percent-encoding, letters, digits and `-._~!*()` are literal, and all that RFC 3986 does not allow
is encoded, such as `|`, `[` and `]`, which browsers leave as they are and some servers reject.

This runs for every link of every page. Most links are plain paths that need no parser: one regular expression
recognises them, and two strings are joined.
"""

from __future__ import annotations

import fnmatch
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from ada_url import join_url, normalize_url

from recrawl.columns import Ints

# Parameters that identify where the reader came from, never the page.
_TRACKING = """
    utm_* fbclid gclid gclsrc dclid gbraid wbraid msclkid yclid ysclid twclid ttclid li_fat_id igshid igsh
    mc_cid mc_eid mkt_tok vero_id vero_conv _openstat _ga _gl _hsenc _hsmi __hstc __hssc __hsfp hsctatracking
    ef_id epik oly_anon_id oly_enc_id mtm_* matomo_* piwik_* pk_campaign pk_kwd pk_keyword pk_source pk_medium
    pk_content rb_clickid s_cid wickedid wt_mc wt.mc_id wt_zmc at_campaign at_medium
    srsltid gad_source gad_campaignid
"""
DEFAULT_TRACKING = tuple(_TRACKING.split())

CANONICAL_FORM = 2
"""Number of the canonical form, to be raised when it changes: stores then look for URLs in the older form."""

_SESSION = re.compile(
    r"j?sessionid|session_id|phpsessid|aspsessionid[a-z]*|sessid|oscsid|zenid|cfid|cftoken|jsessionidsso"
)
# These names also identify pages (the id of a story), so the value must look random.
_MAYBE_SESSION = frozenset({"sid", "s", "session", "sess"})
_TOKEN = re.compile(r"(?=[^0-9]*[0-9])[0-9A-Za-z,-]{20,}")

_PATH_PARAMETER = re.compile(r";(?:jsessionid|phpsessid|sessionid|sid)=[^/;]*", re.IGNORECASE)
_COOKIELESS = re.compile(r"/\((?:[A-Za-z]\([^()/]*\))+\)(?=/|$)")  # ASP.NET: /(S(lit3py55t21z5v55))/page.aspx

_PLAIN = re.compile(r"/|/?[A-Za-z0-9_~-][A-Za-z0-9_~./-]*").fullmatch
_SPECIAL = re.compile(r"[?%#@;('|\[\]^]|\.[/:]").search
_ESCAPED = re.compile(r"%(?:[0-9A-Fa-f]{2})?|['|\[\]^{}`\\]")
_LITERAL = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!*()")

_SLACK = 8
"""An input this many times longer than the limit is rejected unparsed: removing parameters could not make it fit."""


@dataclass(frozen=True, slots=True)
class UrlRules:
    """What to remove from a URL, and its maximum length. `tracking` holds glob patterns of parameter names.

    >>> canonical("https://a.example/?id=1&from=mail", rules=UrlRules(tracking=("from",)))
    'https://a.example/?id=1'
    """

    tracking: tuple[str, ...] = DEFAULT_TRACKING
    max_length: int = 2000
    _names: frozenset[str] = field(init=False, repr=False, compare=False)
    _globs: re.Pattern[str] = field(init=False, repr=False, compare=False)
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        lower = [pattern.lower() for pattern in self.tracking]
        globs = [pattern for pattern in lower if any(mark in pattern for mark in "*?[")]
        object.__setattr__(self, "_names", frozenset(lower).difference(globs))
        object.__setattr__(self, "_globs", re.compile("|".join(map(fnmatch.translate, globs)) or r"(?!)"))
        object.__setattr__(self, "_hash", hash((self.tracking, self.max_length)))

    def __hash__(self) -> int:
        return self._hash  # part of a cache key for every link, and the tuple is long

    def __reduce__(self) -> tuple[type[UrlRules], tuple[tuple[str, ...], int]]:
        return UrlRules, (self.tracking, self.max_length)  # hashes differ between processes

    def drops(self, name: str, value: str) -> bool:
        """Whether a query parameter is removed: it does not identify the page."""
        name = name.lower()
        if name in self._names or _SESSION.fullmatch(name) or self._globs.match(name):
            return True
        return name in _MAYBE_SESSION and _TOKEN.fullmatch(value) is not None


DEFAULT_RULES = UrlRules()


class Base(NamedTuple):
    """A canonical base URL, split once for all links that are joined to it."""

    href: str
    origin: str
    directory: str


def canonical(url: str, base: str = "", rules: UrlRules = DEFAULT_RULES) -> str | None:
    """The canonical form of a URL, or None if it cannot be crawled. Never raises.

    >>> canonical("../b/./c?z=1&a=2&utm_source=x#top", "HTTP://Example.com:80/d/e/f")
    'http://example.com/d/b/c?a=2&z=1'
    >>> canonical("mailto:someone@example.com") is None
    True
    """
    if base:
        prepared = prepare(base, rules)
        if prepared is not None:
            return join(url, prepared, rules)
    if len(url) > rules.max_length * _SLACK:
        return None
    try:
        return _clean(normalize_url(url), rules)
    except ValueError:
        return None


def listed_url(line: str, rules: UrlRules = DEFAULT_RULES) -> str | None:
    """The canonical URL on a line of a list; None if there is none, or more than that.

    >>> listed_url(" https://a.example/x "), listed_url("https://a.example/x the front page")
    ('https://a.example/x', None)
    """
    text = line.strip()
    return None if len(text.split(None, 1)) != 1 else canonical(text, rules=rules)


@lru_cache(maxsize=512)
def prepare(base: str, rules: UrlRules = DEFAULT_RULES) -> Base | None:
    """The base for `join`, from the URL of a page; None if the URL is invalid."""
    href = canonical(base, "", rules)
    return None if href is None else Base(href, origin(href), directory(href))


def join(url: str, base: Base, rules: UrlRules = DEFAULT_RULES) -> str | None:
    """`canonical` for a link on a page, with its prepared base."""
    mark = url.find("#")
    if mark == 0 or (mark > 0 and url[mark - 1] > " "):  # the parser keeps a space there, but not at the end
        url = url[:mark]
    start = base.origin
    rest, folder = url, base.directory
    if url.startswith(start) and url[len(start) : len(start) + 1] == "/":
        rest = url[len(start) :]
    elif url.startswith("../") and len(url) <= rules.max_length:
        rest, folder = _climb(url, folder)
    if _PLAIN(rest) and "/." not in rest:
        plain = start + rest if rest[0] == "/" else folder + rest
        return plain if len(plain) <= rules.max_length else None
    if len(url) > rules.max_length * _SLACK:
        return None
    try:
        return _clean(join_url(base.href, url), rules)
    except ValueError:
        return None


def _climb(url: str, folder: str) -> tuple[str, str]:
    """A relative URL without the `../` at its start, and the folder that it is relative to then.

    >>> _climb("../../b", "https://a.example/x/y/z/")
    ('b', 'https://a.example/x/')
    """
    rest, top = url, folder.find("/", 8)
    while rest.startswith("../"):
        rest = rest[3:]
        folder = folder[: max(folder.rfind("/", 0, -1), top) + 1]
    return (url, folder) if rest.startswith("/") else (rest, folder)


def _clean(href: str, rules: UrlRules) -> str | None:
    """Apply our rules to the output of the WHATWG parser."""
    if not href.startswith(("https://", "http://")):
        return None
    if _SPECIAL(href, 7):
        href = _cut(href, rules)
    return href if len(href) <= rules.max_length else None


def _cut(href: str, rules: UrlRules) -> str:
    rest, _, query = href.partition("#")[0].partition("?")
    slash = rest.index("/", 8)
    authority, path = _without_dot(rest[:slash]), rest[slash:]
    if "@" in authority:
        scheme, _, rest = authority.partition("//")
        authority = f"{scheme}//{rest.rpartition('@')[2]}"
    path = _ESCAPED.sub(_normal_escape, path)
    if ";" in path or "(" in path:
        stripped = _COOKIELESS.sub("", _PATH_PARAMETER.sub("", path)) or "/"
        if stripped != path:  # `/..;jsessionid=1` has become `/..`: parse it again
            path = normalize_url(authority + stripped)[len(authority) :]
    if query:
        query = _sorted(query, rules)
    return f"{authority}{path}?{query}" if query else authority + path


def _sorted(query: str, rules: UrlRules) -> str:
    """The parameters that stay, sorted by name; equal names keep their order, which can matter to servers."""
    query = _ESCAPED.sub(_normal_escape, query)
    kept = []
    for piece in query.split("&"):
        name, _, value = piece.partition("=")
        if piece and not rules.drops(name, value):
            kept.append((name, piece))
    kept.sort(key=lambda pair: pair[0])
    return "&".join(piece for _, piece in kept)


def _without_dot(authority: str) -> str:
    """Scheme, host and port without a dot after the host. Raises ValueError if nothing is left of the host.

    >>> _without_dot("https://a.example.:8443")
    'https://a.example:8443'
    """
    name, colon, port = authority.rpartition(":")
    if not (colon and port.isdigit()):
        name, colon, port = authority, "", ""
    if not name.endswith("."):
        return authority
    # Parsed again, as the rest may be an IP address.
    return normalize_url(f"{name.rstrip('.')}{colon}{port}").rstrip("/")


def _normal_escape(escape: re.Match[str]) -> str:
    """`%7e` becomes `~`, `|` becomes `%7C`; a stray `%` is escaped, so that no escape arises from its neighbours."""
    text = escape[0]
    if len(text) == 1:
        return f"%{ord(text):02X}"
    character = chr(int(text[1:], 16))
    return character if character in _LITERAL else text.upper()


def origin(url: str) -> str:
    """Scheme, host and port of a canonical URL.

    >>> origin("https://a.example:8443/b/c?d=/e")
    'https://a.example:8443'
    """
    return url[: url.find("/", 8)]


def directory(url: str) -> str:
    """A canonical URL up to its last slash, without the query.

    >>> directory("https://a.example/b/c?d=/e")
    'https://a.example/b/'
    """
    mark = url.find("?")
    return url[: (url.rfind("/") if mark < 0 else url.rfind("/", 0, mark)) + 1]


def key(url: str) -> int:
    """A 64-bit hash of a URL, the same on every machine and in every run.

    >>> key("https://a.example/") == key("https://a.example/")
    True
    """
    return int.from_bytes(_hash(url), "little", signed=True)


def key_bytes(url: str) -> bytes:
    """The `key` of a URL as an int64 of this machine.

    >>> int(np.frombuffer(key_bytes("https://a.example/"), np.int64)[0]) == key("https://a.example/")
    True
    """
    return _hash(url) if sys.byteorder == "little" else _hash(url)[::-1]


def keys(urls: Sequence[str]) -> Ints:
    """The `key` of each URL."""
    digests = b"".join(map(_hash, urls))
    return np.frombuffer(digests, dtype="<i8").astype(np.int64, copy=False)


def _hash(url: str) -> bytes:
    return blake2b(url.encode(), digest_size=8).digest()
