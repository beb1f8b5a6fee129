"""What every store must do, as functions that anybody can run against theirs.

    from functools import partial
    from interlock.testing.stores import check_store
    check_store(partial(MyStore, "where"))

``factory`` opens the store anew, over the same data, each time it is called; for the checks with several processes it
must be picklable. Each check works in a namespace of its own, so one database serves all of them, and raises
``AssertionError`` with what was violated. :data:`CHECKS` and :data:`PROCESS_CHECKS` list them for parametrised tests.
"""

from __future__ import annotations

import multiprocessing
import secrets
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final, TypeAlias

from interlock.errors import Conflict, JournalUnavailable, Refused, TurnConflict
from interlock.model.chain import verify
from interlock.model.checkpoints import read_state
from interlock.model.digests import NO_DIGEST
from interlock.model.entries import Admitted, Decided, Entry, Failed, Observed, Opened, Transcribed, Trimmed, decode
from interlock.model.labels import Label
from interlock.model.messages import Image, Message, Text, ToolAnswer, ToolUse
from interlock.model.records import Change
from interlock.model.retention import BARE, begins, trimmed
from interlock.model.state import State, apply
from interlock.ports import Namespace, Store, Summaries
from interlock.stores.memory_facts import MemorySummaries

Factory: TypeAlias = Callable[[], Store]

AT: Final = "2026-11-29T12:00:00.000000Z"
WEB: Final = Label("untrusted:web")
FILES: Final = Label("private:files")

# Each is another name: by case, by Unicode normal form, by what some database pads, folds, cuts or quotes.
AWKWARD: Final = (
    "a",
    "A",
    "a ",
    " a",
    "\u00e9",
    "e\u0301",
    "\u212b",
    "\u00c5",
    "ss",
    "\u00df",
    "i",
    "\u0130",
    "\u0131",
    "%",
    "_",
    "?",
    "'",
    '"; --',
    "a\\0b",
    "\U0001f600",
    "x" * 128,
    "x" * 127 + "y",
    "\u00e9" * 128,
)
# No names at all: nothing is stored under them.
IMPOSSIBLE: Final = ("", "\0", "a\0", "a\0b", "a\nb", "\u200b", "\ud800", "x" * 513)


def check_store(
    factory: Factory,
    *,
    processes: bool = True,
    turns: int = 200,
    summaries: Callable[[Store], Summaries] | None = None,
) -> None:
    """Run every check.

    Args:
        processes: the store's data can be reached from several processes.
        turns: how many turns each of eight processes attempts on one conversation.
        summaries: those that belong to an open store, if it keeps any; otherwise some in memory are taken.
    """
    from interlock.testing.backlog import check_backlog  # late: it is made of what stands here

    for check in CHECKS:
        check(factory)
    in_memory = MemorySummaries()
    check_backlog(factory, summaries or (lambda _: in_memory))
    if processes:
        for process_check in PROCESS_CHECKS:
            process_check(factory)
        check_eight_processes(factory, turns=turns)


# --- names ------------------------------------------------------------------------------------------------------------


def check_names(factory: Factory) -> None:
    """Names that look alike are different ones, of conversations and of namespaces; what is no name is refused."""
    store, mark = factory(), secrets.token_hex(4)
    for number, name in enumerate(AWKWARD):
        view = store.within(mark)
        view.open([Opened(AT, name, mark), admitted(f"untrusted:c{number}")])
        other = store.within((mark + name)[:128])
        other.open([Opened(AT, name, other.name), admitted(f"untrusted:n{number}")])
    for opened in (store, factory()):
        for number, name in enumerate(AWKWARD):
            same_names = [other for other in AWKWARD if (mark + other)[:128] == (mark + name)[:128]]
            assert labels(opened.within(mark).state(name)) == {f"untrusted:c{number}"}, ascii(name)
            if len(same_names) == 1:
                held = labels(opened.within((mark + name)[:128]).state(name))
                assert held == {f"untrusted:n{number}"}, ascii(name)
        listed = opened.within(mark).conversations(limit=1000)
        assert sorted(listed) == sorted(AWKWARD), "a conversation is missing in the list, or there twice"
        pages = [opened.within(mark).conversations(after=one, limit=1) for one in ("", *listed)]
        assert [one for page in pages for one in page] == list(listed), "the pages do not follow each other"
    view = store.within(mark)
    for name in IMPOSSIBLE:
        refused(lambda name=name: view.open([Opened(AT, name, mark)]))  # type: ignore[misc]  # a default binds it now
        missing(lambda name=name: view.state(name))  # type: ignore[misc]
        if len(name) != 513:
            refused(lambda name=name: store.within(name))  # type: ignore[misc]
    refused(lambda: store.within("x" * 129))
    store.close()


