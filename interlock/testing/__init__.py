"""What we ship for other people's tests: strategies, state machines, conformance checks and a pytest plugin.

Needs the extra ``interlock[test]``. Nothing is loaded before it is asked for: the plugin of an installed Interlock must
cost nothing in a project that does not use it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from interlock.testing.conformance import check_conversation as check_conversation
    from interlock.testing.conformance import check_engine as check_engine
    from interlock.testing.conformance import check_integration as check_integration
    from interlock.testing.conformance import check_journal as check_journal
    from interlock.testing.conformance import check_session as check_session
    from interlock.testing.kit import Agent as Agent
    from interlock.testing.kit import Kit as Kit

__all__ = ["Agent", "Kit", "check_conversation", "check_engine", "check_integration", "check_journal", "check_session"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    home = "conformance" if name.startswith("check_") else "kit"
    return getattr(import_module(f"{__name__}.{home}"), name)
