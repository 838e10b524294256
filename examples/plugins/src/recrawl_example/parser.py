"""A parser: recipes, which are lines of `name: value` in UTF-16."""

from __future__ import annotations


def read_recipe(body: bytes, content_type: str) -> str:
    """The text of a recipe."""
    del content_type
    return body.decode("utf-16")
