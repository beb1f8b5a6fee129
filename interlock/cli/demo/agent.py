"""The agent: an ordinary loop. The only thing that differs between the two runs is ``guard``."""

from __future__ import annotations

from interlock.cli.demo.scripted import reply
from interlock.cli.demo.tools import Toolbox
from interlock.gate.conversation import Conversation
from interlock.gate.guard import Guard
from interlock.model.calls import Call
from interlock.model.messages import Message, Role, ToolAnswer
from interlock.model.results import Outcome

MAX_ROUNDS = 16  # of calls in one turn of the person; agents have such a bound so that a confused model ends


def turn(conversation: Conversation, toolbox: Toolbox, guard: Guard | None) -> list[Outcome]:
    """Let the model work until it calls nothing more. With a guard, returns what came of every call."""
    outcomes: list[Outcome] = []
    for _ in range(MAX_ROUNDS):
        said = reply(conversation.messages)
        conversation.push(said)
        if not said.uses:
            break
        calls = [Call(use.name, use.arguments, use.id) for use in said.uses]
        if guard is None:
            conversation.push(Message(Role.TOOL, tuple(_unguarded(call, toolbox) for call in calls)))
        else:
            done = guard.batch(calls, run=toolbox.run)
            outcomes += done
            conversation.push(Message.results(*done))
    return outcomes


def _unguarded(call: Call, toolbox: Toolbox) -> ToolAnswer:
    try:
        return ToolAnswer(call.id, toolbox.run(call.name, dict(call.arguments)))
    except Exception as error:  # as in any agent: the model is told, and the loop goes on
        return ToolAnswer(call.id, f"error: {type(error).__name__}", is_error=True)
