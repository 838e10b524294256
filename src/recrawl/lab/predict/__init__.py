"""Predicting change in the lab (spec §7): features over days, relations between pages, experts, the protocol of R."""
