"""Pages and versions as the command line names them."""

from recrawl.verbs.naming import origin_of, page_of, pick, versions_of

__all__ = ["origin_of", "page_of", "pick", "versions_of"]
