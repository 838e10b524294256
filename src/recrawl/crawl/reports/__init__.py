"""Questions about a repository; all but `figures` and `summaries` only read.

figures       pages, freshness and age of the repository and its sites
summaries     sums by cycle and site, written when a cycle ends
next_plan     what the next cycle would visit
change_probability  the chance that stored copies are out of date
predictions   the visits of a page and its site, in numbers
rates         change rates of pages, by several estimators
relatives     pages whose changes go with those of a page
anchors       anchors and depths of sites
hint_trust    precision and recall of each site's hints
frames        what was learned as the frame of a site
search        full-text search
"""
