"""The screenshot of a page in the browser: its full width, and as much of its height as the limits allow."""

from __future__ import annotations

import asyncio
import contextlib
from typing import NamedTuple

from playwright.async_api import Error, Page

_MAX_HEIGHT = 8_000
"""Pixels; longer pages are cut."""
_SECONDS = 20.0


class Screenshot(NamedTuple):
    """A picture as PNG; empty if there is none."""

    picture: bytes = b""
    width: int = 0
    height: int = 0


async def take_screenshot(page: Page, most_bytes: int) -> tuple[Screenshot, str]:
    """The screenshot, and why there is none: of a picture with too many bytes the upper half is taken, and so on."""
    with contextlib.suppress(TimeoutError, Error):
        async with asyncio.timeout(_SECONDS):
            width, whole = await _extent(page)
            height, least = min(whole, _MAX_HEIGHT), min(whole, (page.viewport_size or {"height": 1})["height"])
            while True:
                picture = await page.screenshot(
                    clip={"x": 0, "y": 0, "width": width, "height": height},
                    full_page=True,
                    animations="disabled",
                    type="png",
                    timeout=_SECONDS * 1000,
                )
                if len(picture) <= most_bytes:
                    return Screenshot(picture, width, height), ""
                if height == least:
                    return Screenshot(), "no screenshot: larger than the setting 'screenshot_bytes'"
                height = max(least, height // 2)
    return Screenshot(), "no screenshot: the browser did not answer in time"


async def _extent(page: Page) -> tuple[int, int]:
    """Width of the window and height of the page, from the browser itself: scripts of the page cannot lie about it."""
    session = await page.context.new_cdp_session(page)
    size = (await session.send("Page.getLayoutMetrics"))["cssContentSize"]
    width = (page.viewport_size or {"width": 1280})["width"]
    return width, max(1, int(size["height"]))
