"""API: requested visits, tags, read marks and saved filters."""

from __future__ import annotations

from typing import Any

from recrawl.errors import UsageError
from recrawl.repository.marks import FILTER_FIELDS
from recrawl.repository.reports.pages import MAX_ID
from recrawl.serve.api.fields import Field
from recrawl.serve.api.operations import Arguments, Operation, rows
from recrawl.serve.context import Context


def recheck(context: Context, given: Arguments) -> dict[str, Any]:
    """Request a visit to a page or site, and start it unless a cycle is running, which is followed by it."""
    with context.writing() as repository:
        pages = repository.request_recheck(given["target"])
    return {"pages": pages, "started": context.scheduler.run_requests()}


def tags(context: Context, _: Arguments) -> dict[str, Any]:
    """List the tags with their number of sites and pages."""
    with context.reading() as repository:
        return rows([{"name": name, "sites": sites, "pages": pages} for name, sites, pages in repository.tags()])


def add_tag(context: Context, given: Arguments) -> dict[str, Any]:
    """Tag a page or site."""
    with context.writing() as repository:
        repository.tag(given["name"], given["target"])
    return {"name": given["name"].strip(), "target": given["target"]}


def remove_tag(context: Context, given: Arguments) -> dict[str, Any]:
    """Remove a tag from a page or site."""
    with context.writing() as repository:
        repository.untag(given["name"], given["target"])
    return {"removed": given["name"].strip(), "target": given["target"]}


def mark_read(context: Context, given: Arguments) -> dict[str, Any]:
    """Mark changes as read or unread; without numbers, mark all so far as read."""
    numbers = [int(number) for number in given["ids"] or () if 0 <= number < MAX_ID and number == int(number)]
    if len(numbers) < len(given["ids"] or ()):
        raise UsageError("'ids' must be numbers of changes, as the list of changes gives them")
    with context.writing() as repository:
        repository.mark_read(*numbers, read=given["read"])
    return {"marked": len(numbers) or "all", "read": given["read"]}


def saved_filters(context: Context, _: Arguments) -> dict[str, Any]:
    """List the saved filters of changes."""
    with context.reading() as repository:
        return rows([{"name": name, "filter": fields} for name, fields in repository.saved_filters().items()])


def save_filter(context: Context, given: Arguments) -> dict[str, Any]:
    """Save a filter of changes under a name."""
    fields = {name: given[name] for name in FILTER_FIELDS if given[name]}
    with context.writing() as repository:
        repository.save_filter(given["name"], **fields)
    return {"name": given["name"].strip(), "filter": fields}


def remove_saved_filter(context: Context, given: Arguments) -> dict[str, Any]:
    """Delete a saved filter."""
    with context.writing() as repository:
        repository.remove_filter(given["name"])
    return {"removed": given["name"]}


_TARGET = Field("target", "string", "URL of a page, or a site as example.org: all of its pages.", required=True)
_TAG = Field("name", "string", "The tag.", required=True)
_NAME = Field("name", "string", "Name of the saved filter.", required=True)
OPERATIONS = (
    Operation(
        method="POST",
        path="/recheck",
        name="recheck",
        verbs=("recheck",),
        summary="Visit a page or site now.",
        answer=recheck,
        status=202,
        body=(_TARGET,),
    ),
    Operation(
        method="GET", path="/tags", name="tags", verbs=("tag",), summary="List the tags.", answer=tags, returns="rows"
    ),
    Operation(
        method="PUT",
        path="/tags",
        name="add_tag",
        verbs=("tag",),
        summary="Tag a page or site.",
        answer=add_tag,
        body=(_TAG, _TARGET),
    ),
    Operation(
        method="DELETE",
        path="/tags",
        name="remove_tag",
        verbs=("tag",),
        summary="Remove a tag from a page or site.",
        answer=remove_tag,
        query=(_TAG, _TARGET),
    ),
    Operation(
        method="POST",
        path="/changes/read",
        name="mark_read",
        verbs=("changes",),
        summary="Mark changes as read or unread.",
        answer=mark_read,
        body=(
            Field("ids", "numbers", "Numbers (`id`) of changes; omitted: all so far."),
            Field("read", "boolean", "False marks them as unread.", default=True),
        ),
    ),
    Operation(
        method="GET",
        path="/saved-filters",
        name="saved_filters",
        verbs=("changes",),
        summary="List the saved filters of changes.",
        answer=saved_filters,
        returns="rows",
    ),
    Operation(
        method="PUT",
        path="/saved-filters",
        name="save_filter",
        verbs=("changes",),
        summary="Save a filter of changes.",
        answer=save_filter,
        body=(_NAME, *(Field(name, "string", "As in the dashboard's list of changes.") for name in FILTER_FIELDS)),
    ),
    Operation(
        method="DELETE",
        path="/saved-filters",
        name="remove_saved_filter",
        verbs=("changes",),
        summary="Delete a saved filter.",
        answer=remove_saved_filter,
        query=(_NAME,),
    ),
)
