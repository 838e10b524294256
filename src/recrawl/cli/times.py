"""Times as the command line takes and prints them."""

from recrawl.verbs.times import duration, iso, moment, span, stamp

__all__ = ["duration", "iso", "moment", "span", "stamp"]
