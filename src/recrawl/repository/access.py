"""Access rules: how the crawler gets in to sites behind a login or a proxy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recrawl.crawl.options import CrawlOptions
from recrawl.discover.urls import UrlRules, origin
from recrawl.errors import NotKnown, UnknownName, UsageError
from recrawl.fetch.access import JARS, Accesses, AccessRule
from recrawl.fetch.fetcher import Request
from recrawl.repository.seed_rules import seed_url

if TYPE_CHECKING:
    from recrawl.repository.results.runs import Attempt

_WAIT = 0.2
ENTRIES = {
    "headers": "Header lines, each as `Name: value`.",
    "cookies": "Cookies to begin with, each as `name=value`.",
    "keep_cookies": "Keep the cookies that the server sets, also for later runs.",
    "cookie_file": "Keep them in this file, in the format of wget and curl; default: a file in `private/`.",
    "user": "User of HTTP basic authentication.",
    "password": "Its password; a reference.",
    "token": "Bearer token; a reference.",
    "user_agent": "User agent; also the one that robots.txt is read for.",
    "proxy": "`http://host:port`, `https://host:port`, `socks5://host:port` or `socks5h://host:port`.",
    "proxy_user": "User of the proxy.",
    "proxy_password": "Its password; a reference.",
    "ca_file": "Trust the authorities in this PEM file, and no others.",
    "http2": "Offer HTTP/2 to the server.",
    "login_url": "The page with the login form.",
    "login_fields": "Fields of the form to fill in, each as `name=value`.",
    "login_form": "CSS selector of the form; default: the one with a password field.",
    "login_browser": "Log in with Chromium, as the form needs JavaScript; needs the extra `browser`.",
}
"""Entries of a rule, with their help."""


def access_rules(rules: Iterable[AccessRule], urls: UrlRules) -> tuple[AccessRule, ...]:
    """The rules, checked, with the origins of their sites; `UsageError` for a wrong one."""
    found: dict[str, AccessRule] = {}
    for rule in rules:
        site = origin(seed_url(rule.site, urls)) if rule.site else ""
        own = replace(rule, site=site)
        own.check()
        if site in found:
            raise UsageError(f"recrawl.toml has two [[access]] parts for {site or 'all sites'}; join them")
        if own.ca_file and not Path(own.ca_file).expanduser().is_file():
            raise UsageError(f"the ca_file '{own.ca_file}' of {own.where} does not exist")
        found[site] = replace(own, ca_file=str(Path(own.ca_file).expanduser()) if own.ca_file else "")
    return tuple(found.values())


def changed_rules(
    before: Iterable[AccessRule], site: str, named: Mapping[str, Any], clear: Iterable[str] = ()
) -> tuple[AccessRule, ...]:
    """The rules with that of a site changed or added; the entries in `clear` go back to their defaults.

    Values may be texts, as the command line gives them, one or several in a list.
    """
    where = origin(seed_url(site)) if site else ""
    wanted = {name.replace("-", "_") for name in clear}
    for name in sorted((wanted | set(named)) - set(ENTRIES)):
        raise UnknownName("entry of an access rule", name, ENTRIES)
    rules = {origin(seed_url(rule.site)) if rule.site else "": rule for rule in before}
    cleared = {item.name: item.default for item in fields(AccessRule) if item.name in wanted}
    rules[where] = replace(rules.get(where, AccessRule(where)), **{**cleared, **_values(named)})
    access_rules([rules[where]], UrlRules())
    return tuple(rules.values())


def _values(named: Mapping[str, Any]) -> dict[str, Any]:
    """Entries in the types of the rule."""
    found: dict[str, Any] = {}
    for name, value in named.items():
        default, texts = getattr(AccessRule(), name), list(value) if isinstance(value, (list, tuple)) else [value]
        if isinstance(default, tuple):
            found[name] = tuple(texts)
        elif len(texts) != 1:
            raise UsageError(f"'{name}' is given {len(texts)} times; it has one value")
        elif isinstance(default, bool) and texts[0] not in (True, False, "true", "false"):
            raise UsageError(f"invalid value of '{name}'; use true or false")
        else:
            found[name] = texts[0] in (True, "true") if isinstance(default, bool) else texts[0]
    return found


def without_rule(before: Iterable[AccessRule], site: str) -> tuple[AccessRule, ...]:
    """The rules without that of a site."""
    where = origin(seed_url(site)) if site else ""
    rules = {origin(seed_url(rule.site)) if rule.site else "": rule for rule in before}
    if where not in rules:
        raise NotKnown(f"{where or 'the part for all sites'} has no access rule; 'recrawl access' lists them")
    return tuple(rule for name, rule in rules.items() if name != where)


def try_access(folder: Path, options: CrawlOptions, url: str) -> Attempt:
    """Request a page as a crawl would, after a login if its site has one; nothing is recorded but the cookies."""
    from recrawl.crawl.login.stage import LoginProcess, login_task  # lazy: loads the crawler
    from recrawl.fetch.http import fetch_one  # lazy: loads libcurl
    from recrawl.repository.results.runs import Attempt  # lazy: for commands that write

    page = seed_url(url, options.rules)
    accesses = Accesses(options.access, folder / JARS)
    profile, private = accesses.of(page), options.of_site(origin(page)).private
    if profile is not None and profile.rule.login_url:
        process = LoginProcess(login_task(profile, options, private=private), options)
        while (result := process.result(options.timer(), wait=_WAIT)) is None:
            pass
        process.close()
        if result.problem:
            return Attempt(page, failure=f"login failed: {result.problem}")
        if profile.jar is not None:
            profile.jar.add(result.cookies)
    request = Request(page, private=private)
    answer = fetch_one(request, agent=options.agent, limits=options.limits, profiles=accesses.of)
    accesses.save()
    failure = f"{answer.failure.value}: {answer.detail}" if answer.failure else ""
    return Attempt(page, answer.status, failure, answer.header("location"), len(answer.body))
