"""The cookies of one site, kept by libcurl (RFC 6265, public suffixes) and saved in a file that outlives the run.

Each site has a jar of its own, and only requests to that site use it: a cookie never reaches another site, whatever
domain its server names. The file has Netscape's format, as wget and curl read and write it.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pycurl

from recrawl.secrets import read_private, write_private

_HEAD = "# Netscape HTTP Cookie File\n"
_COLUMNS = 7


class CookieJar:
    """Cookies of one site. Pickled, it is its lines: another process gets a copy."""

    def __init__(self, path: Path | None = None, lines: Iterable[str] = ()) -> None:
        self._path = path
        self.share = pycurl.CurlShare()
        self.share.setopt(pycurl.SH_SHARE, pycurl.LOCK_DATA_COOKIE)
        self._handle = pycurl.Curl()
        self._handle.setopt(pycurl.SHARE, self.share)
        self._saved = ""
        self._given: set[str] = set()
        self.add(lines)

    def __reduce__(self) -> tuple[type[CookieJar], tuple[Path | None, list[str]]]:
        return CookieJar, (self._path, self.lines())

    def __repr__(self) -> str:
        return f"CookieJar({len(self.lines())} cookies)"

    def lines(self) -> list[str]:
        """The cookies, one line each, in Netscape's format."""
        return list(self._handle.getinfo(pycurl.INFO_COOKIELIST))

    def add(self, lines: Iterable[str]) -> None:
        """Add cookies; those of the same name and path are replaced."""
        for line in lines:
            self._handle.setopt(pycurl.COOKIELIST, line)

    def give(self, pairs: Iterable[str], host: str, *, secure: bool) -> None:
        """Add cookies of the settings, as `name=value`. They are not saved: the settings have them."""
        for pair in pairs:
            name, _, value = pair.partition("=")
            line = "\t".join((host, "FALSE", "/", str(secure).upper(), "0", name.strip(), value.strip()))
            self._given.add(line)
            self.add([line])

    def load(self, where: str) -> None:
        """Read the file, if there is one."""
        if self._path is not None and self._path.exists():
            text = read_private(self._path, where)
            lines = [line for line in text.splitlines() if line.count("\t") == _COLUMNS - 1]
            self.add(lines)
            self._saved = text

    def save(self) -> None:
        """Write the file if something has changed."""
        text = _HEAD + "".join(f"{line}\n" for line in sorted(self.lines()) if line not in self._given)
        if self._path is not None and text != (self._saved or _HEAD):
            write_private(self._path, text)
            self._saved = text
