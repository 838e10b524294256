"""What a visit is worth: objectives, importance of pages, cost of visits.

- `objectives`: the value of a visit for each objective, from the change probability or the rate's posterior
- `importance`: page weights, visit costs and new links per change
"""