def check_namespaces(factory: Factory) -> None:
    """A conversation of another namespace is not there, in the very words in which one that never was is not there."""
    store = factory()
    mine, theirs = store.within(fresh()), store.within(fresh())
    name = begun(theirs)
    theirs.record(name, [change(Message.user("theirs"))], at=AT, turn=0)
    for ask in _QUESTIONS:
        told = [_told(ask, mine, one) for one in (name, "c-never-was")]
        assert told[0].replace(name, "") == told[1].replace("c-never-was", ""), "a namespace shows what another holds"
    assert mine.conversations() == ()
    assert len(theirs.messages(name)) == 1, "somebody else's question changed it"
    refused(lambda: mine.open([Opened(AT, "c-1", theirs.name)]))
    assert mine == store.within(mine.name) != theirs, "views are equal exactly when their namespaces are"
    store.close()


def check_same_name(factory: Factory) -> None:
    """Two conversations of one name in two namespaces are two: journal, head, messages, turns, erasing, conflicts."""
    store = factory()
    mine, theirs = store.within(fresh()), store.within(fresh())
    for view, text, brought in ((mine, "mine", WEB), (theirs, "theirs", FILES)):
        view.open([Opened(AT, "c-same", view.name), admitted(brought)])
        view.record("c-same", [change(Message.user(text), Message.user("and"))], at=AT, turn=0)
    theirs.record("c-same", [change(*[Message.user("more")] * 4, keep=2)], at=AT, turn=1)
    theirs.record("c-same", [Change(2, (), ())], at=AT, turn=2)
    theirs.record("c-same", [change(*[Message.user("more")] * 4, keep=2)], at=AT, turn=3)
    mine.record("c-same", [Change(1, (), ())], at=AT, turn=1)
    assert [one.message for one in mine.messages("c-same")] == [Message.user("mine")]
    theirs.record("c-same", [Change(2, (), ())], at=AT, turn=4)
    mine.erase("c-same", at=AT)
    # Enough for whatever shortens reading, and only in one of the two.
    mine.append("c-same", [admitted(WEB)] * 1100)
    for opened in (store, factory()):
        view = opened.within(theirs.name)
        assert labels(view.state("c-same")) == {FILES}
        assert [one.message for one in view.messages("c-same")] == [Message.user("theirs"), Message.user("and")]
        assert [one.message for one in view.messages("c-same", limit=1)] == [Message.user("and")]
        ever = [one.message for one in view.messages_ever("c-same", limit=99)]
        assert ever == [Message.user("theirs"), Message.user("and"), *[Message.user("more")] * 8]
        assert len(check_chain(view, "c-same")) == 7, "entries of another namespace are shown"
        assert view.conversations() == ("c-same",)
        other = opened.within(mine.name)
        assert labels(other.state("c-same")) == {WEB}
        assert [one.message for one in other.messages_ever("c-same", limit=9)] == [None, None]
        check_chain(other, "c-same")
        opened.close()


_QUESTIONS: Final[Sequence[Callable[[Namespace, str], object]]] = (
    lambda view, name: view.state(name),
    lambda view, name: view.append(name, [admitted(WEB)]),
    lambda view, name: view.append(name, [admitted(WEB)], expected=1),
    lambda view, name: view.record(name, [change(Message.user("x"))], at=AT, turn=0),
    lambda view, name: view.messages(name),
    lambda view, name: view.messages_ever(name, limit=10),
    lambda view, name: view.entries(name),
    lambda view, name: view.head(name),
    lambda view, name: view.erase(name, at=AT),
)


