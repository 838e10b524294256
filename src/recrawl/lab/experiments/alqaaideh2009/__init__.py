"""Al-Qaaideh 2009 (Q): "A Hybrid Approach for Web Change Detection".

The example of §2.5.4, figures 2.2 and 4.2, and tables 4.1 and 4.2, on worlds generated from Q's numbers and on
archives.

    published     the numbers that Q prints
    measures      what is measured: ChangeRatio by sample size, estimated change rates
    variation     figure 4.1: how change rates vary over time
    meta_updates  figure 1.3: crawlers with and without the meta-updates tag
    figures       the example, figures and tables
"""

from __future__ import annotations

from recrawl.lab.experiments.alqaaideh2009 import figures, meta_updates, variation
from recrawl.lab.experiments.result import Experiment

EXPERIMENTS = (
    Experiment("q-fig1.3", "Q", "figure 1.3", "Meta-updates against an ordinary crawler", meta_updates.fig_1_3),
    Experiment("q-fig2.2", "Q", "figure 2.2", "ChangeRatio by sample size", figures.fig_2_2),
    Experiment("q-example", "Q", "§2.5.4", "Greedy against proportional: 56 against 48", figures.example),
    Experiment("q-table4.1", "Q", "table 4.1", "The nine sites", figures.table_4_1),
    Experiment(
        "q-fig4.1", "Q", "figure 4.1", "Variation of the change rate, and the number of versions", variation.fig_4_1
    ),
    Experiment("q-table4.2", "Q", "table 4.2", "Estimated change rates", figures.table_4_2),
    Experiment("q-fig4.2", "Q", "figure 4.2", "Accuracy by sample", figures.fig_4_2),
)
"""In the order of the document."""
