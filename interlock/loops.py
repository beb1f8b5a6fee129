"""Agent loops around the APIs of providers, each call guarded. No SDK is needed: the caller makes the requests.

The loop is written once, as a generator that asks for a response or for a batch of outcomes; the synchronous and the
asynchronous driver differ by ``await``. Its order is what matters:

1. what the request lets the provider run by itself counts before the first word;
2. a response is put together before anything of it is looked at, however it arrives;
3. what the provider brought into the turn is admitted before any call of the turn is decided;
4. the calls of a turn are decided together, and all of them are answered, whatever happens.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterable, Awaitable, Callable, Collection, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol, TypeAlias

from interlock.errors import Refused
from interlock.gate.drivers import Run
from interlock.gate.guard import Guard
from interlock.gate.permits import permitted
from interlock.integrations import anthropic_messages, openai_chat, openai_responses
from interlock.model.calls import Call, same_call
from interlock.model.manifest import Manifest
from interlock.model.messages import Message, Role, ToolAnswer
from interlock.model.results import Outcome, ToolResult
from interlock.model.tools import ToolId
from interlock.model.turns import NO_OUTCOME, Hosted, Turn, admissions

Ask: TypeAlias = Callable[..., Any]
AsyncAsk: TypeAlias = Callable[..., Awaitable[Any]]

MAX_STEPS: Final = 32


class Assembling(Protocol):
    """Puts a stream together; see the codecs."""

    def add(self, event: Any) -> None: ...

    def response(self) -> dict[str, Any]: ...


class Codec(Protocol):
    """What a loop needs of a provider's codec, which is a module of :mod:`interlock.integrations`."""

    @property
    def MESSAGES(self) -> str: ...  # noqa: N802 - a constant of a module

    @property
    def Assembly(self) -> Callable[[], Assembling]: ...  # noqa: N802 - a class of a module

    def read(self, response: Any, *, taken: Collection[str] = ()) -> Turn: ...

    def results(self, turn: Turn, outcomes: Iterable[Outcome], *, also: str = "") -> list[dict[str, Any]]: ...

    def user(self, text: str) -> dict[str, Any]: ...

    def offered(self, request: Mapping[str, Any]) -> tuple[Hosted, ...]: ...


@dataclass(slots=True)
class Finished:
    """What came of a loop.

    Attributes:
        text: what the model said last.
        reason: ``done``; ``limit``, the model wanted more steps than it was given; ``incomplete``, a response was cut
            off or refused, so nothing in it was run.
        messages: the history in the provider's shape; every call in it has its result (T17).
        outcomes: of all calls, in order.
    """

    text: str
    reason: Literal["done", "limit", "incomplete"]
    messages: list[Any]
    outcomes: list[Outcome] = field(default_factory=list)


def run_anthropic(ask: Ask, guard: Guard, run: Run, said: str, **request: Any) -> Finished:
    """Let a model of the Messages API work until it calls nothing more.

    Args:
        ask: makes one request as ``ask(messages=…, **request)``, such as ``client.messages.create``; may stream.
        guard: of the conversation; what the person says is said there.
        run: ``run(name, arguments)`` executes a tool.
        said: what the person typed.
        request: goes to every request. Four words are the loop's own: ``messages``, the history so far, which is
            continued in place; ``max_steps``, how many requests at most; ``workers``, how many calls of one turn may
            run at once; ``manifest``, the operator's word on tools that the provider runs.

    Raises:
        Whatever ``ask`` raises. The history is whole then, too.
    """
    return _run(anthropic_messages, ask, guard, run, said, request)


def run_chat(ask: Ask, guard: Guard, run: Run, said: str, **request: Any) -> Finished:
    """Like :func:`run_anthropic` for Chat Completions; ``ask`` may be ``client.chat.completions.create``."""
    return _run(openai_chat, ask, guard, run, said, request)


def run_responses(ask: Ask, guard: Guard, run: Run, said: str, **request: Any) -> Finished:
    """Like :func:`run_anthropic` for the Responses API: ``ask(input=…, **request)``, such as
    ``client.responses.create``."""
    return _run(openai_responses, ask, guard, run, said, request)


