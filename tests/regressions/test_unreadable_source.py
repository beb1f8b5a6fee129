"""T11, T16: a note about where content came from could make the whole stored conversation unreadable, or raise.

`admit(source=…)` is text of a host, often a file name. With a NUL in it the entry was written and acknowledged, but its
bytes are no canonical entry, so reading the journal back gives `Tampered`. With a lone surrogate, which is what Python
makes of odd bytes in file names, `admit` raised a bare `TypeError`. The same goes for the namespace of a conversation.
"""

from __future__ import annotations

import pytest

from interlock import Conversation, InterlockError, MemoryJournal
from interlock.model.entries import decode
from tests.worlds import StepsWorld, guard_in

ODD = ["notes\0/7", "notes\ud800/7", "\udcff.txt", "\0", "x" * 10_000, "line\nline", "\u202enotes"]


@pytest.mark.parametrize("source", ODD, ids=lambda text: ascii(text)[:20])
def test_t11_what_was_acknowledged_can_be_read_back(source: str) -> None:
    world = StepsWorld(MemoryJournal())
    conversation = Conversation.new()
    guard = guard_in(world, conversation)
    try:
        guard.admit("text", labels=["untrusted:memory"], source=source)
    except InterlockError:
        shown = False
    else:
        shown = True
    for sealed in world.memory.entries(conversation.id):
        decode(sealed.body)
    assert ("untrusted:memory" in conversation.taint) or not shown


@pytest.mark.parametrize("namespace", ODD, ids=lambda text: ascii(text)[:20])
def test_t11_so_can_a_conversation_of_any_namespace(namespace: str) -> None:
    world = StepsWorld(MemoryJournal())
    try:
        conversation = Conversation(namespace=namespace)
        guard_in(world, conversation)
    except InterlockError:
        return
    for sealed in world.memory.entries(conversation.id):
        decode(sealed.body)
