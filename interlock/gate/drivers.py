"""Two drivers for one set of steps: they answer effects, and differ by one ``await`` (T14)."""

from __future__ import annotations

import contextvars
import inspect
import sys
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final, TypeVar, cast

from interlock.errors import (
    ApproverUnavailable,
    Bug,
    EngineUnavailable,
    InterlockError,
    JournalUnavailable,
    MemoryUnavailable,
    Refused,
)
from interlock.gate.effects import (
    Append,
    AskPerson,
    DropQuestion,
    Effect,
    Evaluate,
    Execute,
    KeepQuestion,
    LabelArtifacts,
    LoadState,
    Raised,
    ReadArtifacts,
    ReadClock,
    ReadOperands,
    ReadPages,
    ResolvePaths,
    Returned,
)
from interlock.gate.permits import Permit, executing
from interlock.model.carried import LOST, Carried, written_by
from interlock.model.operands import Operand, Sort
from interlock.model.question import Answer
from interlock.model.results import Allowed, ToolResult, finished
from interlock.model.state import State
from interlock.ports import Approver, Artifacts, Clock, Engine, Files, Journal, Operands, Questions, Store

T = TypeVar("T")
MAX_REMEMBERED: Final = 4096
MAX_PAGES: Final = 256
Run = Callable[[str, dict[str, Any]], Any]


@dataclass(frozen=True, slots=True)
class World:
    """The ports that effects are answered from. Foreign exceptions are translated here, at the border.

    Without ``artifacts`` whatever is read is a lost record, and nothing that would need a label is written. ``pages``
    is what calls of the conversation read, by number, for people. Without ``operands`` no file can be read, without
    ``approver`` nobody answers here, and without ``questions`` nobody can answer elsewhere.
    """

    engine: Engine
    journal: Journal | Store
    clock: Clock
    files: Files
    remembered: dict[bytes, str | bytes] = field(default_factory=dict)
    artifacts: Artifacts | None = None
    pages: dict[int, str] = field(default_factory=dict)
    operands: Operands | None = None
    approver: Approver | None = None
    questions: Questions | None = None

    def answer(self, effect: Effect) -> Any:
        """The reply to any effect but :class:`Execute`; an awaitable if the engine gave one.

        Raises:
            InterlockError: the port failed.
        """
        try:
            match effect:
                case Evaluate(document=document, look=look):
                    return self.engine.evaluate(document) if look is None else self._remembering(document, look)
                case LoadState(conversation=conversation):
                    return self._ledger.state(conversation)
                case Append(conversation=conversation, entries=entries, expected=expected, pages=pages):
                    for number, page in pages:
                        note(self.pages, number, page)  # before: whoever is told of the entries may ask
                    return self._ledger.append(conversation, entries, expected=expected)
                case ReadClock():
                    return self.clock.now()
                case ResolvePaths(paths=paths):
                    return self.files.resolve(paths)
                case ReadArtifacts(keys=keys, namespace=namespace):
                    return LOST if self.artifacts is None else self.artifacts.carried(keys, namespace=namespace)
                case LabelArtifacts():
                    return self._label(effect)
                case ReadOperands(paths=paths):
                    if self.operands is None:
                        return tuple(Operand(one, "", Sort.UNREADABLE) for one in paths)
                    return self.operands.operands(paths)
                case ReadPages(numbers=numbers):
                    return tuple((one, self.pages[one]) for one in numbers if one in self.pages)
                case KeepQuestion(question=question):
                    return None if self.questions is None else self.questions.keep(question)
                case DropQuestion(namespace=namespace, conversation=conversation, question=name):
                    return None if self.questions is None else self.questions.drop(namespace, conversation, name)
                case AskPerson(question=question, seconds=seconds):
                    if self.approver is None:
                        raise ApproverUnavailable("no channel to a person is configured")
                    return self.approver.ask(question, seconds)
                case _:
                    raise Bug(f"no port answers {type(effect).__name__}")
        except BaseException as error:
            translated = _translated(effect, error)
            if translated is error:
                raise  # as it is: an error must not become its own cause
            raise translated from error

    @property
    def _ledger(self) -> Journal:
        return cast(Journal, self.journal)  # the world of a guard is over its conversation's own ledger

    def waits(self, effect: Effect) -> bool:
        """Does the answer wait for a disk or a server? Then it must not be had in an event loop's own thread."""
        if isinstance(effect, ReadArtifacts | LabelArtifacts):
            return getattr(self.artifacts, "blocks", False) is True
        if isinstance(effect, AskPerson):
            return self.approver is not None and not inspect.iscoroutinefunction(self.approver.ask)
        if isinstance(effect, ReadOperands):
            return self.operands is not None and not inspect.iscoroutinefunction(self.operands.operands)
        if isinstance(effect, KeepQuestion | DropQuestion):
            return getattr(self.questions, "blocks", False) is True
        return isinstance(effect, LoadState | Append) and getattr(self.journal, "blocks", False) is True

    def over(self, journal: Journal, pages: dict[int, str] | None = None) -> World:
        """The same world with another journal; what was remembered is shared."""
        return replace(self, journal=journal, pages=self.pages if pages is None else pages)

    def _label(self, effect: LabelArtifacts) -> Any:
        if self.artifacts is None:
            raise MemoryUnavailable("there is no record of artifacts, so nothing may be written to one")
        state = effect.state
        voices, anybody = state.heard()
        carried = written_by(state.conversation, state.exposure, voices, anybody, self.pages)
        return self.artifacts.label(effect.keys, carried.join(effect.more), namespace=state.namespace)

    def _remembering(self, document: bytes, look: bytes) -> Any:
        """Only answers that were given are kept, never a failure. The table is bounded, and dies with the engine."""
        known = self.remembered.get(look)
        if known is not None:
            return known
        answer = self.engine.evaluate(document)
        if isinstance(answer, str | bytes):
            if len(self.remembered) >= MAX_REMEMBERED:
                self.remembered.clear()
            self.remembered[look] = answer
        return answer


