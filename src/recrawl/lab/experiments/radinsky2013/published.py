"""What R prints: tables 1 to 3, and the sentences about figures 6 and 7.

R = Radinsky and Bennett 2013, "Predicting Content Change on the Web". Things to know about its numbers:

- All are accuracies in per cent, means over pages, on 54,816 pages watched for 184 days; pages whose flag flips on
  under 30 % of the days were left out. The change rate of the rest is not printed, so it is not known what always
  saying the commoner class would score.
- Figures 6 and 7 are charts whose values are printed nowhere; the sentences about them can be compared.
- The baseline predicts a change "with probability" its frequency (§5.1). Read as a coin that is thrown it scores less
  than the likelier of the two; both are measured.
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

SAYS = {
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
"""Sentences, each with the place where it stands."""

TOO_FEW = "too few pages flip often enough here for a test to decide"
_SAME_PAGES = "supposed: the page's own last days tell nearly all that its relatives' do"
_LEADERS = "in this world every page links to the one that leads, so links choose the only page that tells"
_BY_RELATION = "supposed: votes count by relation, and those of distant experts hardly do"
_WHY = {
    "temporal": _SAME_PAGES,
    "all choices": _SAME_PAGES,
    "all sizes": _SAME_PAGES,
    "robust": _SAME_PAGES,
    "peak": _BY_RELATION,
    "under 30": "supposed: pages drift, so that the newest days tell most",
    "alike": "supposed: DTW is free to stretch what cross-correlation takes as it is",
}
_WHY_MADE = {
    "temporal": _LEADERS,
    "graph": _LEADERS,
    "all choices": "the baseline is strong: most pages change by a coin, or while a cause is on",
    "all sizes": "the single expert has nothing to learn from coins",
    "constant": "more days are more examples of a rule that never changes",
}


def why(key: str, *, made: bool) -> str:
    """A reason why a sentence does not hold: on the made worlds it follows from how they are made."""
    return (_WHY_MADE.get(key) if made else None) or _WHY.get(key, "")
