"""What pydantic found wrong with an operator's file, as lines that name the place and hold no values."""

from __future__ import annotations

from typing import Final

from pydantic import ValidationError

_MEANINGS: Final = {"extra_forbidden": "unknown key", "missing": "missing"}


def explained(error: ValidationError, where: str) -> str:
    """One line per problem: file, place, what is wrong."""
    lines = []
    for problem in error.errors(include_url=False, include_input=False):
        place = ".".join(str(part) for part in problem["loc"]) or "top level"
        lines.append(f"{where}: {place}: {_MEANINGS.get(problem['type'], problem['msg'])}")
    return "\n".join(lines)
