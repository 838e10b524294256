"""Getting in: what requests to a site carry besides the URL, and the way they take.

    AccessRule   an [[access]] part of recrawl.toml: secrets by reference
    Profile      the same with its secrets, for the requests of one run
    Accesses     which profile a URL has

Credentials (headers, cookies, passwords, tokens) go to the origin that the rule names, and nowhere else: each request,
also one that follows a redirect, is looked up by its own URL. Proxy, CA file and user agent hold for http and https of
the host. A rule without a site holds for all others, and has no credentials.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from recrawl.errors import UsageError
from recrawl.fetch.ip_filter import refuses
from recrawl.secrets import REDACTED, has_reference, reveal

if TYPE_CHECKING:
    import pycurl

    from recrawl.fetch.cookies import CookieJar

Headers = tuple[tuple[str, str], ...]
_OWN = ("host", "user-agent", "accept-encoding", "connection", "content-length", "transfer-encoding", "cookie")
"""Headers that a rule cannot set: recrawl does, or another entry does."""
_SECRET_NAMES = ("auth", "token", "key", "secret", "password", "session", "credential")
JARS = "private"
"""The folder of a repository with the cookies of its sites."""
_PROXIES = ("http", "https", "socks5", "socks5h", "socks4", "socks4a")
_LOCAL_NAMES = ("localhost", ".localhost", ".local", ".internal", ".home.arpa")
_CREDENTIALS = ("cookies", "cookie_file", "keep_cookies", "user", "password", "token", "login_url", "login_fields")


@dataclass(frozen=True, slots=True)
class AccessRule:
    """How requests to a site get in; to all other sites if `site` is empty."""

    site: str = ""
    headers: tuple[str, ...] = ()
    """Header lines, as `Name: value`."""
    cookies: tuple[str, ...] = ()
    """Cookies to begin with, as `name=value`."""
    keep_cookies: bool = False
    """Keep the cookies that the server sets; they outlive the run."""
    cookie_file: str = ""
    """Where they are kept, in Netscape's format; a file of the repository if empty."""
    user: str = ""
    password: str = ""
    token: str = ""
    """Sent as `Authorization: Bearer`."""
    user_agent: str = ""
    proxy: str = ""
    """http://host:port, https://..., socks5://... or socks5h://..."""
    proxy_user: str = ""
    proxy_password: str = ""
    ca_file: str = ""
    """Certificates of the authorities to trust, as PEM, instead of the usual ones."""
    http2: bool = False
    login_url: str = ""
    """The page with the login form."""
    login_fields: tuple[str, ...] = ()
    """Its fields, as `name=value`."""
    login_form: str = ""
    """CSS selector of the form; the one with a password if empty."""
    login_browser: bool = False
    """Whether the form needs JavaScript: log in with a browser (the extra `browser`)."""

    @property
    def where(self) -> str:
        """The rule in error messages."""
        return f"the [[access]] part of {self.site or 'all sites'}"

    def check(self) -> None:
        """Raise `UsageError` if an entry is wrong, or holds a secret instead of a reference to one."""
        self._check_secrets()
        if bool(self.password) != bool(self.user):
            raise UsageError(f"{self.where} needs both 'user' and 'password', or neither")
        if self.user and self.token:
            raise UsageError(f"{self.where} has both a password and a token; use one of them")
        if bool(self.login_url) != bool(self.login_fields):
            raise UsageError(f"{self.where} needs both 'login_url' and 'login_fields', or neither")
        if self.login_url and not self.login_url.startswith(("https://", "http://")):
            raise UsageError(f"invalid login_url '{self.login_url}' in {self.where}; use https://host/path")
        if not self.user_agent.isprintable():
            raise UsageError(f"the user_agent in {self.where} has control characters; remove them")
        _check_proxy(self.proxy, self.where)

    def _check_secrets(self) -> None:
        for line in self.headers:
            _check_header(line, self.where)
        for name in ("password", "token", "proxy_password"):
            if getattr(self, name) and not has_reference(getattr(self, name)):
                raise UsageError(_not_stored(name, self.where))
        for pair in (*self.cookies, *self.login_fields):
            if "=" not in pair:
                raise UsageError(f"invalid entry in {self.where}; write cookies and login_fields as name=value")
        for pair in (pair for pair in self.cookies if not has_reference(pair)):
            raise UsageError(_not_stored(f"cookie '{pair.partition('=')[0]}'", self.where))
        for pair in (pair for pair in self.login_fields if _is_secret(pair) and not has_reference(pair)):
            raise UsageError(_not_stored(f"login field '{pair.partition('=')[0]}'", self.where))
        named = next((name for name in _CREDENTIALS if getattr(self, name)), "")
        if not self.site and (named or any(map(has_reference, self.headers))):
            raise UsageError(f"{self.where} has credentials ({named or 'headers'}); name the site that they are for")