def note(pages: dict[int, str], number: int, page: str) -> None:
    """Remember what a call read, for people; of many calls the newest."""
    if page:
        pages[number] = page
        if len(pages) > 2 * MAX_PAGES:  # now and then, since sorting takes longer than the rest
            for old in sorted(pages)[:-MAX_PAGES]:
                del pages[old]


# What may pass: our own errors, and what ends an interpreter.
_PASSING: Final = (InterlockError, Bug, KeyboardInterrupt, SystemExit, GeneratorExit)


def _ends_a_task(error: BaseException) -> bool:
    """Was a task cancelled? asyncio is not imported for this: where it is not loaded, there is no task."""
    loaded = sys.modules.get("asyncio")
    return loaded is not None and isinstance(error, loaded.CancelledError)


def _checked(effect: Effect, reply: Any) -> Any:
    """A reply of the wrong kind is a port that did not do its work, above all a coroutine that nobody awaited."""
    match effect:
        case LoadState() | Append():
            wanted: tuple[type, ...] = (State,)
        case Evaluate():
            wanted = (str, bytes)
        case ReadClock():
            wanted = (datetime,)
        case ReadArtifacts():
            wanted = (Carried,)
        case LabelArtifacts() | KeepQuestion() | DropQuestion():
            wanted = (type(None),)
        case AskPerson():
            wanted = (Answer, type(None))
        case _:
            wanted = (tuple,)
    if isinstance(reply, wanted):
        return reply
    if inspect.iscoroutine(reply):
        reply.close()
    raise _translated(effect, TypeError())


def _translated(effect: Effect, error: BaseException) -> BaseException:
    if isinstance(error, _PASSING) or _ends_a_task(error):
        return error
    if isinstance(effect, Evaluate):
        return EngineUnavailable(f"the engine raised {type(error).__name__}")
    if isinstance(effect, AskPerson | KeepQuestion | DropQuestion):
        return ApproverUnavailable(f"{type(effect).__name__} raised {type(error).__name__}")
    if isinstance(effect, ReadArtifacts | LabelArtifacts):
        return MemoryUnavailable(f"{type(effect).__name__} raised {type(error).__name__}")
    return JournalUnavailable(f"{type(effect).__name__} raised {type(error).__name__}")


def drive(steps: Generator[Effect, Any, T], world: World, run: Run | None = None) -> T:
    """Run steps to their end, synchronously.

    Args:
        run: ``run(name, arguments)`` executes a tool; None when the steps execute nothing.
    """
    try:
        effect = next(steps)
        while True:
            try:
                if isinstance(effect, Execute):
                    reply = execute(effect.allowed, run)
                else:
                    reply = _checked(effect, world.answer(effect))
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(reply)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def adrive(steps: Generator[Effect, Any, T], world: World, run: Run | None = None) -> T:
    """Run steps to their end, awaiting what must be awaited. Same effects, same order."""
    try:
        effect = next(steps)
        while True:
            try:
                if isinstance(effect, Execute):
                    reply = await aexecute(effect.allowed, run)
                elif world.waits(effect):
                    reply = _checked(effect, await _elsewhere(world, effect))
                else:
                    reply = world.answer(effect)
                    if inspect.isawaitable(reply):
                        reply = await _translating(effect, reply)
                    reply = _checked(effect, reply)
            except BaseException as error:
                effect = steps.throw(error)
            else:
                effect = steps.send(reply)
    except StopIteration as stop:
        value: T = stop.value
        return value


