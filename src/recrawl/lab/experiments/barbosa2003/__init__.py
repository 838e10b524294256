"""Barbosa, Cravo Neto, Salgado and Ramalho 2003 (B): "Dynamic Indexing of Information in the Web".

Figure 2, table 1 and the case study, on a world fitted to B's numbers and on archives.

    published   the numbers and statements that B prints
    world       the generated world of 61 news sites
    measures    what is measured: change by depth, success rates, delays
    figures     figure 2, table 1 and the case study
"""

from __future__ import annotations

from recrawl.lab.experiments.barbosa2003 import figures
from recrawl.lab.experiments.result import Experiment

EXPERIMENTS = (
    Experiment("b-fig2", "B", "figure 2", "Change by depth from the anchor", figures.fig_2),
    Experiment("b-table1", "B", "table 1", "Success rate and pages by n", figures.table_1),
    Experiment("b-case", "B", "§4", "Uniform and non-uniform visits: the case study", figures.case_study),
)
"""In the order of the document."""
