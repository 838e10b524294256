"""Prediction at the size of R's data: 54,816 pages on 184 days (spec L5). Run as a module; takes many minutes.

    python -m benchmarks.lab_experts [PAGES]
    python -m benchmarks.lab_experts PAGES common

Measured are the choice of 20 experts for every page by cross-correlation, and multiple experts trained and applied for
one day for all pages. The world is made: groups of sixteen pages take words from a common stream, some days late. With
`common` all pages share 2,000 words, each of them on one page of fifty, and only choices are measured: by
cross-correlation, where the inverted index is no help then, and by content.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import sparse

from recrawl.lab.predict.days import Days, observed
from recrawl.lab.predict.methods import PredictionSetting, chosen_experts
from recrawl.learn.experts.features import FeatureWindow, Observations, own_features
from recrawl.learn.experts.panels import Panel, day_classifier

PAGES = 54_816
DAYS = 184
K = 20
TRAIN = 50
GROUP = 16
TOPIC, OWN = 30, 10
RATE = 0.3
SELECT_SECONDS = 600.0  # the bars, on two cores and 12 GiB
EXPERTS_SECONDS = 1800.0
AT_ONCE = 250
WORDS = 2**18
COMMON = 2_000


def experts(pages: int = PAGES, days: int = DAYS, workers: int = 2) -> dict[str, float]:
    """Seconds for the choice of experts and for a day of predictions, and the greatest memory in GiB.

    On a machine that others use the seconds of both cores (`cpu`) tell more; half of them is what two free cores need.
    """
    world, leader = _world(pages, days)
    setting = PredictionSetting("3d", k=K, train=TRAIN)
    began, worked = time.perf_counter(), time.process_time()
    chosen = chosen_experts(world, setting, days - 1)
    select, select_cpu = time.perf_counter() - began, time.process_time() - worked
    print(f"experts chosen after {select:.0f} s, {select_cpu:.0f} s of CPU", file=sys.stderr, flush=True)
    same = (leader[np.maximum(chosen.page[:, :5], 0)] == leader[:, None]) & (chosen.page[:, :5] >= 0)
    began, worked = time.perf_counter(), time.process_time()
    short = world.between(days - TRAIN - 4, days)
    diary = Observations(short.bags, short.text, short.changed, short.labelled)
    features = own_features(diary, FeatureWindow())

    def part(start: int) -> float:
        targets = np.arange(start, min(start + AT_ONCE, pages))
        judge = day_classifier(features, diary, setting.machines(), Panel.of(targets, chosen))
        says, _ = judge(short.seen.shape[1] - 1)
        return float((says == world.changed[targets, -1]).sum())

    with ThreadPoolExecutor(workers) as pool:
        right = sum(pool.map(part, range(0, pages, AT_ONCE)))
    return {
        "pages": pages,
        "days": days,
        "select_seconds": round(select, 1),
        "select_cpu_seconds": round(select_cpu, 1),
        "same_group_of_first_five": round(float(same.mean()), 3),
        "experts_seconds": round(time.perf_counter() - began, 1),
        "experts_cpu_seconds": round(time.process_time() - worked, 1),
        "accuracy": round(right / pages, 3),
        "most_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
    }


def common(pages: int = PAGES, days: int = DAYS) -> dict[str, float]:
    """CPU seconds for the choice of experts where all pages share their words."""
    world, leader = _world(pages, days, COMMON)
    found: dict[str, float] = {"pages": pages, "days": days}
    for kind in ("xcorr", "content"):
        worked = time.process_time()
        chosen = chosen_experts(world, PredictionSetting("3d", experts=kind, k=K, train=TRAIN), days - 1)
        same = (leader[np.maximum(chosen.page[:, :5], 0)] == leader[:, None]) & (chosen.page[:, :5] >= 0)
        found[f"{kind}_cpu_seconds"] = round(time.process_time() - worked, 1)
        found[f"{kind}_same_group_of_first_five"] = round(float(same.mean()), 3)
    found["most_gib"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)
    return found


def _world(pages: int, days: int, vocabulary: int = WORDS) -> tuple[Days, np.ndarray]:
    rng = np.random.default_rng(1)
    groups = -(-pages // GROUP)
    group = np.arange(pages) // GROUP
    late = rng.integers(0, 4, pages)
    changes = rng.random((groups, days + 4)) < RATE
    stream = rng.integers(0, 6, (groups, days + 4, TOPIC), dtype=np.uint8)
    newest = np.maximum.accumulate(np.where(changes, np.arange(days + 4), 0), axis=1)
    # What a page shows on a day: the number of its group's newest words some days before.
    shown = newest[group[:, None], np.arange(days) + 4 - late[:, None]]
    new = np.ones((pages, days), bool)
    new[:, 1:] = shown[:, 1:] != shown[:, :-1]
    text = (np.cumsum(new) - 1).reshape(pages, days).astype(np.int32)
    page, day = np.nonzero(new)
    counts = np.empty((len(page), TOPIC + OWN), np.uint16)
    counts[:, :TOPIC] = stream[group[page], shown[page, day]] + 1
    counts[:, TOPIC:] = 1
    # Each word of a page comes from a part of the vocabulary of its own, so that none comes twice.
    part = vocabulary // (TOPIC + OWN)
    words = (np.arange(TOPIC) * part + rng.integers(0, part, (groups, TOPIC))).astype(np.int32)
    own_words = (np.arange(TOPIC, TOPIC + OWN) * part + rng.integers(0, part, (pages, OWN))).astype(np.int32)
    columns = np.concatenate((words[group[page]], own_words[page]), axis=1)
    start = np.arange(len(page) + 1, dtype=np.int64) * (TOPIC + OWN)
    bags = sparse.csr_array((counts.ravel(), columns.ravel(), start), shape=(len(page), vocabulary))
    urls = [f"https://g{number // GROUP}.example/{number}" for number in range(pages)]
    times = 1_700_000_000 + 86_400 * np.arange(days)
    seen = np.ones((pages, days), bool)
    return observed(urls, times, text.astype(np.int64), seen, label="made", text=text, bags=bags), group


if __name__ == "__main__":
    measured = common if "common" in sys.argv[2:] else experts
    print(json.dumps(measured(int(sys.argv[1]) if len(sys.argv) > 1 else PAGES), indent=1))