def _check_header(line: str, where: str) -> None:
    name, colon, value = line.partition(":")
    if not colon or not name.isascii() or not name.strip() or " " in name.strip() or not line.isprintable():
        raise UsageError(f"invalid header in {where}; write it as 'Name: value'")
    if name.strip().lower() in _OWN:
        raise UsageError(f"the header '{name}' in {where} cannot be set; see user_agent and cookies for those")
    if _is_secret(name) and not has_reference(value):
        raise UsageError(_not_stored(f"header '{name}'", where))


def _check_proxy(proxy: str, where: str) -> None:
    scheme, _, rest = proxy.partition("://")
    if proxy and (scheme not in _PROXIES or not rest or not proxy.isprintable() or " " in proxy):
        raise UsageError(f"invalid proxy in {where}; use http://host:port or socks5://host:port")
    if "@" in rest:
        raise UsageError(f"the proxy in {where} contains a user; use proxy_user and proxy_password")


def _is_secret(pair: str) -> bool:
    name = pair.partition("=")[0].lower()
    return any(word in name for word in (*_SECRET_NAMES, "pass", "pwd", "pin"))


def _not_stored(what: str, where: str) -> str:
    return f"the {what} in {where} is written out; use ${{NAME}} (environment) or ${{file:PATH}} instead"


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Profile:
    """A rule with its secrets. It shows nothing of them when it is printed."""

    rule: AccessRule
    headers: tuple[str, ...] = ()
    archived: tuple[str, ...] = ()
    """The header lines as the archive may have them."""
    proxy_login: tuple[str, str] = ("", "")
    login_fields: tuple[tuple[str, str], ...] = ()
    jar: CookieJar | None = None

    def __repr__(self) -> str:
        return f"Profile({self.rule.site!r})"

    def lines(self, *, archived: bool) -> list[str]:
        """Header lines, with their secrets or as the archive may have them."""
        if not archived:
            return list(self.headers)
        return [*self.archived, f"Cookie: {REDACTED}"] if self.jar is not None else list(self.archived)

    def refuses(self, url: str) -> str | None:
        """Why the proxy is not asked for a URL. The proxy resolves names, so only what the URL says can be checked."""
        host = urlsplit(url).hostname or ""
        if not self.rule.proxy:
            return None
        if host.replace(".", "").isdigit() or ":" in host:
            reason = refuses(host)
        else:
            reason = "a local name" if "." not in host or f".{host}".endswith(_LOCAL_NAMES) else None
        return f"{host} is {reason}" if reason else None

    def prepare(self, handle: pycurl.Curl) -> None:
        """Set the way of this profile's requests on a handle that only they use."""
        import pycurl  # lazy: commands that only read have rules but make no requests

        rule = self.rule
        if rule.user_agent:
            handle.setopt(pycurl.USERAGENT, rule.user_agent.encode())
        if rule.ca_file:
            handle.setopt(pycurl.CAINFO, rule.ca_file)
        if rule.http2:
            handle.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_2TLS)
        if rule.proxy:
            handle.setopt(pycurl.PROXY, rule.proxy)
            handle.setopt(pycurl.NOPROXY, "")
        if self.proxy_login[0]:
            handle.setopt(pycurl.PROXYUSERNAME, self.proxy_login[0])
            handle.setopt(pycurl.PROXYPASSWORD, self.proxy_login[1])
        if self.jar is not None:
            handle.setopt(pycurl.SHARE, self.jar.share)
            handle.setopt(pycurl.COOKIEFILE, "")

    def without_credentials(self) -> Profile:
        """The way without what is secret, for http where the rule names https."""
        rule = replace(self.rule, **{name: type(getattr(self.rule, name))() for name in _CREDENTIALS})
        return Profile(rule, proxy_login=self.proxy_login)


