"""Screenshots: those that the archive holds, and what changed between two of them."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from recrawl.compare.pictures import Box, ChangedRegions, Pixels, changed_regions
from recrawl.errors import NotKnown, RepositoryError
from recrawl.extras import require
from recrawl.record.rows import ScreenshotRow, VersionRow

if TYPE_CHECKING:
    from recrawl.repository.reader import Reader

StoredPicture = ScreenshotRow
"""The columns of a screenshot."""
_MAX_PIXELS = 32_000_000
_MARGIN = 16
"""Pixels between two screenshots, and around them."""
_REMOVED, _ADDED, _GROUND = (207, 34, 46), (26, 127, 55), (234, 238, 242)


@dataclass(frozen=True, slots=True)
class PictureDifference:
    """What changed between two screenshots."""

    before: Pixels
    after: Pixels
    boxes: ChangedRegions

    @property
    def regions(self) -> int:
        """The number of regions that changed, in the screenshot that shows more of them."""
        return max(len(self.boxes.before), len(self.boxes.after))

    def side_by_side(self) -> bytes:
        """Both screenshots as one PNG: on the left removed parts in red, on the right added parts in green."""
        from PIL import Image, ImageDraw  # lazy: an extra

        sides = ((self.before, self.boxes.before, _REMOVED), (self.after, self.boxes.after, _ADDED))
        width = 3 * _MARGIN + sum(pixels.shape[1] for pixels, _, _ in sides)
        height = 2 * _MARGIN + max(pixels.shape[0] for pixels, _, _ in sides)
        sheet, left = Image.new("RGB", (width, height), _GROUND), _MARGIN
        draw = ImageDraw.Draw(sheet)
        for pixels, boxes, colour in sides:
            sheet.paste(Image.fromarray(pixels), (left, _MARGIN))
            for box in boxes:
                corners = (left + box.left - 3, _MARGIN + box.top - 3, left + box.right + 2, _MARGIN + box.bottom + 2)
                draw.rectangle(corners, outline=colour, width=3)
            left += pixels.shape[1] + _MARGIN
        out = io.BytesIO()
        sheet.save(out, "PNG")
        return out.getvalue()


def compare_pictures(before: bytes, after: bytes) -> PictureDifference:
    """What changed between two screenshots in PNG."""
    old, new = _pixels(before), _pixels(after)
    return PictureDifference(old, new, changed_regions(old, new))


def pictures_of(repo: Reader, page: int, limit: int) -> list[StoredPicture]:
    """The newest screenshots of a page, newest first."""
    return repo.storage.store.screenshots.of_page(page, limit)


def stored_picture(repo: Reader, version: VersionRow) -> StoredPicture | None:
    """The newest screenshot of a version, without its bytes."""
    return repo.storage.store.screenshots.of_version(version.page, version.id)


def picture_of(repo: Reader, version: VersionRow, url: str) -> bytes:
    """The newest screenshot of a version as PNG; raises NotKnown if there is none."""
    found = stored_picture(repo, version)
    if found is None:
        raise NotKnown(
            f"no screenshot of this version of {url}; take them from now on with 'recrawl config screenshots changed'"
        )
    return repo.storage.screenshot(found)


def _pixels(picture: bytes) -> Pixels:
    require("PIL")
    from PIL import Image  # lazy: an extra

    with Image.open(io.BytesIO(picture), formats=["PNG"]) as image:
        if image.width * image.height > _MAX_PIXELS:
            raise RepositoryError(f"the screenshot is too large to compare: {image.width} by {image.height} pixels")
        return np.asarray(image.convert("RGB"))


__all__ = [
    "Box",
    "PictureDifference",
    "StoredPicture",
    "compare_pictures",
    "picture_of",
    "pictures_of",
    "stored_picture",
]