def _told(ask: Callable[[Namespace, str], object], view: Namespace, name: str) -> str:
    try:
        ask(view, name)
    except JournalUnavailable as error:
        return f"{type(error).__name__}: {error}"
    raise AssertionError("a conversation that is not there was found")


# --- the journal ------------------------------------------------------------------------------------------------------


def check_journal(factory: Factory) -> None:
    """All or nothing, under the expected version only, and the same again from the store (T2, T10, T11)."""
    store = factory()
    view = store.within(fresh())
    refused(lambda: view.open([]))
    refused(lambda: view.open([admitted(WEB)]))
    name = begun(view)
    conflict(lambda: view.open([Opened(AT, name, view.name)]))
    refused(lambda: view.append(name, [admitted(WEB), Opened(AT, name, view.name)]))
    assert not view.state(name).taint, "half of a refused write was written"
    state = view.append(name, [admitted(WEB), admitted(FILES)], expected=view.state(name).version)
    assert labels(state) == {WEB, FILES}
    conflict(lambda: view.append(name, [admitted("untrusted:late")], expected=state.version - 1))
    conflict(lambda: view.append(name, [admitted("untrusted:early")], expected=state.version + 1))
    assert view.state(name) == state, "a lost race changed something"
    state = view.append(name, [decided(1), decided(2)], expected=state.version)
    assert "private:mail" in state.exposure
    assert "private:mail" not in state.taint
    state = view.append(name, [Observed(AT, 1, True, NO_DIGEST, 0)])
    assert view.append(name, []) == state, "nothing was written, and something changed"
    other = factory()
    assert other.within(view.name).state(name) == state, "another reader sees another state"
    check_chain(other.within(view.name), name)
    other.close()
    store.close()
    missing(lambda: store.within(view.name).state(name))


def check_bad_entry(factory: Factory) -> None:
    """An entry that can't be written takes nothing of its write along."""
    store = factory()
    view = store.within(fresh())
    name = begun(view)
    before = view.state(name)
    vast = Admitted(AT, "x" * (2 << 20), (WEB,), NO_DIGEST, 0)
    refused(lambda: view.append(name, [admitted(FILES), vast]))
    refused(lambda: view.open([Opened(AT, "c-vast", view.name), vast]))
    assert view.state(name) == before
    missing(lambda: view.state("c-vast"))
    check_chain(view, name)
    store.close()


def check_long(factory: Factory) -> None:
    """Thousands of entries load again as they were, with whatever shortens the reading (T11)."""
    store = factory()
    view = store.within(fresh())
    name = begun(view)
    state = view.state(name)
    for number in range(1, 26):
        calls = [entry for call in range(number * 100, number * 100 + 50) for entry in _call(call)]
        state = view.append(name, [*calls, admitted(f"private:p{number}")], expected=state.version)
    state = view.append(name, [decided(9999)])
    other = factory()
    again = other.within(view.name)
    assert again.state(name) == state, "a long conversation loads as another one"
    check_chain(again, name)
    assert again.append(name, [admitted("untrusted:end")], expected=state.version) == view.state(name)
    other.close()
    store.close()


def _call(number: int) -> tuple[Entry, ...]:
    return decided(number), Observed(AT, number, True, NO_DIGEST, 0)


def check_clock(factory: Factory) -> None:
    """Order is the order of writing, whatever the clocks of the writers say."""
    store = factory()
    view = store.within(fresh())
    name = begun(view)
    times = ("2026-11-29T12:00:05.000000Z", "1970-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z", AT)
    for number, at in enumerate(times):
        view.append(name, [Admitted(at, "x", (Label(f"untrusted:t{number}"),), NO_DIGEST, 0)])
        view.record(name, [Change(number, (Message.user(at),), ((),))], at=at, turn=number)
    other = factory()
    assert labels(other.within(view.name).state(name)) == {f"untrusted:t{number}" for number in range(len(times))}
    texts = [one.message.text for one in other.within(view.name).messages(name) if one.message]
    assert texts == list(times)
    check_chain(other.within(view.name), name)
    other.close()
    store.close()


