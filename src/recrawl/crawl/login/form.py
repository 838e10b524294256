"""The login form of a page, filled in. A function of its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import urlencode, urljoin

from turbohtml import Element

from recrawl.compare.parsing.document import parse
from recrawl.errors import RecrawlError

WITH_PASSWORD = "form:has(input[type=password])"  # noqa: S105
"""Selector of the form if the rule names none."""
_NOT_SENT = ("button", "reset", "image", "file")
_CHOSEN = ("checkbox", "radio")


class LoginProblem(RecrawlError):
    """A login that cannot be made, or was refused. The message holds no secret."""


class Submission(NamedTuple):
    """What the form sends."""

    method: str
    url: str
    fields: tuple[tuple[str, str], ...]

    def encoded(self) -> str:
        """The fields as a query or as the body of a POST."""
        return urlencode(self.fields)


def has_form(html: str, selector: str) -> bool:
    """Whether a page has the login form.

    >>> has_form("<form><input type=password name=p></form>", ""), has_form("<p>Welcome", "")
    (True, False)
    """
    return parse(html).select_one(selector or WITH_PASSWORD) is not None


def fill(html: str, url: str, selector: str, fields: Sequence[tuple[str, str]]) -> Submission:
    """The login form of a page with these fields, its hidden ones kept.

    >>> page = '<form action=/in method=post><input type=hidden name=csrf value=7><input name=u>'
    >>> fill(page + "<input type=password name=p></form>", "https://a.example/login", "", [("u", "x"), ("p", "y")])
    Submission(method='POST', url='https://a.example/in', fields=(('csrf', '7'), ('u', 'x'), ('p', 'y')))
    """
    form = parse(html).select_one(selector or WITH_PASSWORD)
    if form is None:
        wanted = f"'{selector}'" if selector else "a form with a password field"
        advice = "set login_form, or login_browser if a script writes the form"
        raise LoginProblem(f"{url} has no login form ({wanted}); {advice}")
    sent = _sent(form)
    missing = [name for name, _ in fields if name not in sent]
    if missing:
        known = ", ".join(sent) or "none"
        raise LoginProblem(f"the login form of {url} has no field '{missing[0]}'; its fields: {known}")
    sent.update(fields)
    method = (form.attr("method") or "get").upper()
    target = urljoin(url, form.attr("action") or url)
    return Submission("POST" if method == "POST" else "GET", target, tuple(sent.items()))


def _sent(form: Element) -> dict[str, str]:
    """What the form sends if nobody touches it, and its empty fields; of several submit buttons the first."""
    found: dict[str, str] = {}
    submitted = False
    for item in form.select("input, select, textarea, button"):
        name, kind = item.attr("name") or "", (item.attr("type") or "").lower()
        is_button = kind == "submit" or (item.tag == "button" and kind in ("", "submit"))
        skipped = kind in _NOT_SENT or (kind in _CHOSEN and "checked" not in item.attrs) or (is_button and submitted)
        submitted = submitted or is_button
        if not name or skipped or name in found:
            continue
        if item.tag == "select":
            option = item.select_one("option[selected]") or item.find("option")
            found[name] = (option.attr("value") or option.text) if option is not None else ""
        else:
            found[name] = item.attr("value") or ""
    return found
