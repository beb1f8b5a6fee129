"""Where the catalogue is: one file per server, beside the shipped controls."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from interlock.errors import ManifestError
from interlock.model.catalogue import Known, parse_known
from interlock.model.markup import read
from interlock.policy.sources import shipped_directory


@cache
def shipped_catalogue() -> tuple[Known, ...]:
    """Every server that the shipped catalogue knows, by name.

    Raises:
        ManifestError: a file is wrong, or two files claim the same name or package.
        PolicyError: nothing is installed.
    """
    return read_catalogue(shipped_directory() / "catalog")


def read_catalogue(folder: Path) -> tuple[Known, ...]:
    """Read every ``.toml`` of a folder; see :func:`shipped_catalogue`."""
    found = []
    claimed: dict[str, str] = {}
    for file in sorted(folder.glob("*.toml")):
        where = f"catalogue: {file.name}"
        known = parse_known(read(file.read_text(encoding="utf-8"), "toml", where, ManifestError), where)
        for name in (*known.names, *known.packages, *known.hosts):
            other = claimed.setdefault(name, known.name)
            if other != known.name:
                raise ManifestError(f"{where}: {name!r} is claimed by {other!r} already; a server has one entry")
        found.append(known)
    if not found:
        raise ManifestError(f"{folder}: no catalogue here; install interlock again")
    return tuple(found)
