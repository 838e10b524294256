"""Adds the man pages to the wheel, where `make man` has written them: building must not need our dependencies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


def man_pages(root: Path) -> dict[str, str]:
    """The place of each man page in the wheel, by its path."""
    return {str(path): f"share/man/man1/{path.name}" for path in sorted((root / "man" / "man1").glob("*.1"))}


class ManPages(BuildHookInterface):  # type: ignore[type-arg]
    """The hook that hatchling calls."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to the wheel."""
        del version
        build_data["shared_data"].update(man_pages(Path(self.root)))
