"""`python -m recrawl`."""

from recrawl.cli import main

main()
