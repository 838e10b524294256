"""What the command line and the service both do, without a surface: plain values in, plain values out.

anchor.py    the anchors of sites, and how change falls off from them
opening.py   a repository with its settings: read, or held for writing
naming.py    pages, sites and versions as people name them
noise.py     pages that change at every visit
predict.py   how likely a page has changed by now
times.py     times and durations as people write them
why.py       why a page was visited, or was not
"""
