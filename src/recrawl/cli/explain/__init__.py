"""Commands that explain and estimate: why, anchor, noise, policies, plugins."""
