"""An agent on Anthropic's Messages API. Runs offline; with ``ANTHROPIC_API_KEY`` set it runs for real."""

from __future__ import annotations

import os

from api import anthropic_api
from tools import SAID, SCHEMAS, dispatch, lock

from interlock import Conversation
from interlock.loops import run_anthropic

MODEL = os.environ.get("ANTHROPIC_MODEL", "claude-sonnet-4-5")
TOOLS = [{"name": name, "description": what, "input_schema": schema} for name, (what, schema) in SCHEMAS.items()]

if __name__ == "__main__":
    guard = lock.guard(Conversation.new())
    with anthropic_api() as ask:
        finished = run_anthropic(ask, guard, dispatch, SAID, model=MODEL, max_tokens=1024, tools=TOOLS)
    for outcome in finished.outcomes:
        print(f"{outcome.tool:<11} {outcome.verdict:<6} {outcome.decision.code}")
    print(finished.text)
