"""A change level: enough words differ, and more than the frame of the site."""

from __future__ import annotations

from recrawl.compare.levels import Differences


def longer_than(differs: Differences, argument: str) -> bool:
    """Whether more words differ than the argument says; `longer-than:20` in the setting `change`."""
    return differs.content is not False and (differs.words or 0) > int(argument)
