"""Tables in Markdown, for the generated pages of the reference."""

from __future__ import annotations

from collections.abc import Sequence


def table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A table with these headings."""
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines).replace("|  |", "| |") + "\n"
