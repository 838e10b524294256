"""The service over days, with restarts between cycles and in the middle of them: nothing lost, nothing twice."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.serve_week import week


@pytest.mark.slow
def test_days_with_restarts(tmp_path: Path) -> None:
    came = week(tmp_path, days=1.5, sites=1, pages=25)
    assert came.wrong == []
    assert came.cut >= 1
    assert came.restarts >= 3
    assert came.turns >= 6 + came.cut
    assert came.told == came.updates > 25
