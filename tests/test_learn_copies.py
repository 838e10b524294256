"""Groups of copies, worked out by hand and by laws; a million pages in a few seconds."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.learn.copies.groups import CopyColumns, due_copies, group_copies
from recrawl.learn.copies.parameters import IdleParameter, KnownParameters, learn_parameters
from recrawl.learn.copies.sketch import SKETCH_BYTES, near, sketch_of, sketches
from recrawl.learn.copies.variants import plain_form

LINES = [f"The sentence number {number} of an article about herons" for number in range(40)]
NEVER = -np.inf


def columns(pages: Sequence[Mapping[str, object]]) -> CopyColumns:
    """Pages from what is said of them: text, sketch, claim (1 is the first page), same_as, visit, change, listed."""
    count = len(pages)
    texts = [str(page.get("text", place)) for place, page in enumerate(pages)]
    digest = np.frombuffer(b"".join(text.encode().ljust(16) for text in texts), np.uint64).reshape(-1, 2)

    def numbers(name: str, kind: type = np.int64, default: float = 0) -> np.ndarray:
        return np.array([page.get(name, default) for page in pages], kind)

    return CopyColumns(
        key=np.arange(1, count + 1),
        site=numbers("site", np.int32),
        stored=numbers("stored", np.bool_, default=True),
        digest=digest,
        sketch=sketches([page.get("sketch", b"") for page in pages]),  # type: ignore[misc]
        claim=numbers("claim"),
        same_as=numbers("same_as"),
        listed=numbers("listed", np.bool_),
        secure=numbers("secure", np.bool_),
        length=numbers("length", np.int32, 20),
        last_visit=numbers("visit", np.float64),
        last_change=numbers("change", np.float64, NEVER),
    )


def groups(*pages: Mapping[str, object], urls: Mapping[int, str] | None = None) -> list[int]:
    """For each page the number of the one that stands for it, from 1; 0 for itself."""
    found = group_copies(columns(pages), lambda wanted: {page: (urls or {}).get(page, str(page)) for page in wanted})
    leaders: list[int] = found.same_as.tolist()
    return leaders


WHOLE, SHORTER = sketch_of(" ".join(LINES)), sketch_of(" ".join(LINES[3:]))
OTHER = sketch_of(" ".join(line[::-1] for line in LINES))


def test_the_same_text_makes_a_group_of_long_pages() -> None:
    long = {"text": "a", "sketch": WHOLE}
    assert groups(long, {**long, "length": 10}, {"sketch": OTHER}) == [2, 0, 0]


def test_pages_of_different_sites_are_copies_where_the_sites_belong_together() -> None:
    long = {"text": "a", "sketch": WHOLE}
    there = {**long, "site": 1, "length": 10}
    assert groups(long, there) == [0, 0]
    assert groups(long, there, urls={0: "http://www.a.example/b", 1: "https://a.example/b"}) == [2, 0]
    assert groups({**long, "claim": 2}, there) == [2, 0]
    mirror = [{"text": f"text {n}", "sketch": WHOLE[:3] + bytes([n + 1] * 13)} for n in range(20)]
    assert groups(*mirror, *({**page, "site": 1} for page in mirror)) == [0] * 20 + list(range(1, 21))


def test_short_pages_need_a_claim_and_the_same_text() -> None:
    assert groups({"text": "a"}, {"text": "a"}) == [0, 0]
    assert groups({"text": "a", "claim": 2}, {"text": "a"}) == [2, 0]
    assert groups({"text": "a", "claim": 2}, {"text": "b"}) == [0, 0]


def test_nearly_the_same_content_needs_a_claim_or_a_variant_of_the_url() -> None:
    assert near(WHOLE, SHORTER)
    assert not near(WHOLE, OTHER)
    assert groups({"sketch": WHOLE}, {"sketch": SHORTER}) == [0, 0]
    assert groups({"sketch": WHOLE}, {"sketch": SHORTER, "claim": 1}) == [0, 1]
    variants = {0: "https://a.example/b", 1: "http://www.a.example/print/b.html"}
    assert groups({"sketch": WHOLE, "secure": True}, {"sketch": SHORTER}, urls=variants) == [0, 1]


def test_a_site_that_is_mostly_wrong_is_not_believed_where_it_is_right() -> None:
    home = {"sketch": WHOLE}
    others = [" ".join(f"A remark, {number * place}, upon geese" for number in range(40)) for place in range(3)]
    wrong = [{"sketch": sketch_of(other), "claim": 1} for other in others]
    assert groups(home, {"sketch": SHORTER, "claim": 1}, *wrong) == [0] * 5
    assert groups(home, {"sketch": SHORTER, "claim": 1}) == [0, 1]
    elsewhere = {"sketch": SHORTER, "claim": 1, "site": 1}
    assert groups(home, elsewhere, *wrong)[1] == 1, "each site has a record of its own"


def test_the_representative_is_the_claimed_one_and_stays() -> None:
    long = {"text": "a", "sketch": WHOLE}
    assert groups({**long, "length": 5}, long, {**long, "claim": 2}) == [2, 0, 2]
    assert groups(long, {**long, "listed": True}) == [2, 0]
    assert groups({**long, "same_as": 2}, long, {**long, "listed": True}) == [2, 0, 2], "what it was before comes first"


def test_a_copy_waits_for_its_visit_after_a_change_of_the_representative() -> None:
    changed = {"sketch": OTHER, "visit": 9.0, "change": 9.0}
    assert groups(changed, {"sketch": WHOLE, "same_as": 1, "visit": 5.0}) == [0, 1]
    assert groups(changed, {"sketch": WHOLE, "same_as": 1, "visit": 9.5}) == [0, 0]
    assert groups({**changed, "stored": False}, {"sketch": WHOLE, "same_as": 1, "visit": 5.0}) == [0, 0]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5), st.booleans()), max_size=12))
def test_a_representative_is_stored_and_stands_for_itself_and_grouping_again_changes_nothing(
    made: list[tuple[int, int, bool]],
) -> None:
    kinds = (WHOLE, SHORTER, OTHER, b"")
    pages = [{"sketch": kinds[kind], "text": kind, "claim": claim, "stored": stored} for kind, claim, stored in made]
    first = groups(*pages)
    for place, leader in enumerate(first):
        assert leader == 0 or (first[leader - 1] == 0 and made[leader - 1][2] and made[place][2])
    again = groups(*({**page, "same_as": leader} for page, leader in zip(pages, first, strict=True)))
    assert again == first


def test_only_copies_wait_for_their_turn() -> None:
    none = np.zeros(3, np.int64)
    key, times = np.arange(3), np.zeros(3)
    assert due_copies(none, key, times, times, 0.0, 1.0).all()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("https://a.example/", "http://www.a.example/index.html", True),
        ("https://a.example/b/", "https://m.a.example/b/amp/", True),
        ("https://a.example/b?id=1&print=1", "https://a.example/b?id=1", True),
        ("https://a.example/b?id=1", "https://a.example/b?id=2", False),
        ("https://a.example/de/b", "https://a.example/en/b", False),
        ("https://a.example/printing", "https://a.example/ing", False),
    ],
)
def test_forms_of_urls(one: str, other: str, same: bool) -> None:
    assert (plain_form(one) == plain_form(other)) == same


def test_a_parameter_that_differs_once_is_not_learned() -> None:
    same = [(f"https://a.example/p?from={value}", 7) for value in range(9)]
    plain = {"https://a.example/p": 7}

    def group_of(urls: Sequence[str]) -> list[int]:
        return [plain.get(url, 0) for url in urls]

    assert [it.name for it in learn_parameters(same, group_of)] == ["from"]
    assert learn_parameters([*same, ("https://a.example/p?from=x", 8)], group_of) == []
    assert learn_parameters(same, lambda urls: [0] * len(urls)) == [], "nobody knows what the URL shows without it"


@given(st.text(max_size=30))
def test_urls_without_known_parameters_stay(query: str) -> None:
    url = f"https://a.example/x?{query}"
    assert KnownParameters([]).without(url) == url
    assert KnownParameters([IdleParameter("https b.example/*", "from", 5)]).without(url) == url


@pytest.mark.slow
def test_a_million_pages() -> None:
    count, rng = 1_000_000, np.random.default_rng(1)
    kind = rng.integers(0, 860_000, count)
    pages = CopyColumns(
        key=rng.permutation(count).astype(np.int64) + 1,
        site=(kind % 2000).astype(np.int32),
        stored=np.ones(count, bool),
        digest=np.stack((kind, kind * 7), axis=1).astype(np.uint64),
        sketch=np.random.default_rng(2).integers(1, 256, (860_000, SKETCH_BYTES), np.uint8)[kind],
        claim=np.where(rng.random(count) < 0.16, rng.integers(1, count, count), 0),
        same_as=np.zeros(count, np.int64),
        listed=rng.random(count) < 0.5,
        secure=np.ones(count, bool),
        length=rng.integers(20, 90, count).astype(np.int32),
        last_visit=np.zeros(count),
        last_change=np.full(count, NEVER),
    )
    begun = time.process_time()
    found = group_copies(pages, lambda wanted: {page: str(page) for page in wanted})
    seconds = time.process_time() - begun
    assert (found.same_as != 0).sum() >= count - len(np.unique(kind))
    print(f"grouped {count:,} pages in {seconds:.1f} CPU-seconds")
