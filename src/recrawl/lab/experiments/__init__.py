"""Tables and figures of the source documents, each an experiment that one command repeats.

    recrawl lab reproduce t-fig5
    recrawl lab reproduce --all --archives sites/ --out report/

Each experiment runs on a world generated from what its document prints and, where archives are given, on them. It puts
the document's numbers and statements beside what was measured, and judges whether they hold. No world was adjusted to
make a claim hold: what a document does not print is taken from other published numbers or from measurements of real
sites, which the worlds' modules name.

    tan2007         T: sampling policies on a world like T's
    barbosa2003     B: change by distance from a news site's anchor page
    alqaaideh2009   Q: estimated change rates and sampling policies
    radinsky2013    R: change prediction from related pages, and our predictors beside it
    readings        sentences that can be read in several ways, and what replays each reading
    intervals       means with 95 % intervals over seeds
    result          Experiment, ExperimentOptions, Result, Claim, Verdict, Picture
    report          the Markdown page, charts and JSON of a run
"""

from __future__ import annotations

from recrawl.lab.experiments import alqaaideh2009, barbosa2003, radinsky2013, tan2007
from recrawl.lab.experiments.result import Claim, Experiment, ExperimentOptions, Picture, Result, Verdict

__all__ = [
    "DOCUMENTS",
    "EXPERIMENTS",
    "GROUPS",
    "Claim",
    "Experiment",
    "ExperimentOptions",
    "Picture",
    "Result",
    "Verdict",
]

DOCUMENTS = {
    "T": "Tan, Zhuang, Mitra, Giles 2007: Efficiently Detecting Webpage Updates Using Samples",
    "B": "Barbosa, Cravo Neto, Salgado, Ramalho 2003: Dynamic Indexing of Information in the Web",
    "Q": "Al-Qaaideh 2009: A Hybrid Approach for Web Change Detection",
    "R": "Radinsky, Bennett 2013: Predicting Content Change on the Web",
}
"""By letter."""

_BY_DOCUMENT = {
    "tan2007": tan2007.EXPERIMENTS,
    "barbosa2003": barbosa2003.EXPERIMENTS,
    "alqaaideh2009": alqaaideh2009.EXPERIMENTS,
    "radinsky2013": radinsky2013.EXPERIMENTS,
}
EXPERIMENTS: dict[str, Experiment] = {it.name: it for group in _BY_DOCUMENT.values() for it in group}
"""By name."""
GROUPS: dict[str, list[str]] = {document: [it.name for it in group] for document, group in _BY_DOCUMENT.items()}
"""The names of a document's experiments, by its author and year."""
