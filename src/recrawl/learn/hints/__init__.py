"""Hints: what servers volunteer about change in sitemaps, feeds and pushes, and how far to trust it.

- `claims`: which dates in sitemaps, feeds and headers count as signals of a change
- `trust`: recall and false alarm rate of each source, learned from visits; change probabilities given the signals
"""
