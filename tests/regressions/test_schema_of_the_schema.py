"""T6: a document whose `schema` is `true` passed for version 1, since `True == 1` in Python.

No control reads the field, so nothing was loosened; but the check is the promise that only well-typed documents reach
an engine, and a JSON schema validator with the published schema refuses it.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from interlock.errors import EngineUnavailable
from interlock.model.document import check_document
from interlock.policy.samples import SAMPLES


@pytest.mark.parametrize("value", [True, 1.0, "1", [1], 0, 2, None])
def test_t6_the_version_is_the_integer_one(value: Any) -> None:
    document = copy.deepcopy(SAMPLES["clean send"])
    document["schema"] = value
    with pytest.raises(EngineUnavailable):
        check_document(document)
