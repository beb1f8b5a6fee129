"""AuthZEN 1.0 access evaluation, for gateways that speak it: a question about one tool call in one conversation.

| AuthZEN | here |
|---|---|
| ``subject`` | read and checked for its shape; whose conversation it is comes from the credentials |
| ``action.name`` | must be ``call`` |
| ``resource.type`` | must be ``tool`` |
| ``resource.id`` | name of the tool, ``server/name`` for a tool of a server |
| ``resource.properties.arguments`` | arguments of the call |
| ``context.conversation`` | id of the conversation |
| ``context.call`` | id of the call, for repeating a question and for reporting its outcome |

An evaluation *proposes* the call, since a gateway that is told ``true`` lets it through: it is on record and its labels
are in flight. ``decision`` is true for a call that may run, and for nothing else.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from interlock.serve.callers import Caller
from interlock.serve.problems import GATE_ERROR, Problem
from interlock.serve.shapes import MAX_EVALUATIONS, ProposedCall, Shape

_Properties = Annotated[dict[str, Any], Field(default_factory=dict)]
Ask = Callable[[Caller, str, Sequence[ProposedCall]], dict[str, Any]]


class Subject(Shape):
    type: Annotated[str, Field(min_length=1, max_length=256)]
    id: Annotated[str, Field(min_length=1, max_length=1024)]
    properties: _Properties


class Action(Shape):
    name: Literal["call"]
    properties: _Properties


class ToolProperties(Shape):
    arguments: dict[str, Any]


class Resource(Shape):
    type: Literal["tool"]
    id: Annotated[str, Field(min_length=1, max_length=512)]
    properties: ToolProperties


class Context(Shape):
    conversation: Annotated[str, Field(min_length=1, max_length=512)]
    call: Annotated[str, Field(max_length=256)] = ""


class Evaluation(Shape):
    """May this call run in this conversation?"""

    subject: Subject
    action: Action
    resource: Resource
    context: Context


class Options(Shape):
    evaluations_semantic: Literal["execute_all"] = "execute_all"


class Evaluations(Shape):
    """Several questions; what is given beside them stands for what one of them leaves out. Those of one conversation
    are one turn, and are decided together."""

    subject: dict[str, Any] | None = None
    action: dict[str, Any] | None = None
    resource: dict[str, Any] | None = None
    context: dict[str, Any] | None = None
    evaluations: Annotated[list[dict[str, Any]], Field(default_factory=list, max_length=MAX_EVALUATIONS)]
    options: Options = Options()


class Told(Shape):
    """Why, and what the model may be told."""

    code: str
    reason: str
    reasons: list[str]
    conversation: str = ""
    call: str = ""
    number: int = 0
    remedies: Annotated[list[str], Field(default_factory=list)]
    repeated: bool = False


class EvaluationAnswer(Shape):
    decision: bool
    context: Told


class EvaluationsAnswer(Shape):
    evaluations: list[EvaluationAnswer]


_PARTS: Final = ("subject", "action", "resource", "context")


def evaluated(ask: Ask, caller: Caller, asked: Evaluation) -> dict[str, Any]:
    """The answer to one question. Never raises for a conversation that is not there: that is a denial like others."""
    return _turn(ask, caller, asked.context.conversation, [asked])[0]


def all_evaluated(ask: Ask, caller: Caller, asked: Evaluations) -> dict[str, Any]:
    """The answers to several questions, each in its place. One that is malformed is denied for itself.

    Raises:
        Problem: there is no question at all.
    """
    defaults = {part: getattr(asked, part) for part in _PARTS if getattr(asked, part) is not None}
    if not asked.evaluations:
        try:
            return evaluated(ask, caller, Evaluation.model_validate(defaults))
        except ValidationError:
            raise Problem(422, "wrong_shape", "no evaluations, and what is given is not one question") from None
    answers: list[dict[str, Any]] = [_denied(GATE_ERROR, "the question is malformed") for _ in asked.evaluations]
    turns: dict[str, list[tuple[int, Evaluation]]] = {}
    for place, one in enumerate(asked.evaluations):
        try:
            whole = Evaluation.model_validate({**defaults, **one})
        except ValidationError:
            continue
        turns.setdefault(whole.context.conversation, []).append((place, whole))
    for conversation, questions in turns.items():
        told = _turn(ask, caller, conversation, [one for _, one in questions])
        for (place, _), answer in zip(questions, told, strict=True):
            answers[place] = answer
    return {"evaluations": answers}


def _turn(ask: Ask, caller: Caller, conversation: str, questions: Sequence[Evaluation]) -> list[dict[str, Any]]:
    calls = [_call(one) for one in questions]
    if len({one.id for one in calls}) != len(calls):
        return [_denied(GATE_ERROR, "two questions of one conversation carry the same id of a call") for _ in calls]
    try:
        told = ask(caller, conversation, calls)["calls"]
    except Problem as problem:
        if problem.status not in (404, 409):
            raise
        return [_denied(problem.code, problem.message) for _ in calls]
    return [_answer(conversation, one) for one in told]


def _call(one: Evaluation) -> ProposedCall:
    server, slash, name = one.resource.id.partition("/")
    if not slash:
        server, name = "", server
    # A question without an id can't be repeated: each is another call.
    call = one.context.call or f"authzen-{secrets.token_hex(16)}"
    return ProposedCall(id=call, name=name, arguments=one.resource.properties.arguments, server=server)


def _answer(conversation: str, told: Mapping[str, Any]) -> dict[str, Any]:
    may = told["run"] is True and told["verdict"] == "allow"
    gone = told["verdict"] == "allow" and not may
    reason = "this call has an outcome already; it must not run twice" if gone else told["for_model"]
    return {
        "decision": may,
        "context": {
            "code": told["code"],
            "reason": reason,
            "reasons": [one["for_model"] for one in told["reasons"]],
            "conversation": conversation,
            "call": told["id"],
            "number": told["number"],
            "remedies": told["remedies"],
            "repeated": told["repeated"],
        },
    }


def _denied(code: str, reason: str) -> dict[str, Any]:
    return {
        "decision": False,
        "context": {
            "code": code,
            "reason": reason,
            "reasons": [reason],
            "conversation": "",
            "call": "",
            "number": 0,
            "remedies": [],
            "repeated": False,
        },
    }
