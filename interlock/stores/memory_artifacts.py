"""Labels of artifacts in memory: for tests, demos and hosts that accept the loss at exit."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.locks import LEAF
from interlock.model.artifacts import concerns, is_lost
from interlock.model.carried import CLEAN, LOST, Carried, joined
from interlock.model.names import namespace_name


class MemoryArtifacts:
    """Implements :class:`interlock.ports.Artifacts`."""

    blocks = False

    def __init__(self, *, whole: bool = False) -> None:
        """
        Args:
            whole: your word that nothing was written to any artifact before this was made. Without it a record in
                memory can vouch for nothing that it does not know, and whatever is read is every leg.
        """
        self._whole = whole
        self._found: dict[tuple[str, str], Carried] = {}

    def carried(self, keys: Sequence[str], *, namespace: str) -> Carried:
        """See :meth:`interlock.ports.Artifacts.carried`."""
        namespace_name(namespace)
        if not self._whole or any(map(is_lost, keys)):
            return LOST
        with LEAF:
            return joined(
                foreign(one, namespace == theirs)
                for (written, theirs), one in self._found.items()
                if any(concerns(written, read) for read in keys)
            )

    def label(self, keys: Sequence[str], carried: Carried, *, namespace: str) -> None:
        """See :meth:`interlock.ports.Artifacts.label`."""
        namespace_name(namespace)
        with LEAF:
            for key in keys:
                self._found[key, namespace] = self._found.get((key, namespace), CLEAN).join(carried)


def foreign(carried: Carried, own: bool) -> Carried:
    """What is told of an artifact that another namespace wrote: its labels, and nothing about who that was."""
    return carried if own else Carried(carried.labels, (), carried.voices, carried.heard)
