"""Shards: a collection divided by site, so that many processes can plan one cycle with one budget.

A shard is a set of sites with a book, a memory and a plan of its own. In every round of a cycle each shard offers a
histogram of the worth of its candidates; from all histograms follows the worth from which on pages are visited, and
each shard takes its own pages above it. Without shards, a policy that can be split runs as its only shard, through the
same code.

- `placement`: the shard of a site, by a stable hash of its registrable domain
- `offers`: the histogram that a shard offers, the threshold and quotas that follow from all of them, and
  the budget of a cycle, divided round by round
- `rounds`: the interface of policies that can be split, the rounds of a cycle, a policy over several shards
"""
