"""barbosa2003."""
