"""T10, T16: a stored entry with a label that is none was read as an entry, and then broke the fold.

`decode` promises an entry that this version knows. `Label` is only a name for text at run time, so anything passed, and
`apply` met it with `ValueError` or `Refused`, which no caller takes for a damaged journal.
"""

from __future__ import annotations

import pytest

from interlock.errors import Tampered
from interlock.model.digests import digest
from interlock.model.entries import Admitted, Opened, decode, encode
from interlock.model.labels import Label


@pytest.mark.parametrize("text", ["", "private", "other:mail", "private:", "Private:mail", "private:Mail", "a:b:c"])
def test_t10_a_label_that_is_none_is_tampered(text: str) -> None:
    for entry in (
        Opened("t", "c-1", labels=(Label(text),)),
        Admitted("t", "x", (Label("private:mail"), Label(text)), digest("content", b""), 0),
    ):
        with pytest.raises(Tampered):
            decode(encode(entry))
