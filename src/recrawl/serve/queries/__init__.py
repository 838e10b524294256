"""What the dashboard and the API ask of a repository: plain functions over the store, read only, each bounded.

No question here looks at all pages or all visits: lists go by an index and have a limit, sums come from the summaries
that are written when a cycle ends. What is shown of a very large site is a part of it, and says so.
"""
