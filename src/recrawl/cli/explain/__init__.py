"""Commands that explain and estimate: why, predict, rates, anchor, noise, policies, plugins."""
