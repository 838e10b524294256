"""Tan, Zhuang, Mitra and Giles 2007 (T): "Efficiently Detecting Webpage Updates Using Samples".

Table 1 and figures 4 to 9, on a world generated from what T prints, on a control without relations between pages, and
on archives.

    published   the numbers and statements that T prints
    layout      sites, directories, links and page features of the generated world
    world       the generated world: a layout and one year of changes
    replays     policies replayed on generated worlds and archives
    claims      T's statements, judged against measured rows
    figures     table 1 and figures 4 to 8
    long_run    figure 9, and the same over two years
"""

from __future__ import annotations

from recrawl.lab.experiments.result import Experiment
from recrawl.lab.experiments.tan2007 import figures, long_run

EXPERIMENTS = (
    Experiment("t-table1", "T", "table 1", "Pages and sites by top-level domain", figures.table_1),
    Experiment("t-fig4", "T", "figure 4", "Depth of pages", figures.fig_4),
    Experiment("t-fig5", "T", "figure 5", "Neighbours by links, directories and clusters", figures.fig_5),
    Experiment("t-fig6", "T", "figure 6", "Sampling against earlier policies", figures.fig_6),
    Experiment("t-fig7", "T", "figure 7", "Length of a cycle and budget", figures.fig_7),
    Experiment("t-fig8", "T", "figure 8", "Download probability by PageRank", figures.fig_8),
    Experiment("t-fig9", "T", "figure 9", "Download probability by history, over 24 cycles", long_run.fig_9),
    Experiment("t-long", "T", "§6.2, §7", "The same over 52 cycles of two years", long_run.longer),
)
"""In the order of the document."""
