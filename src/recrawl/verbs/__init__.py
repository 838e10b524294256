"""What the command line and the service both do, without a surface: plain values in, plain values out.

opening.py   a repository with its settings: read, or held for writing
naming.py    pages, sites and versions as people name them
times.py     times and durations as people write them
"""
