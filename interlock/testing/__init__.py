"""What we ship for other people's tests: strategies, state machines, conformance checks and a pytest plugin.

Needs the extra ``interlock[test]``. Nothing is loaded before it is asked for: the plugin of an installed Interlock must
cost nothing in a project that does not use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.testing.conformance import check_conversation as check_conversation

_CHECKS = ("check_conversation",)
__all__ = ["check_conversation"]


def __getattr__(name: str) -> Any:
    if name not in _CHECKS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from interlock.testing import conformance

    return getattr(conformance, name)
