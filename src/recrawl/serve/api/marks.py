"""API: requested visits, tags, read marks and saved filters."""

from __future__ import annotations

from typing import Unpack

from recrawl import parameters as given
from recrawl.errors import UsageError
from recrawl.operations import operation
from recrawl.repository.reports.pages import MAX_ID
from recrawl.serve.api.answers import (
    ListAnswer,
    MarkedReadAnswer,
    RemovedAnswer,
    RequestedVisitsAnswer,
    SavedFilterAnswer,
    TaggedAnswer,
    UntaggedAnswer,
    listing,
)
from recrawl.serve.context import Context


@operation(http="POST /recheck", commands=("recheck",), status=202, writes=True)
def recheck(context: Context, *, target: given.Target) -> RequestedVisitsAnswer:
    """Visit a page or site now; a cycle that is running comes first."""
    with context.writing() as repository:
        pages = repository.request_recheck(target)
    return RequestedVisitsAnswer(pages=pages, started=context.scheduler.run_requests())


@operation(http="PUT /tags", commands=("tag",), writes=True)
def add_tag(context: Context, *, name: given.TagName, target: given.Target) -> TaggedAnswer:
    """Tag a page or site."""
    with context.writing() as repository:
        repository.tag(name, target)
    return TaggedAnswer(name=name.strip(), target=target)


@operation(http="DELETE /tags", commands=("tag",), writes=True)
def remove_tag(context: Context, *, name: given.TagName, target: given.Target) -> UntaggedAnswer:
    """Remove a tag from a page or site."""
    with context.writing() as repository:
        repository.untag(name, target)
    return UntaggedAnswer(removed=name.strip(), target=target)


@operation(http="POST /changes/read", commands=("changes",), writes=True)
def mark_read(context: Context, *, ids: given.ChangeIds = None, read: given.Read = True) -> MarkedReadAnswer:
    """Mark changes as read or unread."""
    if ids == []:
        return MarkedReadAnswer(marked=0, read=read)
    if not all(0 <= number < MAX_ID for number in ids or ()):
        raise UsageError("'ids' must be numbers of changes, as the list of changes gives them")
    with context.writing() as repository:
        repository.mark_read(*(ids or ()), read=read)
    return MarkedReadAnswer(marked="all" if ids is None else len(ids), read=read)


@operation(http="GET /saved-filters", commands=("changes",))
def saved_filters(context: Context) -> ListAnswer[SavedFilterAnswer]:
    """List the saved filters of changes."""
    with context.reading() as repository:
        saved = repository.saved_filters()
    return listing(SavedFilterAnswer, ({"name": name, "filter": fields} for name, fields in saved.items()))


@operation(http="PUT /saved-filters", commands=("changes",), writes=True)
def save_filter(
    context: Context, *, name: given.FilterName, **fields: Unpack[given.ChangeConditions]
) -> SavedFilterAnswer:
    """Save a filter of changes."""
    kept = {field: str(value) for field, value in fields.items() if value}
    with context.writing() as repository:
        repository.save_filter(name, **kept)
    return SavedFilterAnswer(name=name.strip(), filter=kept)


@operation(http="DELETE /saved-filters", commands=("changes",), writes=True)
def remove_saved_filter(context: Context, *, name: given.FilterName) -> RemovedAnswer:
    """Delete a saved filter."""
    with context.writing() as repository:
        repository.remove_filter(name)
    return RemovedAnswer(removed=name)
