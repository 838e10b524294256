"""The change prior of a page from its first download."""

from __future__ import annotations

import json
from importlib.resources import files

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.change_prior import FEATURES, LARGEST, change_prior, features

NOW = 1_720_000_000.0  # July 2024


@given(st.text(max_size=80), st.text(max_size=300), st.floats(-1e12, 1e12))
def test_any_page_has_a_finite_prior_within_the_limits(path: str, text: str, at: float) -> None:
    values = features(f"https://a.example/{path}", text, at)
    assert len(values) == len(FEATURES)
    assert np.isfinite(values).all()
    assert -LARGEST <= change_prior(f"https://a.example/{path}", text, at) <= LARGEST


def test_weights_fit_the_features() -> None:
    kept = json.loads(files("recrawl.compare").joinpath("change_prior.json").read_text(encoding="utf-8"))
    assert {name: np.shape(kept[name]) for name in ("mean", "spread", "weight")} == dict.fromkeys(
        ("mean", "spread", "weight"), (len(FEATURES),)
    )
    assert min(kept["spread"]) > 0


def test_front_and_current_pages_change_more_often_than_deep_and_old_ones() -> None:
    front = change_prior("https://a.example/", "News. July 2024: a new release. June 2024: a talk.", NOW)
    manual = change_prior("https://a.example/docs/v1/2009/chapter-17.html", "Chapter 17. Copyright 2009.", NOW)
    assert front > manual + 1


def test_the_current_year_raises_the_prior_by_the_time_of_the_download() -> None:
    url, text = "https://a.example/schedule.html", "Schedule: May 2024, June 2024, July 2024"
    assert change_prior(url, text, NOW) > change_prior(url, text, NOW + 10 * 365 * 86400)


def test_numbers_of_any_length_and_script_are_read() -> None:
    assert np.isfinite(features("https://a.example/٢٠٢٤/" + "9" * 5000, "9" * 6000 + " ٢٠٢٤", NOW)).all()
