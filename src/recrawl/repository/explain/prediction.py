"""How likely a page has changed since its last visit, in numbers and in sentences."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np

from recrawl.choose import policy_of
from recrawl.crawl.options import CrawlOptions
from recrawl.record.storage import Storage
from recrawl.repository.lookup import page_of
from recrawl.repository.results.values import Row, at
from recrawl.repository.results.words import count, percent
from recrawl.settings import Settings
from recrawl.times import iso, moment, span, stamp

_VISITED = ("live", "missing", "gone")


@dataclass(frozen=True, slots=True)
class Prediction:
    """A page's probability of change, and its basis."""

    url: str
    state: str
    time: datetime
    probability: float | None
    """The change probability now: that it has changed since its last visit; None before its first download."""
    enough_history: bool
    """Whether the page has enough visits of its own."""
    basis: str
    """What estimates it: the name of the active policy, or `change rate` for a policy that estimates none."""
    model_visits: int
    """Visits of the site that were answered, and that the estimate learned from."""
    site_rate: float | None
    """The share of visits to other pages of the site that found a change."""
    history: Row
    """Of the page: visits, compared, changes, first, last, last_change, low, high."""
    seconds_since_visit: float | None
    relatives: list[Row]
    """Pages whose changes go with those of this page."""
    content: Row
    """Title, bytes, versions and kind of its changes."""

    def as_dict(self) -> Row:
        """As `recrawl why --chance --json` prints it."""
        row = asdict(self)
        return {"url": row.pop("url"), "state": row.pop("state"), "at": iso(row.pop("time").timestamp()), **row}

    def sentences(self, *, relatives: bool = True) -> list[str]:
        """The prediction in sentences."""
        forecast = self.as_dict()
        about = _about_relatives(forecast) if relatives else []
        return [*verdict(forecast), *history(forecast), *about, *about_content(forecast)]

    def __str__(self) -> str:
        return "\n".join(self.sentences())


def predict(folder: Path, values: Settings, options: CrawlOptions, url: str, now: float) -> Prediction:
    """The prediction for the page with this URL."""
    with Storage(folder) as storage:  # a connection of its own: the book needs temporary tables
        page = page_of(storage, url)
        return _prediction(storage, values, options, page, now)


def _prediction(storage: Storage, values: Settings, options: CrawlOptions, page: Row, now: float) -> Prediction:
    from recrawl.crawl.reports import change_probability as change  # lazy: loads the policies
    from recrawl.crawl.reports import predictions  # lazy: a wrong URL must be refused at once

    visits = predictions.site_visits(storage.store, page["site"])
    own = predictions.own_history(visits, page["id"])
    policy = policy_of(values["policy"])
    times = ("first", "last", "last_change")
    return Prediction(
        url=page["url"],
        state=page["state"],
        time=at(now),
        probability=change.change_probability(storage, options, policy, values["seed"], page["id"]),
        enough_history=own.compared >= predictions.MIN_COMPARISONS,
        basis=change.estimated_by(policy),
        model_visits=len(visits),
        site_rate=predictions.site_rate(visits, page["id"]),
        history={**asdict(own), **{name: iso(getattr(own, name)) for name in times}},
        seconds_since_visit=None if own.last is None else now - own.last,
        relatives=_relatives(storage, visits, page),
        content=_content(storage, page),
    )


def _relatives(storage: Storage, visits: Any, page: Row) -> list[Row]:
    from recrawl.crawl.reports import relatives  # lazy: loads scipy

    found = relatives.relatives_of(visits, page["id"])
    if not found:
        return []
    rows = storage.store.pages.locations(relative.page for relative in found)
    links = _links(storage, [page["id"], *rows])
    targets = links.get(page["id"], frozenset())
    described = []
    for relative in found:
        url, folder = rows[relative.page]
        linked = page["id"] in links.get(relative.page, frozenset())
        how = [
            *(["same directory"] if folder == page["folder"] else ["same site"]),
            *(["linked from it"] if relative.page in targets else []),
            *(["links to it"] if linked else []),
        ]
        described.append({"url": url, **asdict(relative), "relation": ", ".join(how)})
    return described


