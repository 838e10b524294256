"""The command `recrawl`, also as `python -m recrawl`."""

import gc


def main() -> None:
    """Run the command."""
    gc.set_threshold(100_000, 20, 20)  # imports make many objects and hardly a reference cycle: no search for them
    from recrawl.cli import main as command  # lazy: what it imports is most of the start

    command()


if __name__ == "__main__":
    main()
