"""Histories: the versions of web pages over time, as columns. Replays run on them.

- `history`: the columns of a history, `assemble`, which builds one from sorted rows, and parts of it
- `opening`: from archive files to a history, under a definition of change
- `content_walk`: changes of content, judged by what the archive held at the time
- `weights`: page weights of a history
"""
