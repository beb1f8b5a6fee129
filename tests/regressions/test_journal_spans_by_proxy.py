"""Spans for a collector on this machine, and the key for it, went in clear to a proxy on another one.

A plain HTTP address is refused for another machine unless the operator says ``plaintext``. But the exporter's session
took ``HTTP_PROXY`` from the environment, for loopback too: everything, the secret in the headers included, was shown to
whoever runs the proxy.
Mutation that this file catches: a session that looks into the environment.
"""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http")

from interlock import telemetry
from interlock.model.configuration import OtelChoice
from interlock.model.telemetry import CallSpan
from tests.collector import collector

AT = "2026-11-29T12:00:00.000000Z"
SPAN = CallSpan("execute_tool note", "a" * 32, "b" * 16, AT, AT, {})


@pytest.mark.parametrize("name", ["http_proxy", "HTTP_PROXY", "all_proxy"])
def test_no_proxy_stands_between(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with collector() as meant, collector() as proxy:
        for one in ("no_proxy", "NO_PROXY", "REQUEST_METHOD"):
            monkeypatch.delenv(one, raising=False)
        monkeypatch.setenv(name, proxy.url)
        exporter = telemetry.otlp_exporter(
            OtelChoice(endpoint=meant.url, headers_from="KEY"), {"KEY": "x-api-key=secret"}
        )
        assert telemetry.send([SPAN], exporter, "tests") == 1
        exporter.shutdown()
        assert proxy.requests == []
        assert [one["x-api-key"] for one in meant.requests] == ["secret"]
