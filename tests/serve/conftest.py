"""Clients that tests of the service open are closed again. Proves nothing by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serve.stage import OPEN


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    while OPEN:
        OPEN.pop().close()