# --- the transcript ---------------------------------------------------------------------------------------------------


def check_transcript(factory: Factory) -> None:
    """Messages come back as they were said, the newest ones first when asked so, and nothing is rewritten or lost."""
    store = factory()
    view = store.within(fresh())
    name = begun(view)
    said = (
        Message.user("NUL \0, lone \ud800, e\u0301 and \u00e9, \U0001f600"),
        Message.assistant("I look", ToolUse("call_1", "read", {"path": "\0", "n": [1, 1.0, None, True]})),
        Message.results(),
        Message.user("", Image("image/png", bytes(range(256)))),
    )
    answer = Message(said[2].role, (ToolAnswer("call_1", "found"), Text("and more")))
    said = (*said[:2], answer, said[3])
    covers = ((), (WEB,), None, (FILES, WEB))
    state = view.record(name, [Change(0, said, covers)], [admitted(WEB)], at=AT, turn=0)
    assert (state.turn, state.length, state.places) == (1, 4, 4)
    assert labels(state) == {WEB, FILES}, "what a cover says has not joined"
    found = view.messages(name)
    assert tuple(one.message for one in found) == said
    assert tuple(one.cover for one in found) == covers
    assert [one.place for one in found] == [1, 2, 3, 4]
    assert [one.place for one in view.messages(name, limit=2)] == [3, 4]
    assert [one.place for one in view.messages(name, before=3, limit=1)] == [2]
    assert [one.place for one in view.messages(name, after=1, before=4)] == [2, 3]
    new = (Message.user("a summary"), Message.user("and on"))
    state = view.record(name, [Change(1, new[:1], ((WEB,),)), Change(2, new[1:], ((),))], at=AT, turn=1)
    assert (state.turn, state.length, state.places) == (2, 3, 6)
    for opened in (view, factory().within(view.name)):
        assert tuple(one.message for one in opened.messages(name)) == (said[0], *new)
        ever = opened.messages_ever(name, limit=100)
        assert tuple(one.message for one in ever) == (*said, *new), "what a rewrite replaced is gone"
        assert [bool(one.retired) for one in ever] == [False, True, True, True, False, False]
        assert [one.place for one in opened.messages_ever(name, after=4, limit=1)] == [5]
    refused(lambda: view.record(name, [Change(4, new, ((), ()))], at=AT, turn=2))
    refused(lambda: view.record(name, [change(Message.system("obey"), keep=3)], at=AT, turn=2))
    assert view.state(name) == state, "a refused turn changed something"
    state = view.record(name, [Change(0, (), ())], at=AT, turn=2)
    assert (state.turn, state.length, state.places) == (3, 0, 6)
    assert view.messages(name) == ()
    check_chain(view, name)
    store.close()


def check_many_messages(factory: Factory) -> None:
    """Thousands of messages in one turn, and a turn on top of them."""
    store = factory()
    view = store.within(fresh())
    name = begun(view)
    many = tuple(Message.user(str(number)) for number in range(2500))
    view.record(name, [Change(0, many, ((),) * len(many))], at=AT, turn=0)
    state = view.record(name, [change(Message.user("last"), keep=2499)], at=AT, turn=1)
    assert (state.turn, state.length, state.places) == (2, 2500, 2501)
    assert [one.message for one in view.messages(name)] == [*many[:-1], Message.user("last")]
    assert [one.message for one in view.messages(name, limit=2)] == [many[2498], Message.user("last")]
    check_chain(view, name)
    store.close()


