"""Noise filters (spec C8): parts of a page, such as dates, counters and ads, whose changes do not count.

- `filters`: the filter itself, CSS selectors and regular expressions
- `xpath`: XPath selectors, for HTML and XML
- `json_filter`: JMESPath selectors, for JSON
- `date_words`: dates, times and counters as languages write them
- `candidates`: filters that might hide what changes in every version of a page
- `proposals`: the smallest set of those candidates that makes consecutive versions equal
- `news`: which changes are news, so that no filter is proposed that would hide one
- `preview`: what a filter would have hidden of a page's changes
"""
