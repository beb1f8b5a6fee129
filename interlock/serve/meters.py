"""What ``/metrics`` shows. No label holds an id of a conversation or a call, a namespace, a principal or an argument:
whoever may read metrics is not whoever may read conversations, and series must stay few."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from interlock.model.decisions import ENGINE_ERROR, GATE_CODES, Decision

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OTHER: Final = "other"

# name, kind, labels, meaning: the table of docs/serve.md is made from this.
METERS: Final = (
    ("decisions", "counter", ("verdict", "code", "engine"), "decisions by verdict, strictest code and engine"),
    ("engine_errors", "counter", ("kind",), "denials by failure of the engine, by kind of failure"),
    (
        "engine_events",
        "counter",
        ("what",),
        "what an OPA server's engine counts: answers, retries, every kind of fault",
    ),
    ("conflicts", "counter", (), "decisions and results that met another writer and were made anew"),
    ("labels", "counter", ("leg",), "labels that entries brought, by leg; known ones count again"),
    ("repeats", "counter", ("what",), "calls and results that were on record already"),
    ("conversations", "counter", ("how",), "conversations begun: new, forked, damaged"),
    ("requests", "counter", ("operation", "status"), "answers by operation and HTTP status"),
    ("request_seconds", "histogram", ("operation",), "seconds from the first byte of a request to its answer"),
    (
        "turned_away",
        "counter",
        ("why",),
        "requests that were refused before any work: busy, too_large, unknown_caller, …",
    ),
    ("working", "gauge", (), "requests that a thread works on or that wait for one"),
)


class Meters:
    """The meters of one process."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

        disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series for each, which nobody reads

        self.registry: CollectorRegistry = CollectorRegistry()
        for name, kind, labels, meaning in METERS:
            full = f"interlock_{name}"
            made: Any
            if name == "engine_events":
                made = _Events(full, meaning)
                self.registry.register(made)
            elif kind == "counter":
                made = Counter(full, meaning, labels, registry=self.registry)
            elif kind == "gauge":
                made = Gauge(full, meaning, labels, registry=self.registry)
            else:
                made = Histogram(full, meaning, labels, registry=self.registry, buckets=BUCKETS)
            setattr(self, name, made)

    if TYPE_CHECKING:
        decisions: Any
        engine_events: _Events
        engine_errors: Any
        conflicts: Any
        labels: Any
        repeats: Any
        conversations: Any
        requests: Any
        request_seconds: Any
        turned_away: Any
        working: Any

    def decided(self, decision: Decision, codes: frozenset[str]) -> None:
        """Count a decision. ``codes``: those of the loaded controls; no other one becomes a series."""
        code = decision.code if decision.code in codes or decision.code in GATE_CODES else OTHER
        self.decisions.labels(decision.verdict.value, code, decision.engine or "none").inc()
        for reason in decision.reasons:
            if reason.code == ENGINE_ERROR:
                self.engine_errors.labels(kind_of(reason.for_person)).inc()

    def text(self) -> bytes:
        """What Prometheus reads."""
        from prometheus_client import generate_latest

        found: bytes = generate_latest(self.registry)
        return found


class _Events:
    """A collector over the counts of an engine that keeps its own. A reload begins them anew."""

    def __init__(self, name: str, meaning: str) -> None:
        self._name, self._meaning = name, meaning
        self.counts: Callable[[], Mapping[str, int]] = dict

    def collect(self) -> Iterator[Any]:
        """See prometheus_client."""
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(self._name, self._meaning, labels=["what"])
        for what, count in sorted(self.counts().items()):
            family.add_metric([what], count)
        yield family


_KINDS: Final = (
    ("panicked", "panic"),
    ("did not answer", "silent"),
    ("the answer", "malformed"),
    ("control ", "malformed"),
    ("no control", "no_controls"),
    ("document", "document"),
    ("revision", "revision"),
    ("timed out", "timeout"),
    ("deadline", "timeout"),
)


def kind_of(problem: str) -> str:
    """A kind of failure out of what was said of it: one of a few words, whatever was said."""
    return next((kind for words, kind in _KINDS if words in problem), OTHER)
