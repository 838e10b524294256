"""The other crawlers: how each is installed, in `.bench/venv-NAME` or from the system, and how it is started.

Every peer crawls the same site from `/` to its last page, in a process of its own. None of them keeps a
database, versions or an index; wget writes the pages to files and to a WARC file with its index, wget2 to files,
scrapy-wacz to a WACZ file, the others keep nothing at all.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
_LINKS = "--follow-tags=a,area"
"""Pages only, as the others: not the images and stylesheets of real pages."""
APT = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}


@dataclass(frozen=True)
class Peer:
    """A crawler to compare with. `command` gets the site's URL, its number of pages and an empty folder."""

    name: str
    about: str
    command: Callable[[str, int, Path], list[str]]
    codes: tuple[int, ...] = (
        0,
    )  # wget ends with 8 when anything, such as robots.txt, was a 404, with 4 after a bad link


class MissingError(Exception):
    """A peer that cannot be had here, and why."""


def environment(folder: Path, name: str) -> Path:
    """The virtual environment of a peer; returns its Python. Two in one may need different versions of a package."""
    home = folder / f"venv-{name}"
    python = home / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    return python


def pip(python: Path, package: str, *also: str) -> str:
    """Install a package by name, and what it needs besides, unless it is there; returns its version."""
    ask = [
        str(python),
        "-c",
        f"from importlib.metadata import version; print(version({package.partition('[')[0]!r}))",
    ]
    found = subprocess.run(ask, capture_output=True, text=True, check=False)
    if found.returncode:
        print(f"installing {package} for comparison ...", flush=True)
        install = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check", package, *also]
        if subprocess.run(install, check=False).returncode:
            raise MissingError(f"pip could not install {package}")
        found = subprocess.run(ask, capture_output=True, text=True, check=True)
    return found.stdout.strip()


def wget2_version() -> str:
    """wget2 comes from the system: installed if we are root on a Debian-like one, else asked for."""
    if not shutil.which("wget2"):
        if os.geteuid() != 0 or not shutil.which("apt-get"):
            raise MissingError("wget2 is not installed (Debian: apt-get install wget2) and this is not root")
        print("installing wget2 for comparison ...", flush=True)
        subprocess.run(["apt-get", "update", "-qq"], env=APT, check=False, stdout=subprocess.DEVNULL)
        install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "wget2"]
        if subprocess.run(install, env=APT, check=False, stdout=subprocess.DEVNULL).returncode:
            raise MissingError("apt-get could not install wget2")
    answer = subprocess.run(["wget2", "--version"], capture_output=True, text=True, check=False).stdout
    return answer.split("\n", 1)[0].split(" - ")[0].removeprefix("GNU Wget2 ").strip()


def _script(python: Path, name: str, *options: str) -> Callable[[str, int, Path], list[str]]:
    return lambda url, pages, folder: [str(python), str(HERE / name), url, str(pages), str(folder), *options]


def scrapy(folder: Path) -> list[Peer]:
    python = environment(folder, "scrapy")
    version = pip(python, "scrapy")
    return [
        Peer(
            "scrapy",
            f"Scrapy {version} as it comes: CrawlSpider, LinkExtractor, its duplicate filter",
            _script(python, "scrapy_plain.py"),
        ),
        Peer(
            "scrapy-best",
            f"Scrapy {version} in its best form: own seen-set, CSS links, 64 at once, no extras",
            _script(python, "scrapy_best.py"),
        ),
    ]


def scrapy_wacz(folder: Path) -> list[Peer]:
    """The best form of Scrapy, but it records what it downloads."""
    python = environment(folder, "scrapy-wacz")
    recorder = pip(python, "scrapy-webarchive", "w3lib<2.3", "twisted<24.10")  # its Scrapy fails with later ones
    version = pip(python, "scrapy")
    about = f"Scrapy {version} in its best form, with scrapy-webarchive {recorder}: writes WARC, then WACZ"
    return [Peer("scrapy-wacz", about, _script(python, "scrapy_best.py", "wacz"))]


def wget2(_: Path) -> list[Peer]:
    def command(url: str, _pages: int, folder: Path) -> list[str]:
        return ["wget2", "--quiet", "--recursive", "--level=0", _LINKS, f"--directory-prefix={folder}", url]

    return [Peer("wget2", f"GNU Wget2 {wget2_version()}: recursive, writes files", command, (0, 8))]


def wget(_: Path) -> list[Peer]:
    """GNU Wget, the plain tool that records: it keeps the requests and answers as WARC."""
    if not shutil.which("wget"):
        raise MissingError("wget is not installed (Debian: apt-get install wget)")

    def command(url: str, _pages: int, folder: Path) -> list[str]:
        kept = [f"--warc-file={folder}-warc", "--warc-cdx", f"--directory-prefix={folder}"]
        return ["wget", "--quiet", "--recursive", "--level=inf", _LINKS, *kept, url]

    answer = subprocess.run(["wget", "--version"], capture_output=True, text=True, check=False).stdout
    version = answer.split(" built", 1)[0].removeprefix("GNU Wget ")
    return [Peer("wget", f"GNU Wget {version}: recursive, writes files and WARC with CDX", command, (0, 4, 8))]


def crawlee(folder: Path) -> list[Peer]:
    python = environment(folder, "crawlee")
    version = pip(python, "crawlee[parsel]")
    about = f"Crawlee {version}: ParselCrawler, enqueue_links, storage in memory"
    return [Peer("crawlee", about, _script(python, "crawlee_plain.py"))]


KINDS: dict[str, Callable[[Path], list[Peer]]] = {
    "scrapy": scrapy,
    "scrapy-wacz": scrapy_wacz,
    "wget": wget,
    "wget2": wget2,
    "crawlee": crawlee,
}


def available(folder: Path, kinds: list[str]) -> list[Peer]:
    """The peers that could be had, with a line about each that could not."""
    found = []
    for kind in kinds:
        try:
            found += KINDS[kind](folder)
        except MissingError as reason:
            print(f"without {kind}: {reason}", flush=True)
    return found
