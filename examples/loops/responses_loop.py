"""An agent on OpenAI's Responses API. Runs offline; with ``OPENAI_API_KEY`` in the environment it runs for real."""

from __future__ import annotations

import os

from api import responses_api
from tools import SAID, SCHEMAS, dispatch, lock

from interlock import Conversation
from interlock.loops import run_responses

MODEL = os.environ.get("OPENAI_MODEL", "gpt-5.5")
INCLUDE = ["reasoning.encrypted_content"]  # the history is ours, so reasoning has to come along
TOOLS = [
    {"type": "function", "name": name, "description": what, "parameters": schema}
    for name, (what, schema) in SCHEMAS.items()
]

if __name__ == "__main__":
    guard = lock.guard(Conversation.new())
    with responses_api() as ask:
        finished = run_responses(ask, guard, dispatch, SAID, model=MODEL, tools=TOOLS, store=False, include=INCLUDE)
    for outcome in finished.outcomes:
        print(f"{outcome.tool:<11} {outcome.verdict:<6} {outcome.decision.code}")
    print(finished.text)