def check_conflicts(factory: Factory) -> None:
    """Of two turns from one version one ends, and the other's labels join all the same (T2)."""
    store = factory()
    view = store.within(fresh())
    name = begun(view)
    view.record(name, [change(Message.user("first"))], at=AT, turn=0)
    lost = Change(0, (Message.user("second"),), ((Label("private:cover"),),))
    told: TurnConflict | None = None
    try:
        view.record(name, [lost], [admitted("untrusted:entry")], at=AT, turn=0)
    except TurnConflict as error:
        told = error
    state = view.state(name)
    assert told is not None, "two turns ended from one version"
    assert (told.turn, told.version) == (state.turn, state.version), "the conflict tells another version"
    assert labels(state) == {"untrusted:entry", "private:cover"}, "the loser's labels were lost"
    assert [one.message for one in view.messages(name)] == [Message.user("first")]
    for turn in (-1, 0, 2, 3):
        conflict(lambda turn=turn: view.record(name, [lost], at=AT, turn=turn))  # type: ignore[misc]
    assert view.state(name) == state, "labels that are known joined again"
    check_chain(view, name)
    store.close()


def check_erasing(factory: Factory) -> None:
    """Erasing takes the content and leaves every label, and the chain still verifies (T2, T10)."""
    store = factory()
    view = store.within(fresh())
    name = begun(view)
    view.append(name, [admitted(WEB), decided(1)])
    view.record(name, [Change(0, (Message.user("one"), Message.user("two")), ((), (FILES,)))], at=AT, turn=0)
    before = view.state(name)
    before = replace(before, erased=2)
    assert view.erase(name, at=AT) == before
    assert view.erase(name, at=AT) == before, "there was nothing left to erase"
    other = factory()
    again = other.within(view.name)
    assert again.state(name) == before
    assert [(one.message, one.cover) for one in again.messages(name)] == [(None, None)] * 2
    assert again.record(name, [change(Message.user("three"), keep=2)], at=AT, turn=1).length == 3
    assert [one.message for one in again.messages(name)] == [None, None, Message.user("three")]
    check_chain(again, name)
    other.close()
    store.close()


# --- threads and processes --------------------------------------------------------------------------------------------


def check_trimming(factory: Factory) -> None:
    """A shortened journal is the same conversation: state, messages, head, whoever has it open (T2, T10, T11)."""
    store, other = factory(), factory()
    view = store.within(fresh())
    name = begun(view)
    missing(lambda: view.trim("c-never-was", through=1, at=AT))
    missing(lambda: view.base("c-never-was"))
    assert view.base(name) == BARE
    view.append(name, [admitted(WEB), decided(1), decided(2)])
    view.record(name, [change(Message.user("one"), Message.user("two"))], at=AT, turn=0)
    view.append(name, [Failed(AT, 1, True, "gone", doubt=True), admitted(FILES)])
    view.erase(name, at=AT)
    view.record(name, [change(Message.user("three"), keep=1)], at=AT, turn=1)
    second = other.within(view.name)
    known, length = second.state(name), view.head(name).sequence  # a process that has it open since before
    refused(lambda: view.trim(name, through=length + 1, at=AT))
    refused(lambda: view.append(name, [trimmed(AT, BARE)]))
    whole = check_chain(view, name)
    for through in (4, 4, 6, length):
        stands = view.head(name).sequence + (through > view.base(name).sequence)
        assert view.trim(name, through=through, at=AT) == known, "what a journal folds to has changed"
        assert view.head(name).sequence == stands, "shortening is one entry, and none where nothing is left to drop"
        assert view.base(name).sequence == through
        entries = check_chain(view, name)
        assert entries[: length - through] == whole[through:], "other entries than the old ones are gone"
        fresh_one = factory()
        for one in (view, second, fresh_one.within(view.name)):
            assert one.state(name) == known, "a shortened journal loads as another conversation"
            assert [shown.message for shown in one.messages(name)] == [None, Message.user("three")]
            assert len(one.messages_ever(name, limit=9)) == 3
        fresh_one.close()
    # Everybody goes on from there, also who has seen nothing of it.
    after = second.append(name, [Observed(AT, 2, True, NO_DIGEST, 0), admitted("private:mail")])
    assert after.version == known.version + 2
    assert "private:mail" in labels(view.state(name))
    assert not view.state(name).in_flight, "a call that was under way is forgotten"
    conflict(lambda: view.append(name, [decided(3)], expected=known.version))
    view.record(name, [change(Message.user("four"), keep=2)], at=AT, turn=2)
    check_chain(second, name)
    store.close()
    other.close()