def without_cookies(headers: Headers, fields: dict[str, str]) -> tuple[Headers, dict[str, str]]:
    """Headers of an answer without the values of its cookies, which are secrets."""
    kept = ((name, value, name.lower() == "set-cookie") for name, value in headers)
    shown = tuple((name, f"{value.partition('=')[0]}={REDACTED}" if hide else value) for name, value, hide in kept)
    return shown, {**fields, "set-cookie": REDACTED}


def profile_of(rule: AccessRule, host: str, jar_file: Path | None) -> Profile:
    """Resolve the references of a rule; `UsageError` names what is missing."""
    from recrawl.fetch.cookies import CookieJar  # lazy: loads libcurl

    where = rule.where
    lines = [(line.partition(":")[0].strip(), reveal(line.partition(":")[2].strip(), where)) for line in rule.headers]
    secret = [has_reference(line) for line in rule.headers]
    if rule.user:
        pair = f"{reveal(rule.user, where)}:{reveal(rule.password, where)}"
        lines.append(("Authorization", f"Basic {base64.b64encode(pair.encode()).decode()}"))
    if rule.token:
        lines.append(("Authorization", f"Bearer {reveal(rule.token, where)}"))
    secret += [True] * (len(lines) - len(secret))
    fields = (pair.partition("=") for pair in rule.login_fields)
    jar = None
    if rule.keep_cookies or rule.cookies or rule.cookie_file or rule.login_url:
        jar = CookieJar(Path(rule.cookie_file).expanduser() if rule.cookie_file else jar_file)
        jar.load(where)
        jar.give((reveal(pair, where) for pair in rule.cookies), host, secure=rule.site.startswith("https:"))
    return Profile(
        rule,
        tuple(f"{name}: {value}" for name, value in lines),
        tuple(f"{name}: {REDACTED if hide else value}" for (name, value), hide in zip(lines, secret, strict=True)),
        (reveal(rule.proxy_user, where), reveal(rule.proxy_password, where)),
        tuple((name.strip(), reveal(value, where)) for name, _, value in fields),
        jar,
    )


def _joined(rule: AccessRule, common: AccessRule | None) -> AccessRule:
    """A rule with what it does not say itself taken from the rule for all sites."""
    if common is None:
        return rule
    own = {line.partition(":")[0].lower() for line in rule.headers}
    inherited = tuple(line for line in common.headers if line.partition(":")[0].lower() not in own)
    if not rule.proxy:
        rule = replace(rule, proxy=common.proxy, proxy_user=common.proxy_user, proxy_password=common.proxy_password)
    return replace(
        rule,
        headers=rule.headers + inherited,
        user_agent=rule.user_agent or common.user_agent,
        ca_file=rule.ca_file or common.ca_file,
    )


@dataclass(slots=True)
class Accesses:
    """The profiles of a run, by origin. `rules` have origins as their sites, each once."""

    rules: Sequence[AccessRule] = ()
    folder: Path | None = None
    """Where the cookies of sites are kept."""
    _by_origin: dict[str, Profile] = field(default_factory=dict)
    _others: Profile | None = None

    def __post_init__(self) -> None:
        common = next((rule for rule in self.rules if not rule.site), None)
        self._others = profile_of(common, "", None) if common else None
        for rule in (rule for rule in self.rules if rule.site):
            host = rule.site.partition("//")[2]
            jar_file = self.folder / f"{host.replace(':', '_')}.txt" if self.folder else None
            profile = profile_of(_joined(rule, common), urlsplit(rule.site).hostname or "", jar_file)
            self._by_origin[rule.site] = profile
            other = "http" if rule.site.startswith("https:") else "https"
            self._by_origin.setdefault(f"{other}://{host}", profile.without_credentials())

    def of(self, url: str) -> Profile | None:
        """The profile for a URL; None for a plain request."""
        if not self._by_origin:
            return self._others
        return self._by_origin.get(url[: (url + "/").find("/", url.find("//") + 2)], self._others)

    def save(self) -> None:
        """Save the cookies of all sites."""
        for profile in self._by_origin.values():
            if profile.jar is not None:
                profile.jar.save()
