"""What T prints: the numbers of table 1, and statements with their place in the paper.

T = Tan, Zhuang, Mitra, Giles 2007, "Efficiently Detecting Webpage Updates Using Samples". Its figures 4 to 9 are curves
without printed values; only the statements about them can be compared.
"""

from __future__ import annotations

from typing import NamedTuple


class Domain(NamedTuple):
    """A row of table 1."""

    name: str
    pages: int
    share: float | None
    """In per cent, as printed."""
    sites: int | None
    pages_per_site: float | None


TABLE_1 = (
    Domain("edu", 107_204, 37.7, 68, 1576.5),
    Domain("com", 100_725, 35.4, 92, 1094.8),
    Domain("gov", 38_696, 13.6, 23, 1682.4),
    Domain("org", 22_391, 7.9, 16, 1399.4),
    Domain("net", 12_972, 4.6, 12, 1081.0),
    Domain("mil", 1_998, 0.7, 1, 1998.0),
    Domain("misc", 706, None, None, None),
)
PAGES = 284_692
"""The total that table 1 prints, including the miscellaneous URLs."""
SITES = 210
"""As in the abstract; the rows of table 1 sum to 212."""

RESOURCES = (25_000, 50_000, 100_000)
"""R, downloads per cycle (§6.2)."""
WEEKS = (2, 4, 8)
"""Cycle lengths in weeks (§6.2)."""
GRANULARITIES = tuple(range(-6, 9))
"""d (§6.2)."""
CYCLES = 24
"""Cycles in figure 9, of two weeks each: 48 of the 52 observed weeks."""

BEST_D = {"DB": (0, 1), "LB": (3,), "CB": (0,)}
"""d_opt (§6.2, Effect of download granularity)."""
CHOSEN_D = {"DB": 1, "LB": 3, "CB": 0}
"""The d that figure 6 uses."""

STATEMENTS = {
    "depth": ("§6.1, fig. 4", "The majority of URLs have depth 2, 3 and 4; only a few have depth 7 and 8."),
    "db-over-lb": ("§6.2, fig. 5", "Overall DB outperforms LB."),
    "cb-over-db": ("§6.2, fig. 5", "Compared with CB, DB is less effective when 0 ≤ d ≤ 3."),
    "peak-DB": ("§6.2, fig. 5", "d_opt = [0, 1] for DB."),
    "peak-LB": ("§6.2, fig. 5", "d_opt = 3 for LB."),
    "peak-CB": ("§6.2, fig. 5", "d_opt = 0 for CB."),
    "falls-CB": ("§6.2, fig. 5", "For CB the ratio largely decreases when d > 0."),
    "positive-DB": ("§6.2, fig. 5", "For DB, ChangeRatio with positive d is higher than with negative d."),
    "positive-LB": ("§6.2, fig. 5", "For LB, ChangeRatio with positive d is higher than with negative d."),
    "rr-like-rns": ("§6.2, fig. 6", "RR has similar performance as RNS."),
    "gsb-over-rns": ("§6.2, fig. 6", "GSB is better than RNS and RR."),
    "ours-over-all": ("§6.2, fig. 6", "DB, LB and CB all perform better than RNS, RR and GSB."),
    "three-times": ("§6.2, fig. 6", "About three times as many changed pages as RNS and RR."),
    "twice": ("§6.2, fig. 6", "About twice as many changed pages as GSB."),
    "longer": ("§6.2, fig. 7", "The longer the download cycle, the better."),
    "shape": ("§6.2, fig. 7", "The shapes of the three curves under the same settings are roughly the same."),
    "smaller-r": ("§6.2, fig. 7", "A smaller R produces better results."),
    "pra": ("§6.2, fig. 8", "PRA outperforms DB by almost 100 % in weighted ChangeRatio."),
    "slow-start": ("§6.2, fig. 9", "From cycle 2 to 5, HA and WHA are similar to or slightly worse than RNS."),
    "begins-below": ("§6.2, fig. 9", "At the beginning, HA and WHA performed worse than DB."),
    "overtakes": ("§6.2, fig. 9", "HA and WHA became gradually better and eventually outperformed DB."),
    "wha-over-ha": ("§6.2, fig. 9", "Between the two history-adaptive strategies, WHA performed better than HA."),
    "wha-passes": ("§6.2, fig. 9", "WHA outperformed DB in download cycle 16."),
    "long-run": ("§7", "For long-term performance, the weighted-history-adaptive strategy will outperform the others."),
    "ha-passes": ("§6.2, fig. 9", "HA outperformed DB in cycle 18."),
}
"""By short name: the place, and the statement, shortened but close to T's words."""
