"""What is wrong with the boxes of a page in a browser: rows higher than their text, overlaps, what is too wide."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page

_SCRIPT = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


def wrong_boxes(page: Page) -> list[str]:
    """Sentences about boxes that are not as they should be; empty for a page that is well laid out."""
    found: list[str] = page.evaluate(_SCRIPT)
    return found