async def _elsewhere(world: World, effect: Effect) -> Any:
    """In a worker thread. A task that is cancelled meanwhile may still have written: what it wrote stands."""
    import asyncio  # loaded already: this runs in its loop

    if isinstance(effect, AskPerson):
        return await _in_a_thread_of_its_own(world, effect)
    return await asyncio.to_thread(world.answer, effect)


async def _in_a_thread_of_its_own(world: World, effect: Effect) -> Any:
    """Whoever waits for a person does so for minutes: a few of them would take all workers of the loop, which journals
    need, and a loop that is left waits for its workers. Nobody waits for this thread once its task is cancelled."""
    import asyncio  # loaded already: this runs in its loop

    loop, context = asyncio.get_running_loop(), contextvars.copy_context()
    came: asyncio.Future[Any] = loop.create_future()

    def tell(reply: Any, error: BaseException | None) -> None:
        if came.done():
            return
        if error is None:
            came.set_result(reply)
        else:
            came.set_exception(error)

    def work() -> None:
        reply, error = None, None
        try:
            reply = context.run(world.answer, effect)
        except BaseException as raised:
            error = raised
        try:
            loop.call_soon_threadsafe(tell, reply, error)
        except RuntimeError:
            return  # the loop is closed, so nobody waits

    threading.Thread(target=work, name="interlock-asking", daemon=True).start()
    return await came


async def _translating(effect: Effect, reply: Any) -> Any:
    try:
        return await reply
    except BaseException as error:
        translated = _translated(effect, error)
        if translated is error:
            raise
        raise translated from error


def execute(allowed: Allowed, run: Run | None) -> Returned | Raised:
    """Run one tool under its permit. Its exceptions become values; only :class:`Bug` and interpreter exits pass."""
    if run is None:
        raise Bug("a tool was to be executed by steps that execute nothing")
    try:
        with executing(Permit(allowed)) as arguments:
            value = run(allowed.call.tool.name, arguments)
            if inspect.iscoroutine(value):
                value.close()
                raise Refused("the tool is asynchronous: use acall or abatch")
            _whole(value)
    except Bug:
        raise
    except Exception as error:  # a tool's error is an outcome, never an exception in the agent loop
        return Raised(error)
    return Returned(value)


async def aexecute(allowed: Allowed, run: Run | None) -> Returned | Raised:
    """Like :func:`execute`; a synchronous tool runs in a worker thread, so that it can't stop the event loop."""
    if run is None:
        raise Bug("a tool was to be executed by steps that execute nothing")
    try:
        with executing(Permit(allowed)) as arguments:
            if _is_async(run):
                value = await run(allowed.call.tool.name, arguments)
            else:
                import asyncio  # loaded already: this runs in its loop

                # As a value: a StopIteration can't be carried back into the loop, and the call would hang.
                reply = await asyncio.to_thread(_attempted, run, allowed.call.tool.name, arguments)
                if isinstance(reply, Raised):
                    return reply
                value = reply.value
                if inspect.isawaitable(value):
                    value = await value
            _whole(value)
    except Bug:
        raise
    except Exception as error:  # see execute
        return Raised(error)
    return Returned(value)


def _attempted(run: Run, name: str, arguments: dict[str, Any]) -> Returned | Raised:
    try:
        return Returned(run(name, arguments))
    except Bug:
        raise
    except Exception as error:
        return Raised(error)


def _whole(value: object) -> None:
    """Refuse a result that has not done its work yet, and close it."""
    try:
        finished(value.content if isinstance(value, ToolResult) else value)
    except Refused:
        if inspect.isgenerator(value) or inspect.iscoroutine(value):
            value.close()
        raise


def _is_async(run: Any) -> bool:
    """Is this a coroutine function, however it is wrapped? ``spread`` leaves the user's function in ``tool``."""
    inner = getattr(run, "tool", run)
    call = getattr(inner, "__call__", None)  # noqa: B004 - the method is wanted, not whether it is there
    return inspect.iscoroutinefunction(inner) or inspect.iscoroutinefunction(call)


def spread(tool: Callable[..., Any]) -> Run:
    """``run(**arguments)`` as ``run(name, arguments)``."""

    def run(_name: str, arguments: dict[str, Any]) -> Any:
        return tool(**arguments)

    run.tool = tool  # type: ignore[attr-defined]  # functions take attributes; `_is_async` reads it
    return run
