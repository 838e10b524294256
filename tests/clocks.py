"""A clock for tests."""


class Clock:
    """Stands still unless the test moves it: seconds since 1970."""

    def __init__(self, now: float = 1.7e9) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now