async def arun_anthropic(ask: AsyncAsk, guard: Guard, run: Run, said: str, **request: Any) -> Finished:
    """Like :func:`run_anthropic`, with an ``ask`` to await and a ``run`` that may be a coroutine function."""
    return await _arun(anthropic_messages, ask, guard, run, said, request)


async def arun_chat(ask: AsyncAsk, guard: Guard, run: Run, said: str, **request: Any) -> Finished:
    """Like :func:`run_chat`, with an ``ask`` to await and a ``run`` that may be a coroutine function."""
    return await _arun(openai_chat, ask, guard, run, said, request)


async def arun_responses(ask: AsyncAsk, guard: Guard, run: Run, said: str, **request: Any) -> Finished:
    """Like :func:`run_responses`, with an ``ask`` to await and a ``run`` that may be a coroutine function."""
    return await _arun(openai_responses, ask, guard, run, said, request)


def admit_hosted(guard: Guard, hosted: Iterable[Hosted], manifest: Manifest | None = None) -> None:
    """Let content in that the provider brought: ``turn.hosted`` before deciding, ``offered(request)`` before asking.

    For hosts that write the loop themselves.
    """
    for one in admissions(hosted, manifest):
        guard.admit(one.text, labels=one.labels, source=one.source)


# --- the loop, once ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asking:
    """Answered with the response to this history."""

    messages: list[Any]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Answered with one outcome per call of this turn."""

    turn: Turn


@dataclass(frozen=True, slots=True)
class _Plan:
    """The words of a request that are the loop's own, and the rest."""

    messages: list[Any]
    max_steps: int
    workers: int
    manifest: Manifest | None
    request: dict[str, Any]


def _plan(codec: Codec, request: dict[str, Any]) -> _Plan:
    rest = dict(request)
    history = rest.pop("messages", None)
    if codec.MESSAGES in rest:
        raise Refused(f"the loop writes {codec.MESSAGES} itself; pass earlier messages as messages=")
    return _Plan(
        messages=[] if history is None else history,
        max_steps=rest.pop("max_steps", MAX_STEPS),
        workers=rest.pop("workers", 1),
        manifest=rest.pop("manifest", None),
        request=rest,
    )


def _loop(codec: Codec, guard: Guard, said: str, plan: _Plan) -> Generator[_Asking | _Batch, Any, Finished]:
    admit_hosted(guard, codec.offered(plan.request), plan.manifest)
    messages, outcomes, taken, text = plan.messages, list[Outcome](), _ids(plan.messages), ""
    if said:
        guard.conversation.say(said)
        messages.append(codec.user(said))
    for _ in range(plan.max_steps):
        response = yield _Asking(list(messages))
        turn = codec.read(response, taken=taken)
        admit_hosted(guard, turn.hosted, plan.manifest)
        text = turn.text
        if not turn.complete:
            return Finished(text, "incomplete", messages, outcomes)
        taken.update(call.id for call in turn.calls)
        came: list[Outcome] = []
        try:
            if turn.calls:
                came = yield _Batch(turn)
        finally:
            # Cancelled or not: the model's calls and one result for each of them enter the history together (T17).
            messages += [*turn.history, *codec.results(turn, came)]
            _push(guard, turn, came)
        outcomes += came
        if not turn.calls and not turn.paused:
            return Finished(text, "done", messages, outcomes)
    return Finished(text, "limit", messages, outcomes)


def _push(guard: Guard, turn: Turn, came: list[Outcome]) -> None:
    guard.conversation.push(turn.message)
    if turn.calls:
        told = {one.call_id: ToolAnswer(one.call_id, one.for_model, one.is_error) for one in came}
        blocks = (told.get(call.id) or ToolAnswer(call.id, NO_OUTCOME, is_error=True) for call in turn.calls)
        guard.conversation.push(Message(Role.TOOL, tuple(blocks)))


