"""What recrawl has learned of pages and sites, and the reasons of its choices.

why.py         why a page was visited or not
plans.py       the plan of the next cycle
prediction.py  how likely a page has changed
rates.py       change rates
anchors.py     anchors of sites, and change by depth
copies.py      pages with several URLs, and what was learned from them
noise.py       proposals for noise filters, and previews
"""