def check_two_threads(factory: Factory) -> None:
    """Two threads on one conversation: no label is lost, no place is given twice, one turn ends per version."""
    store = factory()
    view = store.within(fresh())
    name = begun(view)
    together = threading.Barrier(2)

    def work(worker: int) -> list[tuple[int, str]]:
        together.wait()
        return _turns(view, name, worker, 40)

    with ThreadPoolExecutor(2) as pool:
        _judged(factory, view, name, list(pool.map(work, range(2))), 40)
    store.close()


def check_two_processes(factory: Factory) -> None:
    """The same with two processes."""
    _processes(factory, 2, 40)


def check_eight_processes(factory: Factory, *, turns: int = 200) -> None:
    """The same with eight processes, and as many turns each as said."""
    _processes(factory, 8, turns)


def _processes(factory: Factory, workers: int, turns: int) -> None:
    store = factory()
    view = store.within(fresh())
    name = begun(view)
    # Not forked: what the parent has open, and the threads that it does not pass on, are no part of this check.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        jobs = [pool.submit(_process, factory, view.name, name, one, turns) for one in range(workers)]
        _judged(factory, view, name, [job.result() for job in jobs], turns)
    store.close()


def _process(factory: Factory, namespace: str, name: str, worker: int, turns: int) -> list[tuple[int, str]]:
    store = factory()
    try:
        return _turns(store.within(namespace), name, worker, turns)
    finally:
        store.close()


def _turns(view: Namespace, name: str, worker: int, turns: int) -> list[tuple[int, str]]:
    """Attempt turns: a label under the version that stood, then the turn's end. Returns those that were won."""
    won = []
    for number in range(turns):
        state = view.state(name)
        begun_at = state
        while True:
            try:
                view.append(name, [_learnt(worker, number)], expected=state.version)
                break
            except Conflict:
                state = view.state(name)
        text = f"{worker}/{number}"
        try:
            ended = view.record(name, [change(Message.user(text), keep=begun_at.length)], at=AT, turn=begun_at.turn)
        except TurnConflict:
            continue
        assert ended.turn == begun_at.turn + 1
        won.append((ended.turn, text))
    return won


def _learnt(worker: int, number: int) -> Admitted:
    # At most 200 labels altogether, below the bound from which a new one counts as the unknown of its leg.
    return Admitted(AT, f"{worker}/{number}", (Label(f"untrusted:w{worker}.{number % 25}"),), NO_DIGEST, 0)


def _judged(factory: Factory, view: Namespace, name: str, won: Sequence[Sequence[tuple[int, str]]], turns: int) -> None:
    entries = check_chain(view, name)
    admissions = [one.source for one in entries if isinstance(one, Admitted)]
    wanted = [f"{worker}/{number}" for worker in range(len(won)) for number in range(turns)]
    assert sorted(admissions) == sorted(wanted), "a label was lost, or joined twice"
    winners = sorted(pair for one in won for pair in one)
    ended = [one.turn for one in entries if isinstance(one, Transcribed)]
    assert ended == list(range(1, len(ended) + 1)), "a turn was ended twice, or passed over"
    assert [turn for turn, _ in winners] == ended, "a version has no winner, or two"
    texts = [one.message.text for one in view.messages(name) if one.message]
    assert texts == [text for _, text in winners], "the transcript is not what the winners said"
    other = factory()
    known = {f"untrusted:w{worker}.{number % 25}" for worker in range(len(won)) for number in range(turns)}
    assert labels(other.within(view.name).state(name)) == known, "a label was lost"
    other.close()


# --- outages ----------------------------------------------------------------------------------------------------------


