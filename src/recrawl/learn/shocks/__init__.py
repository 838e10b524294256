"""shocks."""
