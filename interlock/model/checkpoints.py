"""Checkpoints: the state after so many entries, as bytes, so that folding may begin there.

A checkpoint stands beside the journal and is named by its digest in a ``checkpointed`` entry, so the chain covers it.
It is believed only where that entry, and every entry after it, fits the head; otherwise all entries are folded.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import fields
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import orjson

from interlock.errors import Tampered
from interlock.model.digests import Digest, digest
from interlock.model.drafts import Kept
from interlock.model.grants import Bound, Held
from interlock.model.labels import Taint
from interlock.model.provenance import Claim, Layer, Provenance, Stack, Vouch, Voucher
from interlock.model.standing import Standing
from interlock.model.state import Delegation, InFlight, State, Summary

if TYPE_CHECKING:
    from pydantic import TypeAdapter


def state_body(state: State) -> bytes:
    """A state as canonical bytes: equal states give equal bytes."""
    value = {one.name: getattr(state, one.name) for one in fields(State)}
    value["taint"] = [[label, source] for label, source in state.taint.items]
    for name in ("typed", "voices", "texts", "doubts"):
        value[name] = sorted(value[name])
    # As lists: which call is the oldest in flight depends on their order.
    value["in_flight"] = list(state.in_flight.items())
    value["children"] = list(state.children.items())
    value["provenance"] = _index_value(state.provenance)
    # As lists too: the oldest is forgotten first.
    value["questions"] = [[name, _question_value(one)] for name, one in state.questions.items()]
    value["standing"] = [[name, _standing_value(one)] for name, one in state.standing.items()]
    value["denials"] = list(state.denials.items())
    value["drafts"] = [[name, _draft_value(one)] for name, one in state.drafts.items()]
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def state_digest(body: bytes) -> Digest:
    """What a ``checkpointed`` entry says of a state."""
    return digest("state", body)


def read_state(body: bytes) -> State:
    """Read a state. Whether it is what its entry says is its digest's to tell.

    Raises:
        Tampered: not a state that this version writes, to the byte.
    """
    from pydantic import ValidationError

    try:
        value: Any = orjson.loads(body)
        adapters = _adapters()
        for name in ("typed", "voices", "texts", "doubts"):
            value[name] = frozenset(value[name])
        value["taint"] = Taint(adapters["taint"].validate_python(value["taint"]))
        value["in_flight"] = MappingProxyType(dict(adapters["in_flight"].validate_python(value["in_flight"])))
        value["children"] = MappingProxyType(dict(adapters["children"].validate_python(value["children"])))
        value["summary"] = adapters["summary"].validate_python(value["summary"])
        value["provenance"] = _index(value["provenance"])
        value["layout"] = tuple((first, count) for first, count in value["layout"])
        value["questions"] = MappingProxyType(dict(adapters["questions"].validate_python(value["questions"])))
        value["standing"] = MappingProxyType(dict(adapters["standing"].validate_python(value["standing"])))
        value["denials"] = MappingProxyType(dict(value["denials"]))
        value["drafts"] = MappingProxyType(dict(adapters["drafts"].validate_python(value["drafts"])))
        state = State(**value)
        same = state_body(state) == body
    except (ValueError, KeyError, TypeError, ValidationError) as error:
        raise Tampered(0, f"not a state of this version ({type(error).__name__})") from None
    if not same:
        raise Tampered(0, "not the canonical form of its state")
    return state


def _question_value(one: Held) -> dict[str, Any]:
    value = {each.name: getattr(one, each.name) for each in fields(Held)}
    return {**value, "bound": _bound_value(one.bound)}


def _draft_value(one: Kept) -> dict[str, Any]:
    value = {each.name: getattr(one, each.name) for each in fields(Kept)}
    released = None if one.released is None else _bound_value(one.released)
    return {**value, "bound": _bound_value(one.bound), "released": released}


def _bound_value(one: Bound) -> dict[str, Any]:
    bound = {each.name: getattr(one, each.name) for each in fields(Bound)}
    return {**bound, "labels": sorted(bound["labels"]), "codes": sorted(bound["codes"])}


def _standing_value(one: Standing) -> dict[str, Any]:
    value = {each.name: getattr(one, each.name) for each in fields(Standing)}
    return {**value, "codes": sorted(one.codes)}


def _index_value(index: Provenance) -> dict[str, Any]:
    value = {one.name: getattr(index, one.name) for one in fields(Provenance)}
    for name in ("heard", "said"):
        value[name] = b64encode(value[name]).decode()
    for name in ("trusted", "metadata", "records"):
        # Which layer is the oldest depends on their order; within one there is none.
        value[name] = [sorted([key, *_layer_value(one)] for key, one in layer.items()) for layer in value[name]]
    value["sent"] = sorted(index.sent.items())
    return value


def _layer_value(one: Vouch | Claim) -> list[Any]:
    if isinstance(one, Claim):
        return ["claim", one.record or ""]
    return ["vouch", one.voucher.value, one.number, list(one.names)]


def _index(value: dict[str, Any]) -> Provenance:
    read = dict(value)
    for name in ("heard", "said"):
        read[name] = b64decode(read[name], validate=True)
    for name in ("trusted", "metadata", "records"):
        stack: Stack = tuple(_layer(layer) for layer in read[name])
        read[name] = stack
    read["sent"] = MappingProxyType(dict(read["sent"]))
    return Provenance(**read)


def _layer(value: list[list[Any]]) -> Layer:
    found: dict[Digest, Vouch | Claim] = {}
    for key, sort, *rest in value:
        if sort == "claim":
            (record,) = rest
            found[key] = Claim(record or None)
        else:
            voucher, number, names = rest
            found[key] = Vouch(Voucher(voucher), number, tuple(names))
    return MappingProxyType(found)


@cache
def _adapters() -> dict[str, TypeAdapter[Any]]:
    from pydantic import TypeAdapter

    from interlock.model.labels import Label, Source

    return {
        "taint": TypeAdapter(tuple[tuple[Label, Source], ...]),
        "in_flight": TypeAdapter(list[tuple[int, InFlight]]),
        "children": TypeAdapter(list[tuple[str, Delegation]]),
        "summary": TypeAdapter(Summary | None),
        "questions": TypeAdapter(list[tuple[str, Held]]),
        "standing": TypeAdapter(list[tuple[str, Standing]]),
        "drafts": TypeAdapter(list[tuple[str, Kept]]),
    }
