"""Deletion cannot misfire (spec C5), and validators are believed only while they are right (spec C6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recrawl.compare.gone import CONFIRM_SECONDS, Evidence, Standing, evidence, step, vanishing
from recrawl.compare.validators import ValidatorTrust, http_time, learn, usable
from recrawl.model import State, Validators

DAY = 86_400.0
STATES = st.sampled_from(list(State))
FLAGS = st.booleans()
VISITS = st.lists(st.tuples(st.sampled_from(list(Evidence)), FLAGS, FLAGS), max_size=30)


def run(visits: list[tuple[Evidence, bool, bool]], start: State = State.LIVE, gap: float = DAY) -> list[Standing]:
    standing = Standing(start)
    trail = [standing]
    for i, (what, dropped, brake) in enumerate(visits):
        standing = step(standing, what, gap * (i + 1), dropped_from_sitemap=dropped, vanishing=brake)
        trail.append(standing)
    return trail


@given(VISITS)
def test_gone_only_by_missing_evidence(visits):
    trail = run(visits)
    for before, after, (what, _, _) in zip(trail, trail[1:], visits, strict=False):
        if after.state is State.GONE and before.state is not State.GONE:
            assert what is Evidence.MISSING


@given(st.lists(st.tuples(st.sampled_from([Evidence.PRESENT, Evidence.SILENT]), FLAGS, FLAGS), max_size=30))
def test_never_gone_without_a_404(visits):
    assert all(s.state is State.LIVE for s in run(visits))


@given(STATES, st.integers(0, 9), st.floats(0, 1e10), st.floats(0, 1e10), FLAGS, FLAGS)
def test_silence_is_the_identity(state, misses, since, now, dropped, brake):
    standing = Standing(state, misses, since)
    assert step(standing, Evidence.SILENT, now, dropped_from_sitemap=dropped, vanishing=brake) == standing


@given(STATES, st.integers(0, 9), st.floats(0, 1e10), FLAGS, FLAGS)
def test_a_page_brings_any_state_back_but_what_the_user_dropped(state, misses, now, dropped, brake):
    got = step(Standing(state, misses, 0.0), Evidence.PRESENT, now, dropped_from_sitemap=dropped, vanishing=brake)
    assert got == (Standing(State.DROPPED, misses, 0.0) if state is State.DROPPED else Standing(State.LIVE))


@given(VISITS)
def test_silence_between_answers_changes_nothing(visits):
    loud = [v for v in visits if v[0] is not Evidence.SILENT]
    assert run(visits, gap=0.0)[-1] == run(loud, gap=0.0)[-1]


@given(st.integers(1, 12), st.floats(0.0, 5 * DAY))
def test_a_vanishing_site_needs_time_and_answers(misses, gap):
    last = run([(Evidence.MISSING, True, True)] * misses, gap=gap)[-1]
    waited = gap * misses - gap
    assert (last.state is State.GONE) == (misses >= 3 and waited >= CONFIRM_SECONDS)


def test_two_in_a_row_or_one_with_the_sitemap():
    missing = (Evidence.MISSING, False, False)
    assert [s.state.name for s in run([missing, missing])] == ["LIVE", "MISSING", "GONE"]
    assert run([(Evidence.MISSING, True, False)])[-1].state is State.GONE
    assert run([missing, (Evidence.PRESENT, False, False), missing])[-1] == Standing(State.MISSING, 1, 3 * DAY)
    assert run([missing], start=State.FOUND)[-1].state is State.MISSING


def test_gone_stays_gone_when_the_brake_comes_late():
    assert step(Standing(State.GONE, 2, 1.0), Evidence.MISSING, 2.0, vanishing=True).state is State.GONE


def test_the_brake():
    assert not vanishing(0, 0)
    assert not vanishing(3, 4)
    assert not vanishing(20, 5)
    assert vanishing(19, 5)


@pytest.mark.parametrize("status", [0, 100, 301, 302, 304, 401, 403, 429, 451, 500, 502, 503])
def test_other_answers_are_silence(status):
    assert evidence(status) is Evidence.SILENT


def test_an_unreadable_page_is_silence():
    assert evidence(200, readable=False) is Evidence.SILENT


OLD = "Mon, 01 Jan 2024 00:00:00 GMT"
NEW = "Tue, 02 Jan 2024 00:00:00 GMT"
NOW = "Wed, 03 Jan 2024 12:00:00 GMT"


NONE = Validators("", "")


def told(
    trust: ValidatorTrust = ValidatorTrust(),
    before: Validators = NONE,
    after: Validators = NONE,
    changed: bool = False,
    status: int = 200,
    at: float = 0.0,
    date: str = NOW,
) -> ValidatorTrust:
    return learn(
        trust,
        before=before,
        after=after,
        answered_at=at,
        server_date=date,
        text_changed=changed,
        status=status,
    )


@pytest.mark.parametrize(
    ("before", "after", "changed", "want"),
    [
        (('"a"', OLD), ('"a"', OLD), False, ValidatorTrust(1, 0, 1, 0)),
        (('"a"', OLD), ('"a"', OLD), True, ValidatorTrust(0, 1, 0, 1)),
        (('"a"', OLD), ('"b"', NEW), True, ValidatorTrust(1, 0, 1, 0)),
        (('"a"', OLD), ('"b"', NEW), False, ValidatorTrust()),
        (("", ""), ('"b"', NEW), True, ValidatorTrust()),
        (("", OLD), ("", NOW), True, ValidatorTrust(0, 1, 0, 0)),
        (("", ""), ("", NOW), False, ValidatorTrust(0, 1, 0, 0)),
        (("", ""), ("", "Wed, 03 Jan 2024 11:59:58 GMT"), False, ValidatorTrust(0, 1, 0, 0)),
        (("", ""), ("", "Wed, 03 Jan 2024 11:59:57 GMT"), False, ValidatorTrust()),
    ],
)
def test_what_is_learned(before, after, changed, want):
    assert told(before=Validators(*before), after=Validators(*after), changed=changed) == want


def test_own_clock_when_the_server_shows_none():
    now = http_time(NOW)
    assert now is not None
    assert told(after=Validators("", NOW), date="", at=now + 1) == ValidatorTrust(0, 1, 0, 0)
    assert told(after=Validators("", NOW), date="nonsense", at=now + 60) == ValidatorTrust()


def test_only_an_answer_with_text_teaches():
    same = Validators('"a"', OLD)
    for status in (0, 206, 304, 404, 500):
        assert told(before=same, after=same, changed=True, status=status) == ValidatorTrust()


def test_a_server_is_disbelieved_by_two_strikes_over_a_tenth():
    both = Validators('"a"', OLD)
    assert usable(both, ValidatorTrust(lm_bad=1, etag_bad=1), 0) == both
    assert usable(both, ValidatorTrust(lm_bad=2), 0) == Validators('"a"', "")
    assert usable(both, ValidatorTrust(etag_bad=2), 0) == Validators("", OLD)
    assert usable(both, ValidatorTrust(lm_good=18, lm_bad=2, etag_good=17, etag_bad=2), 0) == Validators("", OLD)


def test_every_tenth_304_is_audited():
    both = Validators('"a"', OLD)
    silent = [n for n in range(31) if not usable(both, ValidatorTrust(), n)]
    assert silent == [10, 20, 30]


def test_a_server_that_always_says_304_is_found_out():
    trust, same = ValidatorTrust(), Validators('"a"', OLD)
    for _ in range(2):
        trust = told(trust, before=same, after=same, changed=True)
    assert not usable(same, trust, 0)


@given(st.text(max_size=120))
def test_any_date_is_a_number_or_none(text):
    got = http_time(text)
    assert got is None or isinstance(got, float)


@pytest.mark.parametrize(
    "date",
    [
        "Wed, 03 Jan 2024 12:00:00 GMT",
        "Wednesday, 03-Jan-24 12:00:00 GMT",
        "Wed Jan  3 12:00:00 2024",
        "3 Jan 2024 12:00:00",
    ],
)
def test_dates_in_all_spellings(date):
    assert http_time(date) == 1_704_283_200.0
