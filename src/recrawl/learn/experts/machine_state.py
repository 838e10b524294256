"""What a crawl keeps of R's machines between cycles: the last margin of each tracked page, its experts, and its record.

The machines themselves are not kept: fitting one takes milliseconds, and its training examples follow from the visits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from recrawl.columns import Flags, Floats, Int32s, Ints
from recrawl.learn.experts.panels import Panel
from recrawl.learn.experts.selection import NO_EXPERT, Experts
from recrawl.learn.experts.visit_log import VisitLog

_DECAY = 0.95
"""Factor applied to a page's record at each new prediction that is judged."""
_PRIOR_VISITS = 10.0
"""A page's record is shrunk towards that of its site, and a site's towards that of all, as by this many visits."""


@dataclass(frozen=True, slots=True, eq=False)
class MachineState:
    """One row per tracked page."""

    page: Ints
    margin: Floats
    """The margin of the last fit; NaN without one, or where the machines abstained."""
    fitted: Floats
    """The time of the last fit; -inf without one."""
    expert: Ints
    """Row by rank: the page that is its expert, -1 for none."""
    weight: Floats
    gain: Floats
    """The log loss of the page's own rate minus that of the machines, summed over judged predictions."""
    judged: Floats
    """Judged predictions; both sums decay."""

    @classmethod
    def blank(cls, pages: Ints, k: int = 0) -> Self:
        """Pages without machines."""
        count, shape = len(pages), (len(pages), k)
        return cls(
            page=pages,
            margin=np.full(count, np.nan),
            fitted=np.full(count, -np.inf),
            expert=np.full(shape, NO_EXPERT, np.int64),
            weight=np.zeros(shape),
            gain=np.zeros(count),
            judged=np.zeros(count),
        )

    @classmethod
    def restored(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The state from its arrays, as a copy."""
        return cls(**{item.name: arrays[item.name].copy() for item in fields(cls)})

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}

    def of(self, pages: Ints) -> Self:
        """The state of other pages, in ascending order: what is known of them, blank rows for new ones."""
        moved = type(self).blank(pages, self.expert.shape[1])
        _, new, old = np.intersect1d(pages, self.page, assume_unique=True, return_indices=True)
        for name, column in moved.arrays().items():
            column[new] = getattr(self, name)[old]
        return moved

    def with_experts(self, experts: Experts) -> Self:
        """The state with other experts; `experts` has slots, the state keeps pages."""
        chosen = experts.page >= 0
        expert = np.where(chosen, self.page[np.maximum(experts.page, 0)], NO_EXPERT).astype(np.int64)
        columns = self.arrays() | {"expert": expert, "weight": experts.weight.astype(np.float64)}
        return type(self)(**columns)

    def panel(self, log: VisitLog, slots: Ints) -> Panel:
        """The panel of these slots; an expert that is not tracked any more is left out."""
        expert = log.slots(self.expert[slots].ravel()).reshape(len(slots), self.expert.shape[1])
        weight = np.where(expert >= 0, self.weight[slots], 0.0)
        own = np.ones((len(slots), 1))
        return Panel(slots, np.concatenate((slots[:, None], expert), axis=1), np.concatenate((own, weight), axis=1))

    def judge(self, slots: Ints, machine: Floats, rate: Floats, changed: Flags) -> None:
        """Compare two predictions that were made before visits with what the visits found."""
        self.gain[slots] = self.gain[slots] * _DECAY + log_loss(rate, changed) - log_loss(machine, changed)
        self.judged[slots] = self.judged[slots] * _DECAY + 1.0

    def trusted(self, site: Int32s) -> Flags:
        """Where the machines have predicted better than the page's own rate so far, by page, site and all together.

        A page without a record of its own follows its site; without any record, the rate decides.
        """
        overall = self.gain.sum() / (self.judged.sum() + _PRIOR_VISITS)
        gain, judged = np.bincount(site, self.gain), np.bincount(site, self.judged)
        by_site = (gain + _PRIOR_VISITS * overall) / (judged + _PRIOR_VISITS)
        by_page = (self.gain + _PRIOR_VISITS * by_site[site]) / (self.judged + _PRIOR_VISITS)
        return np.asarray(np.isfinite(self.margin) & (by_page > 0))


def log_loss(probability: Floats, label: Flags) -> Floats:
    """The negative log-likelihood of each label.

    >>> log_loss(np.array([0.5, 0.9]), np.array([True, False])).round(3).tolist()
    [0.693, 2.303]
    """
    safe = np.clip(np.where(label, probability, 1.0 - probability), 1e-6, 1.0)
    return np.asarray(-np.log(safe), np.float64)
