"""Policies that derive visits from an objective and each page's change rate.

- `rate_base`: the base classes: change rates from visits, and the pages with the highest index
- `optimal_index`: `optimal-freshness` and `optimal-age` (Cho and Garcia-Molina)
- `lambda_crawl`: `lambda-crawl`: visit frequencies solved for in every cycle (Kolobov et al., Azar et al.)
- `ncis`: `ncis`: freshness with noisy change signals (Busa-Fekete et al.)
"""
