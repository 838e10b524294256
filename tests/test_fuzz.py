"""A small part of `python -m benchmarks.fuzz`, always the same inputs: no parser of the web raises or hangs."""

from __future__ import annotations

import random

import pytest
from benchmarks import fuzz
from benchmarks.fuzz_targets import TARGETS, Target

INPUTS = 150


@pytest.mark.parametrize("name", TARGETS)
def test_no_mutated_document_breaks_its_parser(name: str) -> None:
    tally = fuzz.fuzz_here(TARGETS[name], fuzz.SEED, 0, INPUTS)
    assert (tally.inputs, tally.failures) == (INPUTS, {})


@pytest.mark.parametrize("name", TARGETS)
def test_every_document_is_read_as_it_is(name: str) -> None:
    for document in TARGETS[name].documents:
        TARGETS[name].read(document)


def test_an_input_depends_on_seed_target_and_number_alone() -> None:
    html = TARGETS["html"]
    assert fuzz.input_of(html, 1, 5) == fuzz.input_of(html, 1, 5)
    assert fuzz.input_of(html, 1, 5) != fuzz.input_of(html, 2, 5)
    assert {len(fuzz.mutate(random.Random(n), [b""], [b"x"])) > 100_000 for n in range(50)} == {False}


def test_exceptions_are_failures_unless_they_are_documented() -> None:
    def wrong(data: bytes) -> None:
        raise ValueError(data)

    careless = Target("careless", wrong, [b"a"], [b"b"])
    documented = Target("documented", wrong, [b"a"], [b"b"], (ValueError,))
    assert fuzz.failure_of(careless, b"x").startswith("ValueError: b'x' (test_fuzz.py:")
    assert fuzz.failure_of(documented, b"x") == ""
