"""Spans of guarded calls to an OpenTelemetry collector (``interlock[otel]``).

An observer and nothing else: it is told after the journal was written, it is never waited for, and whatever becomes of
it allows and blocks no call. What is told goes into a bounded queue; when that is full, because a collector is slow or
gone, it is dropped and counted. A worker thread does the rest.
"""

from __future__ import annotations

import atexit
import logging
import os
import queue
import threading
import time
import weakref
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from interlock.errors import Misconfigured, Unavailable
from interlock.model.entries import Decided, Entry, Failed, Observed
from interlock.model.state import State
from interlock.model.telemetry import Calls, CallSpan

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

    from interlock.model.configuration import OtelChoice

BATCH: Final = 512
DELAY: Final = 1.0  # seconds that a span may wait for others
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOOPBACK: Final = ("localhost", "127.0.0.1", "::1")
_LOGGER: Final = logging.getLogger("interlock")
_MISSING: Final = "spans need `pip install interlock[otel]`"


@dataclass(frozen=True, slots=True)
class _Told:
    conversation: str
    entries: tuple[Entry, ...]
    state: State
    context: Any


class Telemetry:
    """Hands spans of guarded calls to an exporter, from a thread of its own. Safe between threads, and after a fork.

    Attributes:
        exported: spans that the exporter took.
        failed: spans that it did not take.
        dropped: decisions and outcomes that came while the queue was full, and that no span tells of.
        errors: how often anything here went wrong that should not. Never raised: nothing of it concerns a call.
    """

    def __init__(self, exporter: SpanExporter, *, room: int = 2048, service: str = "interlock") -> None:
        """
        Args:
            exporter: of the OpenTelemetry SDK; closed with this.
            room: how much may wait, in writes of the journal.

        Raises:
            ImportError: the extra `otel` is not installed.
        """
        self._exporter = exporter
        self._resource = _resource(service)
        self._room = room
        self.exported = self.failed = self.dropped = self.errors = 0
        self._closed = False
        self._starting = threading.Lock()
        self._begin()
        closing = weakref.WeakMethod(self.close)
        atexit.register(lambda: (method := closing()) and method(2.0))

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._queue: queue.Queue[_Told | threading.Event] = queue.Queue(self._room)
        self._calls = Calls()
        self._thread: threading.Thread | None = None

    # --- on the path of a call --------------------------------------------------------------------------------------

    def watch(self, conversation: str, entries: Sequence[Entry], state: State) -> None:
        """Be told what was written. Returns at once and never raises."""
        try:
            told = tuple(one for one in entries if isinstance(one, Decided | Observed | Failed))
            if not told or self._closed:
                return
            if self._thread is None or self._pid != os.getpid():
                self._start()
            try:
                self._queue.put_nowait(_Told(conversation, told, state, _current_span()))
            except queue.Full:
                self.dropped += len(told)
        except Exception:  # an observer must not be able to refuse a call, nor to hide that it is broken
            self.errors += 1

    def _start(self) -> None:
        with self._starting:
            if self._pid != os.getpid():
                self._begin()
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="interlock-otel", daemon=True)
                self._thread.start()

    # --- in the worker ----------------------------------------------------------------------------------------------

    def _work(self) -> None:
        waiting: list[ReadableSpan] = []
        since = time.monotonic()
        while True:
            try:
                one = self._queue.get(timeout=DELAY if not waiting else max(0.0, since + DELAY - time.monotonic()))
            except queue.Empty:
                one = None
            if isinstance(one, _Told):
                if not waiting:
                    since = time.monotonic()
                waiting += self._spans(one)
            due = bool(waiting) and time.monotonic() >= since + DELAY
            if isinstance(one, threading.Event) and self._closed:
                waiting += [self._readable(span, context) for span, context in self._calls.rest()]
            if len(waiting) >= BATCH or due or isinstance(one, threading.Event):
                self._send(waiting)
                waiting = []
            if isinstance(one, threading.Event):
                one.set()
                if self._closed:
                    return

    def _spans(self, told: _Told) -> list[ReadableSpan]:
        try:
            state = told.state
            ended = self._calls.told(state.namespace, told.conversation, told.entries, state.exposure, told.context)
            return [self._readable(span, context) for span, context in ended]
        except Exception:  # see `watch`
            self.errors += 1
            return []

    def _send(self, waiting: list[ReadableSpan]) -> None:
        for start in range(0, len(waiting), BATCH):
            part = waiting[start : start + BATCH]
            if _taken(self._exporter, part):
                self.exported += len(part)
            else:
                self.failed += len(part)

    def _readable(self, span: CallSpan, context: Any = None) -> ReadableSpan:
        return readable(span, self._resource, context)

    # --- ending -----------------------------------------------------------------------------------------------------

    def flush(self, timeout: float = 10.0) -> bool:
        """Wait until everything that was told by now was handed over. False when that took too long."""
        if self._thread is None or self._pid != os.getpid():
            return True
        done = threading.Event()
        try:
            self._queue.put(done, timeout=timeout)
        except queue.Full:
            return False
        return done.wait(timeout)

    def close(self, timeout: float = 10.0) -> None:
        """Hand over what waits, calls without an outcome too, and close the exporter. What comes later is dropped."""
        if self._closed:
            return
        self._closed = True
        if not self.flush(timeout):
            _LOGGER.warning("the collector of spans did not take what was left within %.0f s", timeout)
        try:
            self._exporter.shutdown()
        except Exception:  # see `watch`
            self.errors += 1


