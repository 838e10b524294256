"""Dependencies: every range has an upper end, and the lock files fit them and name no host."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
LISTS = [PROJECT["project"]["dependencies"], *EXTRAS.values()]
RANGES = [Requirement(text) for texts in LISTS for text in texts if not text.startswith("recrawl[")]
ABANDONED = {"brotlipy", "fakeredis", "py3amf", "redis", "surt", "webassets", "wsgiprox"}


def locked(name: str) -> dict[str, set[str]]:
    """Versions by package."""
    versions: dict[str, set[str]] = {}
    for line in (ROOT / "requirements" / name).read_text().splitlines():
        requirement = Requirement(line)
        (one,) = requirement.specifier
        assert one.operator == "=="
        versions.setdefault(canonicalize_name(requirement.name), set()).add(one.version)
    return versions


@pytest.mark.parametrize("requirement", RANGES, ids=str)
def test_every_range_has_both_ends(requirement: Requirement) -> None:
    assert {one.operator for one in requirement.specifier} == {">=", "<"}


def test_the_lock_has_a_version_within_each_range() -> None:
    versions = locked("dev.lock")
    for requirement in RANGES:
        found = versions[canonicalize_name(requirement.name)]
        assert all(version in requirement.specifier for version in found), requirement


def test_nothing_abandoned_is_in_the_environment_of_the_tests() -> None:
    assert ABANDONED & set(locked("dev.lock")) == set()
    assert ABANDONED & set(locked("pywb.lock")) >= {"brotlipy", "redis"}, "else pywb no longer needs its own"
    assert ABANDONED & set(locked("wacz.lock")) >= {"surt"}, "else py-wacz no longer needs its own"


@pytest.mark.parametrize("name", ["dev.lock", "pywb.lock", "wacz.lock"])
def test_no_lock_names_a_host_or_a_path(name: str) -> None:
    assert re.findall(r"https?:|file:|--|/", (ROOT / "requirements" / name).read_text()) == []


def test_this_python_is_supported() -> None:
    lowest = re.search(r">=(\d+)\.(\d+)", PROJECT["project"]["requires-python"])
    assert lowest is not None
    assert sys.version_info[:2] >= (int(lowest[1]), int(lowest[2]))
