"""Limits on what a cycle spends, around any policy.

- `allowance`: the limits of a cycle (bytes, visits per site, reserved visits), and what is left of them
- `budgeted`: a policy kept within an allowance
"""
