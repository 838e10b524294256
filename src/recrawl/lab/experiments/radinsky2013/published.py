"""What R prints: tables 1 to 3, and statements about figures 6 and 7.

R = Radinsky and Bennett 2013, "Predicting Content Change on the Web". Notes on its numbers:

- All are accuracies in per cent, means over pages, on 54,816 pages observed for 184 days; pages whose change flag flips
  on under 30 % of the days were left out. The change rate of the rest is not printed, so the accuracy of always
  predicting the majority class is unknown.
- Figures 6 and 7 are charts without printed values; only the statements about them can be compared.
- The baseline predicts a change "with probability" its frequency (§5.1): a coin. Predicting the likelier class (a
  threshold of one half) scores higher; both are measured, as readings of the sentence.
- Table 1 calls the baseline "1D features". A machine on the 1D features alone is measured beside it.
"""

from __future__ import annotations

TABLE_1 = {"frequency": 54.84, "2d": 62.93, "3d": 72.72}
TABLE_2 = {"union": 62.91, "boosting": 63.44, "bagging": 63.58, "3d": 72.72}
TABLE_3 = {"graph": 64.40, "content": 67.27, "xcorr": 72.72, "dtw": 70.33}

K = 20
TRAIN = 50
ALPHA = 0.3
LEVEL = 0.05

STATEMENTS = {
    "single": ("§8.1, table 1", "The single expert outperforms the baseline (p < 0.05)."),
    "multiple": ("§8.1, table 1", "Multiple experts outperform the single expert and the baseline (p < 0.05)."),
    "best": ("§8.2.1, table 2", "Multiple experts reach the highest performance of the relational algorithms."),
    "not enough": ("§8.2.1, table 2", "Just combining the features without the structure does not beat one expert."),
    "temporal": ("§8.2.2, table 3", "Cross-correlation is better than the choice by graph and by content (p < 0.05)."),
    "alike": ("§8.2.2, table 3", "There is no significant difference between cross-correlation and DTW."),
    "all choices": ("§8.2.2, table 3", "All ways to choose experts are better than 2D and 1D features (p < 0.05)."),
    "graph": ("§8.2.2, table 3", "Graph distance provides little impact: the least of the four."),
    "all sizes": ("§8.1, fig. 6", "Multiple experts lead, then the single expert, at all training sizes from 30."),
    "constant": ("§8.1, fig. 6", "Accuracy is almost constant over training sizes from 30."),
    "under 30": ("§8.1, fig. 6", "All learning algorithms perform poorly with less than 30 training examples."),
    "peak": ("§8.2.3, fig. 7", "Accuracy grows up to 20 experts; more of them add noise."),
    "robust": ("§8.2.3, fig. 7", "The gain over the single expert is robust across numbers of experts."),
}
"""By short name: the place, and the statement."""

TOO_FEW = "too few pages flip often enough for the test to decide"
_OWN_DAYS = "assumed: the page's own recent days carry nearly all the information of its relatives"
_LEADERS = "by construction: every page links to its group's leader, so links select the only informative page"
_BY_RELATION = "assumed: votes are weighted by relation, so distant experts hardly count"
_WHY = {
    "temporal": _OWN_DAYS,
    "all choices": _OWN_DAYS,
    "all sizes": _OWN_DAYS,
    "robust": _OWN_DAYS,
    "peak": _BY_RELATION,
    "under 30": "assumed: pages drift, so the newest days are the most informative",
    "alike": "assumed: DTW can stretch series, cross-correlation cannot",
    "graph": "assumed: linked pages belong to one section, which changes together; not all have any",
    "constant": "assumed: more days of the same pages teach rules that fewer days cannot show",
    "single": "assumed: one day's features add too little to the page's rate",
    "multiple": "assumed: votes are weighted by the relation, not by success",
    "best": "assumed: one machine over all features can learn which expert matters; a vote weighted by relation cannot",
    "not enough": "assumed: the union learns which related page is informative",
}
_WHY_MADE = {
    "temporal": _LEADERS,
    "graph": _LEADERS,
    "all choices": "by construction: most pages change at random, or while a hidden cause is on",
    "all sizes": "by construction: the single expert cannot learn from pages that change at random",
    "constant": "by construction: more days give more examples of a rule that never changes",
}


def why(key: str, *, made: bool) -> str:
    """The reason why a statement does not hold; on the generated worlds it follows from how they are generated."""
    return (_WHY_MADE.get(key) if made else None) or _WHY.get(key, "")
