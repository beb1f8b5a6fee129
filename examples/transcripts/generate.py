"""Writes a long conversation for `interlock replay`, the same one each time: JSONL on standard output.

    python examples/transcripts/generate.py 5000 > long.jsonl
    interlock replay long.jsonl --config examples/transcripts/interlock.toml --totals

Chat Completions; one to four parallel calls in a turn, a new request of the person every 50 turns or so, and now and
then what long recordings really hold: an id that comes twice, arguments that were cut off, a result that is missing, a
tool that nobody declared.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterator
from typing import Any


def arguments(chance: random.Random, name: str, number: int) -> dict[str, Any]:
    match name:
        case "fetch_page":
            return {"url": f"https://{chance.choice(['news', 'port', 'blog'])}.example/{number}"}
        case "send_email":
            to = chance.choice(["ana@corp.example", "drop@collector.example"])
            return {"to": to, "subject": "Report", "body": f"number {number}"}
        case "read_mail":
            return {"folder": "inbox"}
        case "web_search":
            return {"query": f"ferry {number}"}
        case "list_issues":
            return {"repository": "me/public"}
        case _:
            return {"path": f"notes/{number % 97}.txt"}


TOOLS = ["read_file", "read_file", "fetch_page", "web_search", "send_email", "read_mail", "list_issues"]


def messages(calls: int, seed: int = 7) -> Iterator[dict[str, Any]]:
    chance = random.Random(seed)
    made = 0
    while made < calls:
        if made % 50 < 3:
            yield {"role": "user", "content": f"Go on with report {made} and mail it to ana@corp.example."}
        uses, answers = [], []
        for _ in range(min(chance.choice([1, 1, 2, 4]), calls - made)):
            made += 1
            name = chance.choice(TOOLS) if made % 1999 else "unheard_of"
            text = json.dumps(arguments(chance, name, made))
            if made % 211 == 0:
                text = text[:-2]  # cut off
            call_id = "call_0" if made % 401 == 0 else f"call_{made}"
            uses.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": text}})
            if made % 307:
                answers.append({"role": "tool", "tool_call_id": call_id, "content": f"result {made} " + "x" * 200})
        yield {"role": "assistant", "content": None, "tool_calls": uses}
        yield from answers


if __name__ == "__main__":
    for message in messages(int(sys.argv[1]) if len(sys.argv) > 1 else 5000):
        print(json.dumps(message))
