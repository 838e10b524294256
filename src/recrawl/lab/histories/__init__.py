"""Histories: the versions of web pages over time, as columns. Replays run on them.

- `history`: the columns of a history, and `assemble`, which builds one from sorted rows
- `opening`: from archive files to a history, under a definition of change
- `change_steps`: which versions differ enough from the one before (significance, divergence)
- `slicing`: parts of a history
- `weights`: page weights of a history
"""
