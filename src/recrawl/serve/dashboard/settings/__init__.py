"""The settings pages of the dashboard.

topics.py   settings by topic, and what all settings pages share
seeds.py    tracked sites and pages with their rules
policy.py   the policy with its parameters, budget and schedule
filters.py  noise filters
alerts.py   alert rules
deliveries.py   sinks, and what is parked
"""
