"""What is learned from visits: change rates, shocks, hints, predictions, and the structure and value of pages.

All of it is computed from columns and does no I/O; policies store what they learn in the book's memory.

- `rates`: change rates from visits: estimators and posteriors
- `shocks`: the change model of the default policy: groups of pages that change together
- `hints`: signals of change in sitemaps, feeds and pushes, and the trust in their sources
- `pooled`: one model over all pages, fitted while crawling
- `experts`: change prediction from related pages and page texts, for the lab
- `structure`: directories, links, anchors and clusters of pages
- `copies`: which pages are copies of others, and which of a page's addresses stands for it
- `value`: objectives, importance of pages, cost of visits
- `chunks`: processing of long columns in chunks
"""