def _taken(exporter: SpanExporter, part: Sequence[ReadableSpan]) -> bool:
    from opentelemetry.sdk.trace.export import SpanExportResult

    try:
        return exporter.export(part) is SpanExportResult.SUCCESS
    except Exception:  # whatever an exporter raises, its spans were not taken
        return False


def _resource(service: str) -> Resource:
    try:
        from opentelemetry.sdk.resources import Resource
    except ImportError as error:
        raise ImportError(_MISSING) from error
    return Resource.create({"service.name": service})


def _current_span() -> Any:
    """What the host is doing: its span becomes the parent of the call's."""
    from opentelemetry.trace import get_current_span

    context = get_current_span().get_span_context()
    return context if context.is_valid else None


def readable(span: CallSpan, resource: Resource, parent: Any = None) -> ReadableSpan:
    """A span as the SDK's exporters take it. With a parent it belongs to that one's trace, else to its conversation's.

    Its ids are worked out from the journal and not drawn, so it is built here and not by a tracer.
    """
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope
    from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

    trace = parent.trace_id if parent is not None else int(span.trace, 16)
    return ReadableSpan(
        name=span.name,
        context=SpanContext(trace, int(span.span, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED)),
        parent=parent,
        resource=resource,
        attributes=dict(span.attributes),
        kind=SpanKind.INTERNAL,
        status=Status(StatusCode.ERROR, span.error) if span.error else Status(StatusCode.UNSET),
        start_time=_nanoseconds(span.start),
        end_time=_nanoseconds(span.end),
        instrumentation_scope=InstrumentationScope("interlock"),
    )


def _nanoseconds(at: str) -> int:
    try:
        time_of = datetime.fromisoformat(at)
    except ValueError:  # a clock of somebody's own
        return 0
    return (time_of.replace(tzinfo=time_of.tzinfo or UTC) - _EPOCH) // timedelta(microseconds=1) * 1000


def otlp_exporter(choice: OtelChoice, environment: Mapping[str, str] = os.environ) -> SpanExporter:
    """An exporter to the collector that the operator chose, over OTLP/HTTP.

    Raises:
        Misconfigured: the address is none, would send spans to another machine in clear, or the variable that holds
            the headers is not set.
        ImportError: the extra `otel` is not installed.
    """
    where = urlsplit(choice.endpoint)
    if where.scheme not in ("http", "https") or not where.hostname:
        raise Misconfigured(f"otel.endpoint: {choice.endpoint!r} is no http(s) address, such as http://localhost:4318")
    if where.scheme == "http" and where.hostname not in _LOOPBACK and not choice.plaintext:
        raise Misconfigured(
            f"otel.endpoint: spans would go to {where.hostname} in clear; use https, or write plaintext = true"
        )
    if choice.headers_from and choice.headers_from not in environment:
        raise Misconfigured(f"otel.headers_from: the environment variable {choice.headers_from} is not set")
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.util.re import parse_env_headers
    except ImportError as error:
        raise ImportError(_MISSING) from error
    headers = parse_env_headers(environment.get(choice.headers_from, ""), liberal=True)
    address = choice.endpoint if where.path not in ("", "/") else choice.endpoint.rstrip("/") + "/v1/traces"
    return OTLPSpanExporter(
        endpoint=address,
        headers=dict(headers),
        timeout=choice.timeout,
        session=_direct() if where.scheme == "http" else None,
    )


def _direct() -> Any:
    """A session that goes straight to the collector. In clear, a proxy of the environment's would read all, and the
    headers' secrets with it, and with TLS it reads nothing."""
    import requests  # comes with the exporter

    session = requests.Session()
    session.trust_env = False
    return session


def exporting(choice: OtelChoice) -> Telemetry:
    """The live exporter that the operator chose.

    Raises:
        Misconfigured, ImportError: see :func:`otlp_exporter`. A collector that does not answer is no error.
    """
    return Telemetry(otlp_exporter(choice), room=choice.queue, service=choice.service)


def send(spans: Iterable[CallSpan], exporter: SpanExporter, service: str) -> int:
    """Hand over spans of a journal, waiting for each batch; how many.

    Raises:
        Unavailable: the collector did not take a batch. Those before it were taken.
    """
    resource, sent, part = _resource(service), 0, list[Any]()

    def hand_over() -> None:
        nonlocal sent
        if not _taken(exporter, part):
            raise Unavailable(f"the collector did not take the spans; it has {sent} of them")
        sent += len(part)
        part.clear()

    for span in spans:
        part.append(readable(span, resource))
        if len(part) == BATCH:
            hand_over()
    if part:
        hand_over()
    return sent
