"""Rules of seeds: which pages each seed brings, and the limits of a site with several seeds.

A seed is *below* another one of its site if its path begins with that one's: https://a.example/docs/x is below
https://a.example/docs/ and https://a.example/. Rules protect servers, so a seed never loosens those of its site:

limit     the sum of the limits of the seeds that are below no other; a seed without a limit does not lift it
delay     the longest; a seed below another one can only raise it
exclude   patterns of a seed hold for the seeds below it
scope     a seed that names neither depth nor include, on a site where another one has a depth or patterns, adds its
          own page only; links of that page are judged by the rules of the other seeds
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recrawl.compare.levels import stored_level
from recrawl.crawl.options import SiteOptions
from recrawl.discover.scope import Scope, site
from recrawl.discover.urls import UrlRules, canonical
from recrawl.errors import UsageError
from recrawl.settings import Seed, check_choice, requisite_level


def seed_url(text: str, rules: UrlRules | None = None) -> str:
    """The URL of a seed as people write it: `example.org` is `https://example.org/`.

    >>> seed_url("example.org/docs"), seed_url("localhost:8000")
    ('https://example.org/docs', 'https://localhost:8000/')
    """
    written = text.strip()
    if "://" not in written:
        host = written.partition("/")[0]
        name, _, port = host.rpartition(":") if ":" in host else (host, "", "")
        plausible = "." in name or name in ("localhost", "") or name.startswith("[")
        written = f"https://{written}" if host and plausible and (not port or port.isdigit()) and name else ""
    url = canonical(written, rules=rules or UrlRules()) if written else None
    if url is None:
        raise UsageError(f"'{text}' is not a valid URL; use https://host/path")
    return url


@dataclass(frozen=True, slots=True)
class _Placed:
    """A seed with its place on its site."""

    seed: Seed
    url: str
    site: str
    path: str

    @classmethod
    def of(cls, seed: Seed, rules: UrlRules) -> _Placed:
        url = seed_url(seed.url, rules)
        return cls(seed, url, site(url), url[url.find("/", 8) :])

    def is_below(self, other: _Placed) -> bool:
        folder = other.path if other.path.endswith("/") else f"{other.path}/"
        return self.site == other.site and self.path != other.path and self.path.startswith(folder)

    @property
    def is_restricted(self) -> bool:
        return self.seed.depth is not None or bool(self.seed.include) or bool(self.seed.exclude)


def scopes_of(seeds: Iterable[Seed], rules: UrlRules) -> list[Scope]:
    """The scope of each seed, under the rules of the other seeds of its site."""
    placed = [_Placed.of(seed, rules) for seed in seeds]
    return [_scope(own, [other for other in placed if other is not own and other.site == own.site]) for own in placed]


def _scope(own: _Placed, others: list[_Placed]) -> Scope:
    seed = own.seed
    alone = (
        seed.depth is None
        and not seed.include
        and any(other.is_restricted and not other.is_below(own) for other in others)
    )
    above = [pattern for other in others if own.is_below(other) for pattern in other.seed.exclude]
    return Scope(
        seed=own.url,
        depth=0 if alone else seed.depth,
        limit=seed.limit,
        include=seed.include,
        exclude=tuple(dict.fromkeys([*seed.exclude, *above])),
    )


def site_options(seeds: Iterable[Seed], rules: UrlRules, default_delay: float) -> dict[str, SiteOptions]:
    """The options of each site, by host and port, joined from all of its seeds."""
    by_site: dict[str, list[_Placed]] = {}
    for seed in seeds:
        placed = _Placed.of(seed, rules)
        by_site.setdefault(placed.site, []).append(placed)
    return {name: _joined(placed, default_delay) for name, placed in by_site.items()}


def _joined(placed: list[_Placed], default_delay: float) -> SiteOptions:
    top = [own.seed for own in placed if not any(own.is_below(other) for other in placed)]
    below = [own.seed for own in placed if own.seed not in top]
    limits = [seed.limit for seed in top if seed.limit is not None]
    delays = [default_delay if seed.delay is None else seed.delay for seed in top]
    delays += [seed.delay for seed in below if seed.delay is not None]
    renders = [seed.render for seed in (*below, *top) if seed.render]
    pictures = [seed.screenshots for seed in (*below, *top) if seed.screenshots]
    looks = [seed.requisites for seed in (*below, *top) if seed.requisites]
    levels = [seed.change for seed in (*below, *top) if seed.change]
    return SiteOptions(
        private=any(own.seed.allow_private for own in placed),
        delay=max(delays) if any(own.seed.delay is not None for own in placed) else None,
        limit=sum(limits) if limits else None,
        change=stored_level(levels[-1]) if levels else None,
        requisites=requisite_level(looks[-1]) if looks else None,
        render=check_choice("render", renders[-1]) if renders else "",
        screenshots=check_choice("screenshots", pictures[-1]) if pictures else "",
    )
