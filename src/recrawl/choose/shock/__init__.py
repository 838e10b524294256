"""shock."""