def _links(storage: Storage, pages: list[int]) -> dict[int, frozenset[int]]:
    """The pages that these pages link to."""
    packed = storage.store.links.of_pages(pages)
    return {page: frozenset(np.frombuffer(targets, "<i4").tolist()) for page, targets in packed.items()}


def _content(storage: Storage, page: Row) -> Row:
    """Size, versions and kind of its changes."""
    versions = storage.store.versions.of_page(page["id"])
    changes = [version for version in versions[1:] if version.changed]
    steps = [version.divergence for version in changes if version.divergence is not None]
    judged = [bool(version.significant) for version in changes if version.significant is not None]
    return {
        "title": versions[-1].title if versions else "",
        "bytes": page["size"],
        "versions": len(versions),
        "mean_divergence": math.fsum(steps) / len(steps) if steps else None,
        "last_divergence": steps[-1] if steps else None,
        "significant": sum(judged) / len(judged) if judged else None,
        "with_new_links": sum(version.new_links > 0 for version in changes) / len(changes) if changes else None,
    }


def sentences(forecast: Row) -> list[str]:
    """A prediction in sentences, without the relatives."""
    return [*verdict(forecast), *history(forecast), *about_content(forecast)]


def verdict(forecast: Row) -> list[str]:
    """The probability of change, and its basis."""
    probability, rate = forecast["probability"], forecast["site_rate"]
    usual = "" if rate is None else f" {percent(rate)} of the visits to other pages of the site found a change."
    if probability is None:
        return [f"Not enough history: it was never downloaded.{usual}"]
    since = span(max(0.0, forecast["seconds_since_visit"]))
    if forecast["state"] not in _VISITED:
        return [f"It is {forecast['state']} and not visited."]
    sentence = f"{percent(probability)} likely to have changed since its last visit, {since} ago"
    if not forecast["enough_history"]:
        return [f"Not enough history; best guess: {sentence}.{usual}"]
    return [f"{sentence}; estimated by {estimator(forecast['basis'])}."]


def estimator(basis: str) -> str:
    """What estimated a change probability, in words."""
    return "the change rates of the page and its site" if basis == "change rate" else f"the policy {basis}"


def history(forecast: Row) -> list[str]:
    """Its own visits and changes."""
    own = forecast["history"]
    if not own["visits"]:
        return []
    if not own["compared"]:
        return [f"History: visited once, {stamp(_seconds(own['first']))}."]
    interval = f"80 % interval: {100 * own['low']:.0f}–{100 * own['high']:.0f} % per visit"
    last = f", last {stamp(_seconds(own['last_change']))}" if own["last_change"] else ""
    return [f"History: {count(own['changes'], 'change')} at {count(own['compared'], 'later visit')}{last}; {interval}."]


def _about_relatives(forecast: Row) -> list[str]:
    if not forecast["relatives"]:
        return ["Related pages: none changes together with it more often than by chance."]
    return [
        "Related pages:",
        *(f"  {relative['url']} {about_relative(relative)}" for relative in forecast["relatives"]),
    ]


def about_relative(relative: Row) -> str:
    """How a related page's changes go with those of the page."""
    when = f"{span(relative['lag'])} before it" if relative["lag"] else "together with it"
    since = "; it has changed since" if relative["since"] else ""
    return (
        f"({relative['relation']}) changes {when}: weight {relative['weight']:.2f}, "
        f"{relative['together']} of {relative['seen']} times{since}"
    )


def about_content(forecast: Row) -> list[str]:
    """Size, versions and kind of its changes."""
    content = forecast["content"]
    if not content["versions"]:
        return []
    text = f"Content: {content['bytes']:,} bytes, {count(content['versions'], 'version')}"
    if content["mean_divergence"] is not None:
        text += f"; a change replaces {percent(content['mean_divergence'])} of its words on average"
    if content["with_new_links"]:
        text += f"; {percent(content['with_new_links'])} of its changes bring new links"
    return [f"{text}."]


def _seconds(text: str | None) -> float | None:
    return None if text is None else moment(text, 0.0)
