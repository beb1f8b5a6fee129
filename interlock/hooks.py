"""What the events of coding agents mean to the gate: the desk behind ``interlock-hook``.

One session of a host is one conversation. Its sub-agents are forks of it that share all labels with it, both ways, at
once. A session that nobody knows is recognised by the calls in its transcript; what can't be recognised has every leg.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from interlock.assembly import Interlock, LocalFiles, Manifest, read_configuration
from interlock.conversations import Conversations
from interlock.errors import InterlockError, Misconfigured
from interlock.gate.conversation import Conversation
from interlock.gate.guard import Guard
from interlock.integrations import coding_agents as said
from interlock.integrations.coding_agents import PROTOCOLS, Event, Reply
from interlock.integrations.host_transcripts import PROVIDERS, Place, read_on, trace
from interlock.model.calls import Call, call_digest
from interlock.model.canonical import pack
from interlock.model.decisions import Verdict
from interlock.model.entries import Opened
from interlock.model.labels import EVERY_LEG, Label
from interlock.model.results import Outcome, ToolResult
from interlock.model.state import State, apply
from interlock.model.tools import ToolId
from interlock.policy.sources import shipped_directory
from interlock.ports import Store
from interlock.stores.choice import opened_store
from interlock.stores.host_index import HostIndex
from interlock.stores.memory import MemoryJournal
from interlock.stores.sqlite import SqliteStore

_STRANGER: Final = apply(State(), Opened("", "", labels=EVERY_LEG))
_MENTION: Final = re.compile(r"(?<!\S)@(?:\"([^\"\n]{1,1000})\"|(\S{1,1000}))")
READERS: Final = {"claude-code": ("Read", "file_path"), "gemini": ("read_file", "absolute_path")}
_PAGES: Final = apply(State(), Opened("", "", labels=(Label("untrusted:web"),)))
INDEX: Final = ".hooks"
ASKED: Final = "asked"
MAX_REMEMBERED: Final = 1000


class HostFiles:
    """Resolves paths relative to the folder of the event that is answered."""

    def __init__(self) -> None:
        self.folder: ContextVar[str] = ContextVar("interlock_hook_folder", default="/")

    def resolve(self, paths: Sequence[str]) -> tuple[str, ...]:
        """See :meth:`interlock.ports.Files.resolve`."""
        return LocalFiles(self.folder.get()).resolve(paths)


class Desk:
    """Answers the events of coding agents for one configuration. Safe to share between threads."""

    def __init__(self, configuration: str, *, protected: Sequence[str] = ()) -> None:
        """
        Args:
            protected: more files that only the operator may change.

        Raises:
            Misconfigured: the configuration, a manifest or the controls don't load, or the journal is not durable.
            JournalUnavailable: the store can't be reached.
        """
        self._configuration = os.path.abspath(configuration)
        self._protected = tuple(protected)
        self._seen = _state_of(self._configuration)  # before it is read: what changes meanwhile is read again
        chosen, folder = read_configuration(self._configuration)
        if chosen.journal is None or chosen.journal.kind == "memory":
            raise Misconfigured(
                f"{self._configuration}: hooks need a journal on disk, since each of them is a process of its own;"
                ' write [journal] kind = "sqlite", path = "interlock.db"'
            )
        store = opened_store(chosen.journal, folder)
        assert isinstance(store, Store)
        assert not isinstance(store, MemoryJournal)
        self._store = store
        name = store.path if isinstance(store, SqliteStore) else folder / "interlock"
        try:
            self._index = HostIndex(Path(f"{name}{INDEX}"))
        except BaseException:
            self._store.close()
            raise
        self._files = HostFiles()
        self._locks: dict[str, Interlock] = {}
        self._opening = threading.Lock()
        self._read: dict[str, Place] = {}

    @property
    def fresh(self) -> bool:
        """Is everything on disk as it was when this was read?"""
        return _state_of(self._configuration) == self._seen

    def close(self) -> None:
        """Let go of the files. Whatever is asked later is refused."""
        self._index.close()
        self._store.close()

    def lock(self, host: str) -> Interlock:
        """The Interlock for a host: the operator's configuration, and what the host's own tools can do.

        Raises:
            Misconfigured: something does not load.
        """
        with self._opening:
            if host not in self._locks:
                self._locks[host] = Interlock.load(
                    self._configuration,
                    journal=self._store,
                    files=self._files,
                    defaults=Manifest.load(shipped_directory() / "hosts" / f"{host}.toml"),
                    protected=(*self._protected, self._index.path),
                )
            return self._locks[host]

    def answer(self, host: str, body: bytes) -> Reply:
        """Answer one event. Never raises but for interpreter exits: what goes wrong is a refusal."""
        try:
            event = said.read(host, body)
            token = self._files.folder.set(event.folder or "/")
            try:
                return self._answered(host, event)
            finally:
                self._files.folder.reset(token)
        except InterlockError as error:
            return said.failed(str(error))
        except Exception as error:  # whatever it was, there is no decision
            return said.failed(f"the hook failed ({type(error).__name__})")

    def _answered(self, host: str, event: Event) -> Reply:
        if event.kind == "other" and not event.agent:
            return said.proceed()
        conversation = self._conversation(host, event)
        if event.agent:
            child = self._child(host, event, conversation)  # with its first event, whatever that is
            try:
                calls = event.kind in ("before", "after", "failed")
                return self._called(host, event, self.lock(host).guard(child)) if calls else said.proceed()
            finally:
                # INVARIANT: what a sub-agent brings, or may bring, is in its session before the host hears anything.
                conversation.learn(child.state, f"sub-agent {child.id}")
        guard = self.lock(host).guard(conversation)
        if event.kind in ("before", "after", "failed"):
            return self._called(host, event, guard)
        if event.kind == "prompt":
            self._prompted(host, event, guard)
        if event.kind == "stop" and event.text:
            return self._shown(event, guard)
        return said.proceed()

    def _called(self, host: str, event: Event, guard: Guard) -> Reply:
        if event.kind == "before":
            return self._before(host, event, guard)
        return self._after(host, event, guard)

    def _child(self, host: str, event: Event, conversation: Conversation) -> Conversation:
        """The conversation of a sub-agent: it begins as its session stands, and hears whatever that learns. What is
        typed in the session later was not said to it."""
        conversations = Conversations(self._store, host)
        names, name = f"{host} agents", f"{event.session}\n{event.agent}"
        known, _ = self._index.conversation(names, name)
        if not known:
            child = conversation.fork()
            conversations.keep(child)
            known = self._index.begin(names, name, child.id, sure=True)
            if known == child.id:
                return child
        child = conversations.load(known).conversation
        child.learn(conversation.state, conversation.id)
        return child

    # --- calls ------------------------------------------------------------------------------------------------------

    def _before(self, host: str, event: Event, guard: Guard) -> Reply:
        call = Call(event.tool, dict(event.arguments), event.call_id, event.server)
        ticket = guard.propose(call)
        (outcome,) = ticket.outcomes.values()
        runs = bool(ticket.allowed)
        # INVARIANT: whose call this is stands on disk before the host hears that it may run. If it can't, the call is
        # refused, and its labels stay in flight.
        number = outcome.number if runs else 0
        self._index.note(host, guard.conversation.id, event.call_id, number, _content(event))
        if runs:
            return said.proceed()
        if outcome.verdict is not Verdict.ASK:
            return said.refuse(host, event, outcome.for_model)
        reply = said.ask(host, event, outcome.for_model)
        if reply != said.refuse(host, event, outcome.for_model):
            self._may_run(host, event, guard, outcome)
        return reply

    def _may_run(self, host: str, event: Event, guard: Guard, outcome: Outcome) -> None:
        """The host asks the person and does not tell us what they say: the call counts as one that runs."""
        spec = self.lock(host).manifest.spec(ToolId(event.server, event.tool))
        if spec.known:
            # What it may write is labelled before it can be; of a tool that nobody declared that would be every file
            # there is, so there it waits until the call ran.
            guard.take_up(Call(event.tool, dict(event.arguments), ASKED, event.server))
        labels = (*spec.private, *spec.untrusted, *spec.opens)
        if labels:
            guard.admit("", labels=labels, source=f"{outcome.tool}, asked in the host")

    def _after(self, host: str, event: Event, guard: Guard) -> Reply:
        number = self._number(host, event, guard)
        call = Call(event.tool, dict(event.arguments), event.call_id or "call", event.server)
        # Without a number nobody decided it here: the host asked the person, or its hook did not run. Then whatever it
        # can bring joins all the same.
        ticket = guard.take_up(call, number)
        result = ToolResult(event.content, is_error=event.kind == "failed")
        outcome = guard.observe(ticket, call.id, result)
        if number and outcome.error is not None:
            return said.object_to_result(host, outcome.for_model)
        return said.proceed()

    def _number(self, host: str, event: Event, guard: Guard) -> int:
        flying = guard.conversation.state.in_flight
        mine = guard.conversation.id
        if event.call_id:
            found = self._index.calls(host, event.call_id)
        else:
            found = self._index.pending(host, mine, _content(event))
        return next((one.number for one in found if one.conversation == mine and one.number in flying), 0)

    # --- what is said -----------------------------------------------------------------------------------------------

    def _prompted(self, host: str, event: Event, guard: Guard) -> None:
        for quoted, plain in _MENTION.findall(event.text):
            self._mentioned(host, quoted or plain, guard)
        if event.text:
            guard.conversation.say(event.text)

    def _mentioned(self, host: str, name: str, guard: Guard) -> None:
        """The host puts the content of ``@name`` into the prompt, and asks nobody: as if its reader had read it."""
        reader = READERS.get(host)
        if reader is None or ":" in name:  # a resource of a server
            guard.admit("", labels=("private:unknown", "untrusted:unknown"), source="a mention in a prompt")
            return
        tool, argument = reader
        guard.observe(guard.take_up(Call(tool, {argument: name.rstrip(".,;!?")}, "mention")), "mention", ToolResult(""))

    def _shown(self, event: Event, guard: Guard) -> Reply:
        """The host tells us at the end of a turn, when its text is on the screen: too late to stop it, in time to have
        it on record and to tell the model once not to do it again."""
        shown = guard.render(event.text)
        return said.proceed() if shown.whole or event.again else said.object_to_text(shown.outcome.for_model)

    # --- whose conversation this is ---------------------------------------------------------------------------------

    def _conversation(self, host: str, event: Event) -> Conversation:
        conversations = Conversations(self._store, host)
        known, sure = self._index.conversation(host, event.session)
        if not known:
            return self._unknown(host, event, conversations)
        stored = conversations.load(known)
        if stored.damage:
            self._index.move(host, event.session, stored.conversation.id)
        self._compared(host, event, stored.conversation, conversations, sure=sure)
        return stored.conversation

    def _compared(
        self, host: str, event: Event, conversation: Conversation, conversations: Conversations, *, sure: bool
    ) -> None:
        """What else is in the session than what passed here: results that came while no hook ran, or, in a fork, those
        of the session that it was forked from. A host may write the transcript of a fork after its first prompt."""
        found, place = read_on(event.transcript, self._read.get(event.transcript, Place()))
        owners = self._index.known(host, found.calls) if PROTOCOLS[host].ids else {}
        others = sorted({one for some in owners.values() for one in some} - {conversation.id})
        for other in others:
            conversation.learn(conversations.load(other).conversation.state, other)
        missing = found.calls - owners.keys() if PROTOCOLS[host].ids else frozenset[str]()
        self._strangers(host, conversation, missing, whole=found.whole)
        if not sure and event.kind != "prompt":
            if not others:
                conversation.learn(_STRANGER, "a session whose beginning nobody saw")
            self._index.move(host, event.session, conversation.id)
        # Only now: what could not be recorded is read again.
        self._read[event.transcript] = place
        if len(self._read) > MAX_REMEMBERED:
            self._read.clear()

    def _strangers(self, host: str, conversation: Conversation, calls: Iterable[str], *, whole: bool = True) -> None:
        """Results of calls that nobody here knows had any labels there are; those that the provider ran are pages."""
        calls = set(calls)
        ours = {one for one in calls if not one.startswith(PROVIDERS)}
        if ours or not whole:
            conversation.learn(_STRANGER, "calls that nobody knows")
        elif calls:
            conversation.learn(_PAGES, "tools of the provider")
        for one in sorted(calls):
            self._index.note(host, conversation.id, one, 0, "")

    def _unknown(self, host: str, event: Event, conversations: Conversations) -> Conversation:
        """A session that nobody knows: new and clean, or a fork, if that is certain; else every leg.

        A prompt alone says nothing: hosts fork under the old name, and go on under a new one. Nothing can be done by
        the answer to a prompt before the next event, and that one is held against the transcript.
        """
        found = trace(event.transcript)
        owners = self._index.known(host, found.calls) if PROTOCOLS[host].ids else {}
        parents = sorted({one for some in owners.values() for one in some})
        started = event.kind == "start" and event.source in ("startup", "clear")
        sure = True
        if parents:
            conversation = conversations.load(parents[0]).conversation.fork()
            for other in parents[1:]:
                conversation.learn(conversations.load(other).conversation.state, other)
        else:
            conversation = Conversation(namespace=host)
            if event.kind == "prompt" and not found.calls:
                sure = False
            elif found.spoken or not started:
                conversation.learn(_STRANGER, "a session whose beginning nobody saw")
        conversations.keep(conversation)
        missing = found.calls - owners.keys() if PROTOCOLS[host].ids else frozenset[str]()
        self._strangers(host, conversation, missing, whole=found.whole)
        chosen = self._index.begin(host, event.session, conversation.id, sure=sure)
        if chosen != conversation.id:  # another process was faster: that one counts
            return conversations.load(chosen).conversation
        return conversation


def _content(event: Event) -> str:
    """Which call this is, by what it does."""
    return call_digest(ToolId(event.server, event.tool), pack(dict(event.arguments)))


def _state_of(configuration: str) -> tuple[object, ...]:
    """What stands on disk of everything that a configuration names.

    Raises:
        Misconfigured: it can't be read.
    """
    chosen, folder = read_configuration(configuration)
    named = [Path(configuration), *(folder / one for one in chosen.manifest)]
    named += [folder / one for one in chosen.policies]
    named += [folder / one for one in (getattr(chosen.journal, "key_file", ""),) if one]
    named += [folder / one for one in chosen.bundle.files] if chosen.bundle is not None else []
    named.append(shipped_directory() / "hosts")
    found = []
    for one in named:
        for file in (one, *sorted(one.rglob("*"))) if one.is_dir() else (one,):
            try:
                seen = file.stat()
            except OSError:
                found.append((str(file), 0, 0, 0, 0))
            else:
                found.append((str(file), seen.st_mtime_ns, seen.st_ctime_ns, seen.st_size, seen.st_ino))
    return tuple(found)
