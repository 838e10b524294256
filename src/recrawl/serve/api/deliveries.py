"""API: sinks, and deliveries that are parked."""

from __future__ import annotations

from recrawl import parameters as given
from recrawl.errors import UsageError
from recrawl.operations import operation
from recrawl.serve.api.answers import ListAnswer, ParkedAnswer, SettledAnswer, SinkAnswer, listing
from recrawl.serve.api.routes import number_after
from recrawl.serve.context import Context


@operation(http="GET /sinks")
def sinks(context: Context) -> ListAnswer[SinkAnswer]:
    """List the sinks, without their secrets, targets and folders."""
    with context.reading() as repository:
        return listing(SinkAnswer, [state.as_dict() for state in repository.sinks()])


@operation(http="GET /deliveries")
def deliveries(
    context: Context, *, receiver: given.Receiver = "", limit: given.PageLimit = 50, after: given.After = ""
) -> ListAnswer[ParkedAnswer]:
    """List the changes that a sink or the receiver of an alert refused, or that failed too often, oldest first."""
    with context.reading() as repository:
        found = repository.parked(receiver, limit=limit, after=number_after(after))
    return listing(ParkedAnswer, [row.as_dict() for row in found], found[-1].number if len(found) == limit else None)


@operation(http="POST /deliveries/retry", writes=True)
def retry_deliveries(
    context: Context, *, receiver: given.Receiver = "", numbers: given.ParkedNumbers = None
) -> SettledAnswer:
    """Send parked changes again: those with these numbers, or all of a receiver."""
    _check(receiver, numbers)
    with context.writing() as repository:
        return SettledAnswer(changes=repository.retry_parked(receiver, numbers or []))


@operation(http="POST /deliveries/drop", writes=True)
def drop_deliveries(
    context: Context, *, receiver: given.Receiver = "", numbers: given.ParkedNumbers = None
) -> SettledAnswer:
    """Drop parked changes: those with these numbers, or all of a receiver."""
    _check(receiver, numbers)
    with context.writing() as repository:
        return SettledAnswer(changes=repository.drop_parked(receiver, numbers or []))


def _check(receiver: str, numbers: list[int] | None) -> None:
    if not receiver and not numbers:
        raise UsageError("name the receiver, or give the numbers of parked changes")
