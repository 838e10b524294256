"""crawlers."""
