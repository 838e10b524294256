"""One canonical spelling for each address, so that a page has one row and not twenty (spec K4).

The reading is WHATWG's, by `ada_url`: what a browser makes of a link is what we make of it. On top of that
come rules that make equal pages equal: no fragment, no user name, percent-encoding in one spelling, no
tracking or session parameters, parameters sorted by name. A trailing slash or an `index.html` is left alone,
because only a redirect can tell that the two are one page.

This is called for every link of every page. Most links are plain paths, and a plain path needs no parser: one
regular expression says so, and the rest is joining two strings.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np
from ada_url import join_url, normalize_url
from numpy.typing import NDArray

# Parameters that say where the reader came from and never what the page is.
_TRACKING = """
    utm_* fbclid gclid gclsrc dclid gbraid wbraid msclkid yclid ysclid twclid ttclid li_fat_id igshid igsh
    mc_cid mc_eid mkt_tok vero_id vero_conv _openstat _ga _gl _hsenc _hsmi __hstc __hssc __hsfp hsctatracking
    ef_id epik oly_anon_id oly_enc_id mtm_* matomo_* piwik_* pk_campaign pk_kwd pk_keyword pk_source pk_medium
    pk_content rb_clickid s_cid wickedid wt_mc wt.mc_id wt_zmc at_campaign at_medium
"""
DEFAULT_TRACKING = tuple(_TRACKING.split())

_SESSION = re.compile(
    r"j?sessionid|session_id|phpsessid|aspsessionid[a-z]*|sessid|oscsid|zenid|cfid|cftoken|jsessionidsso"
)
# These names are also used for things that are pages (a story's id), so the value has to look drawn by lot.
_MAYBE_SESSION = frozenset({"sid", "s", "session", "sess"})
_TOKEN = re.compile(r"(?=[^0-9]*[0-9])[0-9A-Za-z,-]{20,}")

_PATH_PARAMETER = re.compile(r";(?:jsessionid|phpsessid|sessionid|sid)=[^/;]*", re.IGNORECASE)
_COOKIELESS = re.compile(r"/\((?:[A-Za-z]\([^()/]*\))+\)(?=/|$)")  # ASP.NET: /(S(lit3py55t21z5v55))/page.aspx

_PLAIN = re.compile(r"/|/?[A-Za-z0-9_~-][A-Za-z0-9_~./-]*").fullmatch
_SPECIAL = re.compile(r"[?%#@;(]").search
_PERCENT = re.compile(r"%(?:[0-9A-Fa-f]{2})?")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

# An input this many times longer than the limit cannot be a page's address, whatever is cut from it.
_SLACK = 8


@dataclass(frozen=True, slots=True)
class UrlRules:
    """What to cut from an address, and how long it may be. `tracking` holds glob patterns of parameter names.

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
        return self._hash  # rules are part of a cache's key for every link, and the tuple is long

    def __reduce__(self) -> tuple[type[UrlRules], tuple[tuple[str, ...], int]]:
        return UrlRules, (self.tracking, self.max_length)  # a hash means nothing in another process

    def drops(self, name: str, value: str) -> bool:
        """Whether a query parameter says nothing about the page."""
        name = name.lower()
        if name in self._names or _SESSION.fullmatch(name) or self._globs.match(name):
            return True
        return name in _MAYBE_SESSION and _TOKEN.fullmatch(value) is not None


DEFAULT_RULES = UrlRules()


class Base(NamedTuple):
    """A canonical address that links are joined to, cut up once for all of them."""

    href: str
    origin: str
    directory: str


def canonical(url: str, base: str = "", rules: UrlRules = DEFAULT_RULES) -> str | None:
    """The one spelling of an address, or None when it is not one that can be crawled. Never raises.

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


@lru_cache(maxsize=512)
def prepare(base: str, rules: UrlRules = DEFAULT_RULES) -> Base | None:
    """What `join` needs to know of a page's address; None when that is no address."""
    href = canonical(base, "", rules)
    return None if href is None else Base(href, origin(href), directory(href))


