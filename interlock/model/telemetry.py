"""Guarded calls as spans of OpenTelemetry: one per call, with what was decided and what came of it.

:data:`ATTRIBUTES` is the one table of names. Where the semantic conventions for generative AI have a name, it is that
name; everything else is ``interlock.…``. No prompts, arguments or results: what a journal does not hold is in no span.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from interlock.model.decision_log import decision_id, trace_ids
from interlock.model.entries import Entry, Failed, Observed, Ruling
from interlock.model.labels import Taint
from interlock.model.state import State, apply

Value: TypeAlias = str | int | bool | tuple[str, ...]
OPERATION: Final = "execute_tool"
MAX_OPEN: Final = 4096


@dataclass(frozen=True, slots=True)
class Call:
    """A guarded call, as far as its journal knows it.

    Attributes:
        outcome: None while there is none.
        exposure: labels of the conversation when this was last written about, this call's own included.
    """

    namespace: str
    conversation: str
    decided: Ruling
    outcome: Observed | Failed | None
    exposure: Taint

    @property
    def decision(self) -> str:
        return decision_id(self.namespace, self.conversation, self.decided.number, self.decided.document)

    @property
    def outcome_name(self) -> str:
        if self.decided.verdict != "allow":
            return "refused"
        if isinstance(self.outcome, Observed):
            return "observed"
        if isinstance(self.outcome, Failed):
            return "in doubt" if self.outcome.doubt else "failed"
        return "unknown"


@dataclass(frozen=True, slots=True)
class Attribute:
    """A row of the table. ``read`` gives None where the attribute is left out."""

    name: str
    meaning: str
    read: Callable[[Call], Value | None]


def _observed(read: Callable[[Observed], Value]) -> Callable[[Call], Value | None]:
    return lambda call: read(call.outcome) if isinstance(call.outcome, Observed) else None


def _failed(call: Call) -> Value | None:
    return call.outcome.error if isinstance(call.outcome, Failed) else None


def _outcome(read: Callable[[Observed | Failed], Value]) -> Callable[[Call], Value | None]:
    return lambda call: None if call.outcome is None else read(call.outcome)


ATTRIBUTES: Final = (
    Attribute("gen_ai.operation.name", "always `execute_tool`", lambda _: OPERATION),
    Attribute("gen_ai.tool.name", "the tool", lambda call: call.decided.tool),
    Attribute("gen_ai.tool.call.id", "id of the call, as the model gave it", lambda call: call.decided.call_id or None),
    Attribute("gen_ai.conversation.id", "the conversation", lambda call: call.conversation),
    Attribute("error.type", "type of the tool's error; only when it failed", _failed),
    Attribute("interlock.namespace", "namespace of the conversation", lambda call: call.namespace),
    Attribute("interlock.tool.server", "server that brings the tool", lambda call: call.decided.server or None),
    Attribute("interlock.call.number", "number of the call in its conversation", lambda call: call.decided.number),
    Attribute("interlock.call.digest", "digest of the exact call", lambda call: call.decided.call),
    Attribute("interlock.decision.id", "what this decision is called everywhere", lambda call: call.decision),
    Attribute("interlock.decision.verdict", "`allow`, `ask` or `deny`", lambda call: call.decided.verdict),
    Attribute("interlock.decision.codes", "codes of the reasons, strictest first", lambda call: call.decided.codes),
    Attribute("interlock.decision.document", "digest of the document", lambda call: call.decided.document or None),
    Attribute("interlock.decision.revision", "digest of the policy", lambda call: call.decided.revision or None),
    Attribute("interlock.decision.manifest", "digest of the manifest", lambda call: call.decided.manifest or None),
    Attribute("interlock.decision.engine", "engine that answered", lambda call: call.decided.engine or None),
    Attribute("interlock.labels.private", "private labels that the call may bring", lambda call: call.decided.private),
    Attribute(
        "interlock.labels.untrusted", "untrusted labels that the call may bring", lambda call: call.decided.untrusted
    ),
    Attribute("interlock.labels.opens", "channels that the call may open", lambda call: call.decided.opens),
    Attribute(
        "interlock.exposure",
        "labels of the conversation after the call, or after its refusal, with all that is in flight",
        lambda call: tuple(call.exposure),
    ),
    Attribute(
        "interlock.outcome", "`refused`, `observed`, `failed`, `in doubt` or `unknown`", lambda call: call.outcome_name
    ),
    Attribute("interlock.outcome.external", "the result touched the outside", _outcome(lambda one: one.external)),
    Attribute("interlock.outcome.labels", "labels that the result brought", _outcome(lambda one: one.labels)),
    Attribute("interlock.outcome.digest", "digest of the result", _observed(lambda one: one.content)),
    Attribute("interlock.outcome.length", "length of the result", _observed(lambda one: one.length)),
    Attribute("interlock.outcome.dropped_fields", "fields left out of the result", _observed(lambda one: one.dropped)),
)


@dataclass(frozen=True, slots=True)
class CallSpan:
    """A finished span. ``trace`` and ``span`` are hex; ``error`` is empty unless the tool failed."""

    name: str
    trace: str
    span: str
    start: str
    end: str
    attributes: Mapping[str, Value]
    error: str = ""


def span_of(call: Call) -> CallSpan:
    """The span of a call. The same call gives the same span, live and exported later."""
    trace, span = trace_ids(call.namespace, call.conversation, call.decision)
    found = ((one.name, one.read(call)) for one in ATTRIBUTES)
    attributes = {name: value for name, value in found if value is not None}
    end = call.decided.at if call.outcome is None else call.outcome.at
    error = call.outcome.error if isinstance(call.outcome, Failed) else ""
    name = f"{OPERATION} {call.decided.tool}"
    return CallSpan(name, trace, span, call.decided.at, max(call.decided.at, end), MappingProxyType(attributes), error)


class Calls:
    """Calls that were allowed and have no outcome yet, of many conversations. Bounded: the oldest end as ``unknown``.

    ``context`` is whatever the caller wants back with a call.
    """

    def __init__(self, limit: int = MAX_OPEN) -> None:
        self._limit = limit
        self._open: OrderedDict[tuple[str, str, int], tuple[Call, Any]] = OrderedDict()

    def told(
        self, namespace: str, conversation: str, entries: Iterable[Entry | Ruling], exposure: Taint, context: Any = None
    ) -> Iterator[tuple[CallSpan, Any]]:
        """Take note of entries that were written together; gives the spans that ended with them."""
        for entry in entries:
            if isinstance(entry, Ruling):
                key = (namespace, conversation, entry.number)
                call = Call(namespace, conversation, entry, None, exposure)
                if not entry.runs:
                    yield span_of(call), context
                    continue
                yield from self._ended(key)  # a number that is decided twice
                self._open[key] = call, context
                if len(self._open) > self._limit:
                    yield from self._ended(next(iter(self._open)))
            elif isinstance(entry, Observed | Failed):
                found = self._open.pop((namespace, conversation, entry.number), None)
                if found is not None:
                    call, begun = found
                    yield span_of(Call(namespace, conversation, call.decided, entry, exposure)), begun

    def _ended(self, key: tuple[str, str, int]) -> Iterator[tuple[CallSpan, Any]]:
        found = self._open.pop(key, None)
        if found is not None:
            yield span_of(found[0]), found[1]

    def rest(self) -> Iterator[tuple[CallSpan, Any]]:
        """The spans of all calls that have no outcome."""
        while self._open:
            yield from self._ended(next(iter(self._open)))

    def __len__(self) -> int:
        return len(self._open)


def spans(namespace: str, conversation: str, entries: Iterable[Entry], state: State) -> Iterator[CallSpan]:
    """The spans of a journal.

    Args:
        state: that the journal begins with.
    """
    calls, together = Calls(), list[Ruling]()
    for entry in entries:
        # The decisions of one turn were made under one version and written together; each counts all of them.
        if together and not (isinstance(entry, Ruling) and entry.version == together[-1].version):
            yield from (span for span, _ in calls.told(namespace, conversation, together, state.exposure))
            together = []
        state = apply(state, entry)
        if isinstance(entry, Ruling):
            together.append(entry)
        else:
            yield from (span for span, _ in calls.told(namespace, conversation, [entry], state.exposure))
    yield from (span for span, _ in calls.told(namespace, conversation, together, state.exposure))
    yield from (span for span, _ in calls.rest())
