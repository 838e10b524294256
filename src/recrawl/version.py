"""The version of recrawl."""

__version__ = "0.1.0"
