"""The files of agents that are somewhere else."""

from __future__ import annotations

from collections.abc import Sequence


class FarFiles:
    """Implements :class:`interlock.ports.Files` for machines that can't be looked at: no path leads anywhere, so no
    clause of the manifest that needs a resolved path holds, and such tools keep every leg."""

    def resolve(self, paths: Sequence[str]) -> tuple[str, ...]:  # noqa: ARG002 - the port's signature
        """Nothing."""
        return ()
