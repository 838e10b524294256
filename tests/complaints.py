"""What every complaint of the command line has in common: one sentence on stderr, and never a traceback."""

from __future__ import annotations

from tests.world import Result


def complaint(result: Result, *words: str, code: int = 2) -> str:
    """The sentence that a refused command prints; it holds all of these words."""
    assert "Traceback" not in result.err, result.err
    assert result.code == code, result
    assert result.out == "", result
    lines = result.err.splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("recrawl: "), lines[0]
    for word in words:
        assert word in lines[0], f"{word!r} is not in {lines[0]!r}"
    return lines[0]


def usage(result: Result, *words: str) -> None:
    """The parser of options has refused it: a few lines, with the way to the help."""
    assert result.code == 2, result
    assert "Traceback" not in result.err, result.err
    assert result.out == "", result
    assert "--help" in result.err, result
    for word in words:
        assert word in result.err, f"{word!r} is not in {result.err!r}"
