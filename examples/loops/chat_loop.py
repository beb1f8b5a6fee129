"""An agent on OpenAI's Chat Completions. Runs offline; with ``OPENAI_API_KEY`` in the environment it runs for real."""

from __future__ import annotations

import os

from api import chat_api
from tools import SAID, SCHEMAS, dispatch, lock

from interlock import Conversation
from interlock.loops import run_chat

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5.5")
TOOLS = [
    {"type": "function", "function": {"name": name, "description": what, "parameters": schema}}
    for name, (what, schema) in SCHEMAS.items()
]

if __name__ == "__main__":
    guard = lock.guard(Conversation.new())
    with chat_api() as ask:
        finished = run_chat(ask, guard, dispatch, SAID, model=MODEL, tools=TOOLS)
    for outcome in finished.outcomes:
        print(f"{outcome.tool:<11} {outcome.verdict:<6} {outcome.decision.code}")
    print(finished.text)
