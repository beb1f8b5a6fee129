"""An OTLP/HTTP collector on loopback that reads what it is sent. Holds no test."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Collected:
    """Every span that arrived, as plain values, and the requests that brought them."""

    url: str
    spans: list[dict[str, Any]] = field(default_factory=list)
    requests: list[Mapping[str, str]] = field(default_factory=list)
    status: int = 200
    wait: threading.Event | None = None


@contextmanager
def collector() -> Iterator[Collected]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                body = gzip.decompress(body)
            if found.wait is not None:
                found.wait.wait()
            found.requests.append({"path": self.path, **dict(self.headers)})
            if found.status == 200:
                found.spans.extend(_read(ExportTraceServiceRequest.FromString(body)))
            self.send_response(found.status)
            self.send_header("Content-Type", "application/x-protobuf")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *values: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    found = Collected(f"http://127.0.0.1:{server.server_address[1]}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield found
    finally:
        if found.wait is not None:
            found.wait.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _read(request: Any) -> Iterator[dict[str, Any]]:
    for resource in request.resource_spans:
        about = {one.key: _value(one.value) for one in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield {
                    "name": span.name,
                    "trace": span.trace_id.hex(),
                    "span": span.span_id.hex(),
                    "parent": span.parent_span_id.hex(),
                    "start": span.start_time_unix_nano,
                    "end": span.end_time_unix_nano,
                    "status": span.status.code,
                    "attributes": {one.key: _value(one.value) for one in span.attributes},
                    "service": about["service.name"],
                    "scope": scope.scope.name,
                }


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return tuple(_value(one) for one in value.array_value.values)
    return getattr(value, kind) if kind else None