def _ids(messages: Iterable[Any]) -> set[str]:
    """Every text that could be the id of a call in an earlier history; too many do no harm."""
    found: set[str] = set()
    waiting: list[Any] = list(messages)
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            found.update(one[name] for name in ("id", "call_id") if isinstance(one.get(name), str))
            waiting.extend(one[name] for name in ("content", "tool_calls", "output") if name in one)
        elif isinstance(one, list | tuple):
            waiting.extend(one)
    return found


def _run(codec: Codec, ask: Ask, guard: Guard, run: Run, said: str, request: dict[str, Any]) -> Finished:
    plan = _plan(codec, request)
    steps = _loop(codec, guard, said, plan)
    try:
        effect = next(steps)
        while True:
            try:
                if isinstance(effect, _Asking):
                    reply = _assembled(codec, ask(**{codec.MESSAGES: effect.messages}, **plan.request))
                else:
                    reply = guard.batch(effect.turn.calls, run=_sorted(effect.turn, run), workers=plan.workers)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(reply)
    except StopIteration as stop:
        finished: Finished = stop.value
        return finished


async def _arun(codec: Codec, ask: AsyncAsk, guard: Guard, run: Run, said: str, request: dict[str, Any]) -> Finished:
    plan = _plan(codec, request)
    steps = _loop(codec, guard, said, plan)
    try:
        effect = next(steps)
        while True:
            try:
                if isinstance(effect, _Asking):
                    reply = await _aassembled(codec, await ask(**{codec.MESSAGES: effect.messages}, **plan.request))
                else:
                    asorted = _asorted(effect.turn, run)
                    reply = await guard.abatch(effect.turn.calls, run=asorted, workers=plan.workers)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(reply)
    except StopIteration as stop:
        finished: Finished = stop.value
        return finished


# --- streams ----------------------------------------------------------------------------------------------------------


def _assembled(codec: Codec, reply: Any) -> Any:
    """A response as it is; a stream of events put together."""
    if not isinstance(reply, Iterator | list):
        return reply
    assembly = codec.Assembly()
    for event in reply:
        assembly.add(event)
    return assembly.response()


async def _aassembled(codec: Codec, reply: Any) -> Any:
    if not isinstance(reply, AsyncIterable):
        return _assembled(codec, reply)
    assembly = codec.Assembly()
    async for event in reply:
        assembly.add(event)
    return assembly.response()


# --- calls that the provider runs once it may -------------------------------------------------------------------------


def _where(turn: Turn) -> tuple[dict[str, Call], set[str], set[str]]:
    """Calls that the provider runs, by id; their names, and the names of what we run. A name that is both is run by
    nobody."""
    there = {one.call.id: one.call for one in turn.proposals if one.there}
    return there, {one.name for one in there.values()}, {one.call.name for one in turn.proposals if not one.there}


def _approved(name: str, there: Mapping[str, Call], here: Collection[str]) -> ToolResult:
    """The provider's leave to run what the model proposed, to the letter.

    The provider has the call already and takes nothing but a yes. So whoever put another call in its place has not said
    yes to it.
    """
    if name in here:
        raise Refused(f"{name!r} is called here and at a server in one turn, and can't be told apart")
    decided = permitted()
    proposed = None if decided is None else there.get(decided.id)
    if decided is None or proposed is None:
        raise Refused(f"{name!r} runs at the provider, and nobody knows which of its calls was allowed")
    if not same_call(decided, ToolId(proposed.server, proposed.name), proposed.arguments):
        raise Refused(f"{name!r} runs at the provider, which can't be given other arguments than those it has")
    return ToolResult("approved")


def _sorted(turn: Turn, run: Run) -> Run:
    there, names, here = _where(turn)
    if not there:
        return run

    def either(name: str, arguments: dict[str, Any]) -> Any:
        return _approved(name, there, here) if name in names else run(name, arguments)

    return either


def _asorted(turn: Turn, run: Run) -> Run:
    there, names, here = _where(turn)
    if not there:
        return run

    async def either(name: str, arguments: dict[str, Any]) -> Any:
        if name in names:
            return _approved(name, there, here)
        value = (
            run(name, arguments) if inspect.iscoroutinefunction(run) else await asyncio.to_thread(run, name, arguments)
        )
        return await value if inspect.isawaitable(value) else value

    return either
