"""The policies of the papers that recrawl reproduces, and the baselines they are compared with.

- `round_robin`, `random_sampling`: baselines
- `explore`: new pages in the order of a crawl
- `by_site`: sample sites, then download the sites that changed most
- `change_frequency`: visits in proportion to each page's estimated change rate
- `sampling`: sample pages, then visit the neighbours of changed ones (directory, links or clusters)
- `anchor_depth`: visit pages near the page that links a site's news more often
- `predicted`: visit the pages that a learned model ranks as most likely changed
"""