def check_outage(factory: Factory, outage: Callable[[], AbstractContextManager[Any]], *, reads: bool = False) -> None:
    """While nothing can be written, every write says so; afterwards the same store goes on, and nothing is missing.

    Args:
        outage: the server is gone, the disk is full: for as long as the block runs.
        reads: whether what is stored can be read meanwhile.
    """
    store = factory()
    view = store.within(fresh())
    name = begun(view)
    state = view.append(name, [admitted(WEB), decided(1)])
    # Large, so that no room that was left over takes it.
    lost = Admitted(AT, "x" * 20_000, (Label("untrusted:lost"),), NO_DIGEST, 0)
    with outage():
        missing(lambda: view.append(name, [lost], expected=state.version))
        missing(lambda: view.record(name, [change(Message.user("x" * 20_000))], at=AT, turn=0))
        missing(lambda: view.open([Opened(AT, "c-lost", view.name), lost]))
        if reads:
            assert view.state(name) == state
    assert labels(view.state(name)) >= labels(state), "what was acknowledged is gone (T16)"
    assert view.state(name) == state, "a write that failed was written"
    missing(lambda: view.state("c-lost"))
    state = view.append(name, [Observed(AT, 1, True, NO_DIGEST, 0)], expected=state.version)
    state = view.record(name, [change(Message.user("on"))], at=AT, turn=0)
    other = factory()
    assert other.within(view.name).state(name) == state
    check_chain(other.within(view.name), name)
    other.close()
    store.close()


# --- words ------------------------------------------------------------------------------------------------------------


def fresh() -> str:
    """A namespace that nobody has used."""
    return f"check-{secrets.token_hex(8)}"


def begun(view: Namespace) -> str:
    """A new, clean conversation; its name."""
    name = f"c-{secrets.token_hex(8)}"
    view.open([Opened(AT, name, view.name)])
    return name


def admitted(text: str) -> Admitted:
    """An entry that joins one label."""
    return Admitted(AT, "somewhere", (Label(text),), NO_DIGEST, 0)


def decided(number: int) -> Decided:
    """An entry that puts `private:mail` in flight."""
    return Decided(
        AT, number, f"call_{number}", "", "read_mail", NO_DIGEST, "allow", (), 0, private=(Label("private:mail"),)
    )


def change(*messages: Message, keep: int = 0) -> Change:
    return Change(keep, messages, ((),) * len(messages))


def labels(state: State) -> set[str]:
    """The labels of the taint, as plain texts."""
    return set(state.taint)


def check_chain(view: Namespace, name: str, key: bytes = b"") -> list[Entry]:
    """The chain fits its head, folds to the state, and gives the same in pages (T10, T11); its entries."""
    sealed, base = view.entries(name), view.base(name)
    verify(sealed, view.head(name), key, after=base.sequence, previous=base.digest)
    ends = range(base.sequence, base.sequence + len(sealed), 700)
    paged = [one for start in ends for one in view.entries(name, after=start, limit=700)]
    assert paged == list(sealed), "the pages of a chain are not the chain"
    entries = [decode(one.body, one.sequence) for one in sealed]
    begins(base, next((one for one in reversed(entries) if isinstance(one, Trimmed)), None))
    state = read_state(base.state)
    for entry in entries:
        state = apply(state, entry)
    assert state == view.state(name), "the state is not the fold of the entries"
    assert set(view.head(name).labels) == set(state.exposure), "the head holds other labels"
    return entries


def refused(act: Callable[[], object]) -> None:
    try:
        act()
    except Refused:
        return
    raise AssertionError("what Interlock never does was done")


def conflict(act: Callable[[], object]) -> None:
    try:
        act()
    except Conflict:
        return
    raise AssertionError("a write under another version was accepted")


def missing(act: Callable[[], object]) -> None:
    try:
        act()
    except JournalUnavailable:
        return
    raise AssertionError("something was found or written that can't have been")


CHECKS: Final[Sequence[Callable[[Factory], None]]] = (
    check_names,
    check_namespaces,
    check_same_name,
    check_journal,
    check_bad_entry,
    check_long,
    check_clock,
    check_transcript,
    check_many_messages,
    check_conflicts,
    check_erasing,
    check_trimming,
    check_two_threads,
)
PROCESS_CHECKS: Final[Sequence[Callable[[Factory], None]]] = (check_two_processes,)
