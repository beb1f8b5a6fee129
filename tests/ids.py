"""Names of parameters, the same in every process: without addresses, sets in order. Proves nothing by itself."""

from __future__ import annotations

import re


def stable(value: object) -> str:
    """A short ASCII text of a parameter: processes that share the work compare the names that they collected."""
    text = ascii(sorted(value)) if isinstance(value, set | frozenset) else ascii(value)
    return re.sub(r" at 0x[0-9a-f]+", "", text)[:60]
