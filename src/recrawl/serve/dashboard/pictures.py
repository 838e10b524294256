"""Screenshots of versions as the templates show them: address, size, and boxes around what changed."""

from __future__ import annotations

from typing import Any

from recrawl.errors import DamagedRecord, RepositoryError, UsageError
from recrawl.repository.reports.pages import StoredVersion
from recrawl.repository.repository import Repository
from recrawl.repository.results.pictures import StoredPicture, compare_pictures, picture_of, stored_picture


def shown_picture(repository: Repository, version: StoredVersion) -> dict[str, Any] | None:
    """Return the screenshot of a version; None if there is none."""
    found = stored_picture(repository, version)
    return None if found is None else _shown(version, found)


def compared_pictures(repository: Repository, url: str, old: StoredVersion, new: StoredVersion) -> dict[str, Any]:
    """Return the screenshots of two versions with their differences, or the reason why there are none."""
    before, after = stored_picture(repository, old), stored_picture(repository, new)
    if before is None or after is None:
        return {
            "problem": "There is no screenshot of " + ("either version" if before is after else "one of them") + "."
        }
    shown: dict[str, Any] = {"before": _shown(old, before), "after": _shown(new, after), "problem": ""}
    try:
        found = compare_pictures(*(picture_of(repository, version, url) for version in (old, new)))
    except (UsageError, DamagedRecord, RepositoryError) as error:
        return {**shown, "problem": f"What changed is not outlined: {error}."}
    shown["before"]["boxes"], shown["after"]["boxes"] = found.boxes
    return {**shown, "regions": found.regions}


def _shown(version: StoredVersion, picture: StoredPicture) -> dict[str, Any]:
    return {
        "source": f"/api/v1/pages/{version.page}/screenshot?version={version.id}",
        "width": picture.width,
        "height": picture.height,
        "at": picture.at,
        "boxes": (),
    }
