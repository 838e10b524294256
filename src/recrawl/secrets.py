"""Secrets by reference: settings name an environment variable or a file, and never hold the secret itself.

`${NAME}` stands for an environment variable, `${file:PATH}` for the first line of a file that only its owner may read.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable
from pathlib import Path

from recrawl.durable_files import make_folder, replace_file
from recrawl.errors import UsageError

REDACTED = "redacted"
"""What is written in place of a secret."""
_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def has_reference(text: str) -> bool:
    """Whether a value refers to a secret.

    >>> has_reference("${TOKEN}"), has_reference("plain")
    (True, False)
    """
    return bool(_REFERENCE.search(text))


def reveal(text: str, where: str, environment: Callable[[str], str | None] = os.environ.get) -> str:
    """The value with its references replaced; `UsageError` names what is missing, at `where`.

    >>> reveal("Bearer ${TOKEN}", "[[access]]", {"TOKEN": "t0p"}.get)
    'Bearer t0p'
    """

    def replaced(match: re.Match[str]) -> str:
        name = match[1]
        if name.startswith("file:"):
            return read_private(Path(name[5:]).expanduser(), where).partition("\n")[0].strip("\r")
        if not _NAME.fullmatch(name):
            raise UsageError(f"invalid reference '{match[0]}' in {where}; use ${{NAME}} or ${{file:PATH}}")
        value = environment(name)
        if not value:
            raise UsageError(f"the environment variable {name} is not set, but {where} uses it; set it before the run")
        return value

    found = _REFERENCE.sub(replaced, text)
    if not found.isprintable():
        raise UsageError(f"a secret in {where} contains line breaks or control characters; remove them")
    return found


def read_private(path: Path, where: str) -> str:
    """The text of a file that only its owner may read; `UsageError` for any other file."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise UsageError(f"{path} in {where} is not a file")
        if mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise UsageError(f"{path} in {where} can be read by other users; run: chmod 600 {path}")
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise UsageError(f"cannot read {path}, which {where} uses: {cause}") from None


def write_private(path: Path, text: str) -> None:
    """Replace a file that only its owner may read, in a folder of its own."""
    make_folder(path.parent, mode=0o700)
    replace_file(path, text, mode=0o600)
