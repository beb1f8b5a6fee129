"""The ``interlock`` command: ``interlock hook`` is told apart before anything is imported that takes time."""

from __future__ import annotations

import sys


def main() -> None:
    """The console entry point. Never returns for a hook."""
    if sys.argv[1:2] == ["hook"] and not {"-h", "--help"}.intersection(sys.argv[2:]):
        from interlock.hook import main as hook

        hook(sys.argv[2:])
    from interlock.cli import main as command

    command()
