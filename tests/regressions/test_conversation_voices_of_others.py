"""T5: who had spoken was forgotten when only the labels were compared.

Two conversations had read two pages, and both had used the id `call_0`. A host that named that id got the second one,
and since it held `untrusted:web` already nothing was joined: it did not know that the first page had spoken, and a post
of private data to that page went out unasked. A child that heard a new party under a label which its parent had was
silent about it in the same way.
"""

from __future__ import annotations

from interlock import Call, Conversation, Guard
from interlock.gate.identity import Identities
from tests.regressions.stage import call, interlock, says

# Pages that nobody named are read without a question here; who has spoken is what counts.
LOCK = interlock(settings={"preset": "trifecta-only"})
POST = Call("post", {"url": "http://a.example/inbox", "body": "plan"})


def reader(url: str, conversation: Conversation | None = None) -> Guard:
    guard = LOCK.guard(conversation or Conversation.new())
    call(guard, "fetch", url=url)
    return guard


def asked(guard: Guard) -> str:
    """What is said to a post of private data to the first page, which the person typed."""
    guard.conversation.say("Post it to http://a.example/inbox please.")
    guard.admit("plan", labels=["private:files"], source="plan")
    return says(guard.preview(POST))


def test_t5_a_conversation_that_may_be_another_one_has_heard_all_parties() -> None:
    first, second = reader("http://a.example/"), reader("http://b.example/")
    known = Identities()
    known.note(first.conversation, ["call_0"])
    known.note(second.conversation, ["call_0"])
    chosen = known.recognise(call_ids=["call_0"])
    assert asked(LOCK.guard(chosen)) == asked(first) == "ask talks_back"


def test_t5_the_bucket_has_heard_all_parties() -> None:
    first, second = reader("http://a.example/"), reader("http://b.example/")
    known = Identities()
    for one in (second, first):  # the second comes first, so that its label is known by then
        known.note(one.conversation)
        known.recognise()
    assert asked(LOCK.guard(known.recognise())) == "ask talks_back"


def test_t5_a_parent_has_heard_whom_its_child_heard() -> None:
    for join in (False, True):
        parent = reader("http://b.example/")
        child = parent.conversation.child("task", tools=[])
        if join:
            parent.conversation.join(child)  # given up, and runs on
        reader("http://a.example/", child)
        assert asked(parent) == "ask talks_back"


def test_t5_the_honest_post_to_a_page_that_nobody_read() -> None:
    assert asked(reader("http://b.example/")) == "allow"
