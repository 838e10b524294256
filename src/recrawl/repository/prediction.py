"""How likely a page has changed by now, told in numbers and in sentences."""

from __future__ import annotations

from dataclasses import asdict
from statistics import fmean
from typing import Any

import numpy as np

from recrawl.record import questions
from recrawl.record.storage import Storage
from recrawl.repository.times import iso, moment, span, stamp
from recrawl.repository.words import count

_VISITED = ("live", "missing", "gone")


def foretold(repository: Storage, page: dict[str, Any], now: float) -> dict[str, Any]:
    """All that can be said about a page's next change, for machines."""
    # The model needs libraries that are slow to load; `recrawl --help` and bad addresses must not wait for them.
    from recrawl.crawl.reports import predictions  # lazy: loads slowly

    store = repository.store
    visits = predictions.site_visits(store, page["site"])
    own = predictions.own_history(visits, page["id"])
    chance = predictions.chance_of(store, visits, page["id"], now)
    times = ("first", "last", "last_change")
    return {
        "url": page["url"],
        "state": page["state"],
        "at": iso(now),
        "probability": chance.probability,
        "enough_history": own.compared >= predictions.ENOUGH,
        "basis": chance.basis,
        "model_visits": chance.rows,
        "site_rate": chance.site_rate,
        "history": {**asdict(own), **{name: iso(getattr(own, name)) for name in times}},
        "seconds_since_visit": None if own.last is None else now - own.last,
        "relatives": _relatives(repository, visits, page),
        "content": _content(repository, page),
    }


def _relatives(repository: Storage, visits: Any, page: dict[str, Any]) -> list[dict[str, Any]]:
    from recrawl.crawl.reports import relatives  # lazy: loads slowly

    found = relatives.relatives_of(visits, page["id"])
    if not found:
        return []
    db = repository.store.db
    sql = "SELECT id, url, folder FROM pages WHERE id IN (SELECT value FROM json_each(?))"
    rows = {row[0]: row[1:] for row in db.execute(sql, (str([relative.page for relative in found]),))}
    links = _links(repository, [page["id"], *rows])
    targets = links.get(page["id"], frozenset())
    told = []
    for relative in found:
        address, folder = rows[relative.page]
        linked = page["id"] in links.get(relative.page, frozenset())
        how = [
            *(["same directory"] if folder == page["folder"] else ["same site"]),
            *(["linked from it"] if relative.page in targets else []),
            *(["links to it"] if linked else []),
        ]
        told.append({"url": address, **asdict(relative), "relation": ", ".join(how)})
    return told


def _links(repository: Storage, pages: list[int]) -> dict[int, frozenset[int]]:
    """What some pages link to."""
    sql = "SELECT page, targets FROM links WHERE page IN (SELECT value FROM json_each(?))"
    rows = repository.store.db.execute(sql, (str(pages),))
    return {page: frozenset(np.frombuffer(packed, "<i4").tolist()) for page, packed in rows}


def _content(repository: Storage, page: dict[str, Any]) -> dict[str, Any]:
    """What its versions say about its changes."""
    versions = questions.versions(repository.store.db, page["id"])
    changes = [version for version in versions[1:] if version.changed]
    steps = [version.divergence for version in changes if version.divergence is not None]
    judged = [bool(version.significant) for version in changes if version.significant is not None]
    return {
        "title": versions[-1].title if versions else "",
        "bytes": page["size"],
        "versions": len(versions),
        "mean_divergence": fmean(steps) if steps else None,
        "last_divergence": steps[-1] if steps else None,
        "significant": fmean(judged) if judged else None,
        "with_new_links": fmean(version.new_links > 0 for version in changes) if changes else None,
    }


def sentences(told: dict[str, Any]) -> list[str]:
    """The same for people, without the relatives."""
    return [*verdict(told), *history(told), *about_content(told)]


def verdict(told: dict[str, Any]) -> list[str]:
    """How likely it has changed, and who says so."""
    chance, rate = told["probability"], told["site_rate"]
    usual = "" if rate is None else f" Visits to other pages of the site found a change {rate:.0%} of the time."
    if chance is None:
        return [f"Not enough history yet: it was never downloaded.{usual}"]
    since = span(max(0.0, told["seconds_since_visit"]))
    if told["state"] not in _VISITED:
        return [f"It is {told['state']}, and not visited."]
    sentence = f"It has changed with a probability of {chance:.0%} since it was last looked at, {since} ago."
    if not told["enough_history"]:
        guess = f"the best guess is {chance:.0%} that it has changed since its last visit, {since} ago."
        return [f"Not enough history yet; {guess}{usual}"]
    if told["basis"] == "model":
        return [f"{sentence} So says a model of the site, learned from {count(told['model_visits'], 'visit')}."]
    return [f"{sentence} So says its own history; the site has too few visits for a model."]


def history(told: dict[str, Any]) -> list[str]:
    """What its own visits say."""
    own = told["history"]
    if not own["visits"]:
        return []
    if not own["compared"]:
        return [f"History: visited once, {stamp(_seconds(own['first']))}."]
    range_ = f"so its rate lies between {own['low']:.0%} and {own['high']:.0%} a visit (4 to 1)"
    last = f", last {stamp(_seconds(own['last_change']))}" if own["last_change"] else ""
    return [f"History: {count(own['changes'], 'change')} at {count(own['compared'], 'later visit')}{last}; {range_}."]


def about_relative(relative: dict[str, Any]) -> str:
    """How a relative's changes go with the page's own."""
    when = f"{span(relative['lag'])} before it" if relative["lag"] else "together with it"
    since = "; it has changed since" if relative["since"] else ""
    return (
        f"({relative['relation']}) changes {when}: weight {relative['weight']:.2f}, "
        f"{relative['together']} times in {relative['seen']}{since}"
    )


def about_content(told: dict[str, Any]) -> list[str]:
    """What its versions say."""
    content = told["content"]
    if not content["versions"]:
        return []
    text = f"Content: {content['bytes']:,} bytes, {count(content['versions'], 'version')}"
    if content["mean_divergence"] is not None:
        text += f"; a change replaces {content['mean_divergence']:.0%} of its words on average"
    if content["with_new_links"]:
        text += f", and {content['with_new_links']:.0%} of them bring new links"
    return [f"{text}."]


def _seconds(text: str | None) -> float | None:
    return None if text is None else moment(text, 0.0)
