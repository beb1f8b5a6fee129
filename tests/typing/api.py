"""The public face as users write it: checked by mypy, never executed."""

from __future__ import annotations

from datetime import timedelta

from interlock import Call, Conversation, Interlock, Manifest, Message, Outcome, ToolResult, Verdict, tool
from interlock.conversations import Conversations, StoredConversation
from interlock.errors import TurnConflict
from interlock.memory import Memory, Recall
from interlock.model.facts import Selection
from interlock.model.parcels import read_parcel
from interlock.model.summaries import SummaryRequest
from interlock.model.windows import WindowLimits
from interlock.ports import Namespace, Store
from interlock.stores.memory_artifacts import MemoryArtifacts
from interlock.stores.memory_facts import MemoryFacts, MemorySummaries
from interlock.stores.sql_artifacts import SqlArtifacts
from interlock.stores.sql_facts import SqlFacts
from interlock.stores.sqlite import SqliteStore
from interlock.testing.stores import check_store
from interlock.windows import ContextWindow, RunBudget


def send_email(to: str, body: str) -> str:
    return f"{to}: {len(body)}"


async def fetch_async(url: str) -> str:
    return url


def dispatch(name: str, arguments: dict[str, object]) -> object:
    return (name, arguments)


@tool(returns=["untrusted:web"], egress="chosen", destinations={"url": "url"})
def fetch(url: str) -> str:
    return url


async def face() -> None:
    lock = Interlock(manifest=Manifest.load("interlock.toml"))
    lock = Interlock(manifest=Manifest.parse({"version": 1}), policies=["policies/mine"], settings={"trifecta": "ask"})
    lock = Interlock(tools=[fetch])
    conversation = Conversation.user("Summarise http://example.com and mail it to bob@example.com")
    guard = lock.guard(conversation)
    outcome: Outcome = guard.call("send_email", {"to": "bob@example.com"}, run=send_email)
    outcomes: list[Outcome] = guard.batch([Call("fetch", {"url": "u"}, id="a")], run=dispatch, workers=2)
    outcomes += await guard.abatch([Call("fetch", {"url": "u"}, id="a")], run=dispatch)
    outcome = await guard.acall("fetch", {"url": "u"}, run=fetch_async)
    verdict: Verdict = outcome.verdict
    print(verdict, outcome.executed, outcome.result, outcome.error, outcome.for_model)
    print(outcome.decision.code, outcome.decision.causes)
    ticket = guard.propose(Call("fetch", {"url": "u"}, id="c"))
    guard.observe(ticket, "c", ToolResult("…", external=True))
    print(guard.preview(Call("send_email", {"to": "x@y.example"})).verdict)
    guard.admit("a remembered note", labels=["untrusted:memory"], source="notes/7")
    conversation.say("more from the person")
    print(conversation.taint, "untrusted:web" in conversation.taint, conversation.messages)


def stores() -> None:
    SqliteStore.migrate("data/chats.db")
    store: Store = SqliteStore("data/chats.db", key=b"", durability="process", timeout=1.0)
    view: Namespace = store.within("ana")
    conversations = Conversations(store, "ana")
    stored: StoredConversation = conversations.new("hello")
    guard = Interlock(manifest=Manifest.load("interlock.toml"), journal=store).guard(stored.conversation)
    guard.call("fetch", {"url": "u"}, run=fetch)
    try:
        turn: int = stored.record_turn(outcome="done")
    except TurnConflict as conflict:
        turn = conflict.turn
        print(conflict.outcome, conflict.version)
    again = conversations.load(stored.id, newest=20, alone=True)
    print(turn, again.damage, again.earlier, list(again.messages_ever()), list(conversations))
    print(view.state(stored.id).exposure, view.head(stored.id), view.messages(stored.id, limit=1))
    check_store(lambda: SqliteStore("data/chats.db"), processes=False)
    store.close()


def summarise(request: SummaryRequest) -> str:
    return f"{len(request.messages)} messages under {request.labels}, {request.seconds} seconds left"


async def summarise_later(request: SummaryRequest) -> str:
    return request.record


async def what_outlives_a_conversation() -> None:
    store = SqliteStore("data/chats.db")
    facts, artifacts = SqlFacts(store), SqlArtifacts.begin(store)
    lock = Interlock(manifest=Manifest.load("interlock.toml"), journal=store, artifacts=artifacts)
    conversation = Conversations(store, "ana").new("hello").conversation
    limits = WindowLimits(messages=40, tokens=8000, recent=10, backlog=20)
    window = ContextWindow(conversation, limits=limits, summarise=summarise, summaries=facts)
    budget = RunBudget(passes=2, seconds=20.0, cancelled=lambda: False)
    shown: tuple[Message, ...] = window.context(budget)
    window = ContextWindow(conversation, summarise=summarise_later, summaries=MemorySummaries(), earlier=0)
    shown = await window.acontext()
    print(shown, window.failure, window.plan().required)
    memory = Memory(facts, embed=lambda text: [float(len(text))], most=100)
    fact = memory.remember(conversation, "likes short letters", place=(0, 1), id="letters")
    fact = memory.correct(conversation, fact.id, fact.revision, "likes letters")
    recall: Recall = memory.recall(conversation, "letters", limit=4)
    print(recall.messages, recall.notices, recall.labels, fact.carried.labels)
    memory.expire("ana", timedelta(days=90))
    memory.forget("ana", Selection(ids=(fact.id,)))
    parcel = read_parcel(conversation.parcel("do it later").encode(), namespace="ana")
    run = Conversation.from_parcel(parcel)
    guard = lock.guard(run)
    print(
        run.open_parcel(parcel), guard.admit_artifact("text", "path", "AGENTS.md"), guard.carried_by("key", "k").labels
    )
    print(MemoryArtifacts(whole=True).carried(["key:k"], namespace="ana"), Memory(MemoryFacts()))
