"""Radinsky and Bennett 2013 (R): "Predicting Content Change on the Web".

Tables 1 to 3 and figures 6 to 8, and comparisons beyond R, on planted worlds and on archives with daily observations.

    published    the numbers and statements that R prints
    settings     worlds, settings, rows and tests that all of R's experiments share
    tables       tables 1 to 3
    figures      figures 6 and 7
    crawling     figure 8: a crawl that follows predictions
    extensions   our predictors beside R's, calibration, and feature ablation
"""

from __future__ import annotations

from recrawl.lab.experiments.radinsky2013 import crawling, extensions, figures, tables
from recrawl.lab.experiments.result import Experiment

EXPERIMENTS = (
    Experiment("r-table1", "R", "table 1", "Prediction from one day, content and related pages", tables.table_1),
    Experiment("r-table2", "R", "table 2", "Ways to use related pages", tables.table_2),
    Experiment("r-table3", "R", "table 3", "Ways to choose related pages", tables.table_3),
    Experiment("r-fig6", "R", "figure 6", "Accuracy by training size", figures.fig_6),
    Experiment("r-fig7", "R", "figure 7", "Accuracy by number of experts", figures.fig_7),
    Experiment("r-fig8", "R", "figure 8", "Freshness of a crawl that follows predictions", crawling.fig_8),
    Experiment("r-ours", "R", "and beyond", "Our predictors and R's: accuracy and cost", extensions.ours),
    Experiment("r-calibration", "R", "and beyond", "Calibration of predicted probabilities", extensions.calibration),
    Experiment("r-ablation", "R", "and beyond", "Contribution of each feature family", extensions.feature_families),
)
"""In the order of the document."""
