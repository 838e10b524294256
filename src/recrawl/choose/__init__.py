"""Policies: which pages a cycle visits, and in which order. One module per policy, grouped by where it comes from.

A policy reads the `Book` and yields batches of `Picks`; it does no I/O. To add one, write a module in the folder that
fits and add its module and class to `registry.POLICIES`.

- `protocol`: the interfaces `Policy` and `Learner`
- `custom`: policies of the user's own, as `module:Class(param=value)`
- `registry`: all policies by name; conversion between a policy and its text, `name(param=value)`
- `top_k`: selection of the k best pages, and ranks within groups
- `papers`: the policies of the papers that recrawl reproduces, and simple baselines
- `crawlers`: the revisit rules of other crawlers
- `optimal`: visit rates that maximise an objective under a change model
- `shock`: the default policy, which infers that whole groups of pages changed together
- `shards`: a collection divided by site, planned with one budget
- `budget`: limits per site, per host and in bytes, around any policy
"""

from typing import TYPE_CHECKING, Any

from recrawl.choose.protocol import Choice, Policy

if TYPE_CHECKING:
    from recrawl.choose.registry import (
        POLICIES,
        describe,
        kind_of,
        make_policy,
        parameter_texts,
        parameters,
        policy_of,
        usable_policies,
    )

__all__ = [
    "POLICIES",
    "Choice",
    "Policy",
    "describe",
    "kind_of",
    "make_policy",
    "parameter_texts",
    "parameters",
    "policy_of",
    "usable_policies",
]


def __getattr__(name: str) -> Any:
    """The names of `registry`: commands that only read need none of them."""
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    from recrawl.choose import registry  # lazy: most commands choose nothing

    return getattr(registry, name)
