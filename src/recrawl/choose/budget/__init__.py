"""Limits on what a cycle spends, around any policy.

- `allowance`: the limits of a cycle (bytes, visits per site, reserved visits), and what is left of them
- `fair`: the visits that each site claims, so that no site takes what belongs to the others
- `budgeted`: a policy kept within an allowance
"""
