"""Policies that sample every site, then download the sites that changed most (Al-Qaaideh 2009, Cho and Ntoulas 2002).

- `proportional`, `greedy`, `adaptive_sampling`: divide the downloads by the samples' change rates
- `frequency_greedy`, `frequency_adaptive`: the same, with the history of each sampled page
- `grouped`: run another policy on one group of sites at a time
- `site_sampling`: samples, rates and quotas that they share; `sample_size`: how many pages to sample
- `version_history`: which of a page's last versions had changed
"""
