"""recrawl keeps a local copy of web pages, and a search index over it, as fresh as a download budget allows."""

__all__ = ["__version__"]

__version__ = "0.1.0"
