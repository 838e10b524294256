"""Conditions on texts and numbers, as people write them; several are joined by `;`, and all must hold.

    contains sold out            the text has come to contain it; `contains no ...` that it has gone
    price below 100              the number after "price" has come to be below 100; also above, at most, at least
    falls by 10 %                the number is lower than before by that much; `rises by 5` is a difference, `changes`
    more than 5 % of the content at least that share of the words differs

With a selector the text is that of the chosen elements, and the name of the number may be left out. What held before
already is no news: a page that goes on to say "sold out" sends one alert.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from recrawl.compare.divergence import divergence
from recrawl.errors import UsageError

_NUMBER = re.compile(r"(?<![\w.,])[-+\u2212]?\d(?:[\d.,'\u2019\u00a0\u202f]*\d)?")
_SHARE = re.compile(
    r"(?:more than|at least|over)\s+(?P<share>\d+(?:[.,]\d+)?)\s*%\s+of the (?:content|words|text)", re.IGNORECASE
)
_CONTAINS = re.compile(r"(?:(?:the )?text )?contains\s+(?P<not>no\s+|not\s+)?(?P<text>.+)", re.IGNORECASE)
_COMPARED = re.compile(
    r"(?P<name>.*?)\s*\b(?:is )?(?P<how>below|under|less than|above|over|more than|at most|at least|exactly)\s+"
    r"(?P<least>\S+)(?:\s+\S{1,4})?",
    re.IGNORECASE,
)
_SIGNS = re.compile(r"(?P<name>.*?)\s*(?P<how><=|>=|<|>|=)\s*(?P<least>\S+)(?:\s+\S{1,4})?")
_MOVED = re.compile(
    r"(?P<name>.*?)\s*\b(?P<how>falls|rises|drops)(?:\s+by\s+(?P<by>\d+(?:[.,]\d+)?)\s*(?P<percent>%)?)?", re.IGNORECASE
)
_CHANGES = re.compile(r"(?P<name>.*?)\s*\bchanges", re.IGNORECASE)
_MONEY = re.compile(r"\s*(?:€|EUR|kr|CHF)", re.IGNORECASE)
_MOST = 20


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition; `holds` gets the text before, which is None of a new page, and the text now."""

    written: str
    holds: Callable[[str | None, str], bool]
    name: str = ""
    """The words after which its number stands; empty for the first number."""
    of_number: bool = False


def conditions(text: str) -> tuple[Condition, ...]:
    """Parse conditions; `UsageError` names the one that cannot be read.

    >>> [part.name for part in conditions("price below 100; contains in stock")]
    ['price', '']
    """
    parts = [part.strip() for part in re.split(r"[;\n]", text) if part.strip()]
    if len(parts) > _MOST:
        raise UsageError(f"more than {_MOST} conditions; join fewer")
    return tuple(map(_condition, parts))


def all_hold(parts: Sequence[Condition], before: str | None, after: str) -> bool:
    """Return whether all conditions hold.

    >>> stock = conditions("contains sold out")
    >>> [all_hold(stock, *pair) for pair in (("in stock", "Sold out!"), ("sold out", "sold out today"))]
    [True, False]
    >>> price = conditions("price below 100")
    >>> [all_hold(price, *pair) for pair in (("Price: 120 €", "Price: 99 €"), ("Price: 99", "Price: 98"))]
    [True, False]
    >>> all_hold(conditions("falls by 10 %"), "1.299,00 €", "1.099,00 €")
    True
    """
    return all(part.holds(before, after) for part in parts)


def number_in(text: str, name: str = "") -> float | None:
    """Return the first number of a text, or the first after some words; None if there is none.

    >>> number_in("now 1,299.00 $"), number_in("1.299 €"), number_in("version 3.12"), number_in("12,5 %")
    (1299.0, 1299.0, 3.12, 12.5)
    >>> number_in("Stock: 7. Price: 80", "price"), number_in("none")
    (80.0, None)
    """
    start = 0
    if name:
        place = text.lower().find(name.lower())
        start = place + len(name) if place >= 0 else 0
    found = _NUMBER.search(text, start)
    if found is None:
        return None
    return _value(found[0], money=bool(_MONEY.match(text, found.end()) or _MONEY.search(text[: found.start()][-4:])))


def _value(written: str, *, money: bool = False) -> float | None:
    plain = re.sub(r"['\u2019\u00a0\u202f]", "", written.replace("\u2212", "-"))
    dot, comma = plain.rfind("."), plain.rfind(",")
    point = max(dot, comma)
    if point >= 0:
        sign, digits = plain[point], len(plain) - point - 1
        alone = plain.count(sign) == 1 and min(dot, comma) < 0
        groups = digits == 3 and (sign == "," or money)
        if (plain.count(sign) > 1 and min(dot, comma) < 0) or (alone and groups):
            plain = plain.replace(sign, "")
        else:
            plain = re.sub(r"[.,]", "", plain[:point]) + "." + plain[point + 1 :]
    try:
        return float(plain)
    except ValueError:
        return None


def _condition(written: str) -> Condition:
    if found := _SHARE.fullmatch(written):
        least = _required(found["share"], written) / 100
        return Condition(written, lambda old, new: old is not None and divergence(_line(old), _line(new)) >= least)
    if found := _CONTAINS.fullmatch(written):
        words, wanted = found["text"].strip().strip("\"'").lower(), not found["not"]

        def has(text: str) -> bool:
            return (words in _line(text).lower()) == wanted

        return Condition(written, lambda old, new: has(new) and (old is None or not has(old)))
    if found := _MOVED.fullmatch(written):
        return _moved(written, found)
    if found := _COMPARED.fullmatch(written) or _SIGNS.fullmatch(written):
        return _compared(written, found)
    if found := _CHANGES.fullmatch(written):
        name = found["name"].strip()
        return Condition(
            written, lambda old, new: old is not None and number_in(old, name) != number_in(new, name), name, True
        )
    raise UsageError(
        f"the condition '{written}' cannot be read; write: contains sold out, price below 100, falls by 10 %, "
        "or more than 5 % of the content"
    )


def _compared(written: str, found: re.Match[str]) -> Condition:
    how, name, limit = found["how"].lower(), found["name"].strip().rstrip(":"), _required(found["least"], written)
    compare: Callable[[float], bool]
    if how in ("below", "under", "less than", "<"):
        compare = limit.__gt__
    elif how in ("above", "over", "more than", ">"):
        compare = limit.__lt__
    elif how in ("at most", "<="):
        compare = limit.__ge__
    elif how in ("at least", ">="):
        compare = limit.__le__
    else:
        compare = limit.__eq__

    def holds(text: str | None) -> bool:
        value = None if text is None else number_in(text, name)
        return value is not None and compare(value)

    return Condition(written, lambda old, new: holds(new) and not holds(old), name, True)


def _moved(written: str, found: re.Match[str]) -> Condition:
    name, percent = found["name"].strip().rstrip(":"), bool(found["percent"])
    by = _required(found["by"], written) if found["by"] else 0.0
    sign = 1.0 if found["how"].lower() == "rises" else -1.0

    def holds(old: str | None, new: str) -> bool:
        before, after = None if old is None else number_in(old, name), number_in(new, name)
        if before is None or after is None or before == after:
            return False
        return sign * (after - before) >= (by / 100 * abs(before) if percent else by)

    return Condition(written, holds, name, True)


def _required(text: str, written: str) -> float:
    value = number_in(text.rstrip("%€$£"))
    if value is None:
        raise UsageError(f"the condition '{written}' names no number: '{text}'")
    return value


def _line(text: str) -> str:
    return " ".join(text.split())
