"""Tables and figures of the source documents, each an experiment that one command repeats.

    recrawl lab reproduce t-fig5
    recrawl lab reproduce --all --archives sites/ --out report/

T's are functions of `t_figures`, B's of `b_runs`, Q's of `q_runs`, R's of `r_tables`, `r_figures`, `r_crawl` and
`r_beyond`. Each runs on a world that is generated from what its document prints and, where archives are given, on them;
puts what the document says beside what was measured; and says whether it holds. No world was made so that a claim comes
true: what a document does not print is taken from other published numbers or from measurements of real sites, which the
worlds' modules name.
"""

from __future__ import annotations

from recrawl.lab.experiments.alqaaideh2009 import experiments as q_runs
from recrawl.lab.experiments.barbosa2003 import experiments
from recrawl.lab.experiments.radinsky2013 import crawling, extensions, figures, tables
from recrawl.lab.experiments.result import Claim, Experiment, ExperimentOptions, Picture, Result, Verdict
from recrawl.lab.experiments.tan2007 import figures as t_figures

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

_LIST = (
    Experiment("t-table1", "T", "table 1", "Pages and sites by top-level domain", t_figures.table_1),
    Experiment("t-fig4", "T", "figure 4", "How deep pages lie", t_figures.fig_4),
    Experiment("t-fig5", "T", "figure 5", "Neighbours by links, directories and clusters", t_figures.fig_5),
    Experiment("t-fig6", "T", "figure 6", "Sampling against what was there before", t_figures.fig_6),
    Experiment("t-fig7", "T", "figure 7", "Length of a cycle and budget", t_figures.fig_7),
    Experiment("t-fig8", "T", "figure 8", "Download probability by PageRank", t_figures.fig_8),
    Experiment("t-fig9", "T", "figure 9", "Download probability by history, over 24 cycles", t_figures.fig_9),
    Experiment("b-fig2", "B", "figure 2", "Change by depth from the anchor", experiments.fig_2),
    Experiment("b-table1", "B", "table 1", "Success rate and pages by n", experiments.table_1),
    Experiment("b-case", "B", "§4", "Uniform and non-uniform visits: the case study", experiments.case_study),
    Experiment("q-fig2.2", "Q", "figure 2.2", "ChangeRatio by sample size", q_runs.fig_2_2),
    Experiment("q-example", "Q", "§2.5.4", "Greedy against proportional: 56 against 48", q_runs.example),
    Experiment("q-table4.1", "Q", "table 4.1", "The nine sites", q_runs.table_4_1),
    Experiment("q-table4.2", "Q", "table 4.2", "Estimated change rates", q_runs.table_4_2),
    Experiment("q-fig4.2", "Q", "figure 4.2", "Accuracy by sample", q_runs.fig_4_2),
    Experiment("r-table1", "R", "table 1", "Prediction from one day, content and related pages", tables.table_1),
    Experiment("r-table2", "R", "table 2", "Ways to use related pages", tables.table_2),
    Experiment("r-table3", "R", "table 3", "Ways to choose related pages", tables.table_3),
    Experiment("r-fig6", "R", "figure 6", "Accuracy by training size", figures.fig_6),
    Experiment("r-fig7", "R", "figure 7", "Accuracy by number of experts", figures.fig_7),
    Experiment("r-fig8", "R", "figure 8", "Freshness of a crawl that follows predictions", crawling.fig_8),
    Experiment("r-ours", "R", "and beyond", "Our predictors beside R's: how good, and what they cost", extensions.ours),
    Experiment("r-calibration", "R", "and beyond", "Whether chances are what they say", extensions.calibrations),
    Experiment("r-ablation", "R", "and beyond", "Which information pays", extensions.ablations),
)

EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _LIST}
"""By name."""

_AUTHORS = {"T": "tan2007", "B": "barbosa2003", "Q": "alqaaideh2009", "R": "radinsky2013"}
GROUPS: dict[str, list[str]] = {
    name: [experiment.name for experiment in _LIST if experiment.document == document]
    for document, name in _AUTHORS.items()
}
"""All experiments of a document, by its author and year."""
