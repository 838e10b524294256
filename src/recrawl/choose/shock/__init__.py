"""The default policy `shock`: when one page of a group changed, visit the others of its group in the same cycle.

- `policy`: the policy and its parameters
- `shard`: a cycle on one shard, stage by stage
- `plan`: the state of one cycle: change probabilities, updated after every batch, and the value of each page
- `ranking`: selection of the pages with the highest value, without sorting all pages
"""