def join(url: str, base: Base, rules: UrlRules = DEFAULT_RULES) -> str | None:
    """`canonical` for a link found on a page whose address is prepared."""
    if "#" in url:
        url = url[: url.index("#")]
    start = base.origin
    rest = url[len(start) :] if url.startswith(start) and url[len(start) : len(start) + 1] == "/" else url
    if _PLAIN(rest) and "/." not in rest:
        plain = start + rest if rest[0] == "/" else base.directory + rest
        return plain if len(plain) <= rules.max_length else None
    if len(url) > rules.max_length * _SLACK:
        return None
    try:
        return _clean(join_url(base.href, url), rules)
    except ValueError:
        return None


def _clean(href: str, rules: UrlRules) -> str | None:
    """Our own rules on top of what the WHATWG parser made of it."""
    if not href.startswith(("https://", "http://")):
        return None
    if _SPECIAL(href, 8):
        href = _cut(href, rules)
    return href if len(href) <= rules.max_length else None


def _cut(href: str, rules: UrlRules) -> str:
    address, _, query = href.partition("#")[0].partition("?")
    slash = address.index("/", 8)
    authority, path = address[:slash], address[slash:]
    if "@" in authority:
        scheme, _, rest = authority.partition("//")
        authority = f"{scheme}//{rest.rpartition('@')[2]}"
    if "%" in path:
        path = _PERCENT.sub(_one_spelling, path)
    if ";" in path or "(" in path:
        stripped = _COOKIELESS.sub("", _PATH_PARAMETER.sub("", path)) or "/"
        if stripped != path:  # `/..;jsessionid=1` has become `/..`, so it is read again
            path = normalize_url(authority + stripped)[len(authority) :]
    if query:
        query = _sorted(query, rules)
    return f"{authority}{path}?{query}" if query else authority + path


def _sorted(query: str, rules: UrlRules) -> str:
    """The parameters that matter, by name; equal names keep their order, which servers do look at."""
    if "%" in query:
        query = _PERCENT.sub(_one_spelling, query)
    kept = []
    for piece in query.split("&"):
        name, _, value = piece.partition("=")
        if piece and not rules.drops(name, value):
            kept.append((name, piece))
    kept.sort(key=lambda pair: pair[0])
    return "&".join(piece for _, piece in kept)


def _one_spelling(escape: re.Match[str]) -> str:
    """`%7e` is `~`, `%c3` is `%C3`. A stray `%` is escaped, lest its neighbours give it a meaning."""
    text = escape[0]
    if len(text) == 1:
        return "%25"
    character = chr(int(text[1:], 16))
    return character if character in _UNRESERVED else text.upper()


def origin(url: str) -> str:
    """Scheme, host and port of a canonical address.

    >>> origin("https://a.example:8443/b/c?d=/e")
    'https://a.example:8443'
    """
    return url[: url.find("/", 8)]


def directory(url: str) -> str:
    """A canonical address up to its last slash, the query left out.

    >>> directory("https://a.example/b/c?d=/e")
    'https://a.example/b/'
    """
    mark = url.find("?")
    return url[: (url.rfind("/") if mark < 0 else url.rfind("/", 0, mark)) + 1]


def key(url: str) -> int:
    """64 bits that stand for an address; equal on every machine and in every run.

    >>> key("https://a.example/") == key("https://a.example/")
    True
    """
    return int.from_bytes(blake2b(url.encode(), digest_size=8).digest(), "little", signed=True)


def keys(urls: Sequence[str]) -> NDArray[np.int64]:
    """`key` of each."""
    digests = b"".join([blake2b(url.encode(), digest_size=8).digest() for url in urls])
    return np.frombuffer(digests, dtype="<i8").astype(np.int64, copy=False)
