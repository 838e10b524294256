"""One plug-in of each kind for recrawl; pyproject.toml names them."""
