"""Proves that the configurations of six clients are read as they are, and that secrets in them are not shown.

Mutation that this file is shown to catch: a switched-off tool that is counted, a comment inside of a text.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

from interlock.errors import Misconfigured
from interlock.model.clients import Configured, expanded, plain_json, read_client
from tests.ids import stable

DESKTOP = {"mcpServers": {"files": {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "s3cret"}}}}
CODE = {
    "mcpServers": {"a": {"type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": "s3cret"}}},
    "projects": {
        "/home/me/site": {"mcpServers": {"a": {"command": "other"}, "b": {"type": "sse", "url": "https://b"}}}
    },
}
VSCODE = """
{
  // the servers
  "inputs": [{"type": "promptString", "id": "key"}],
  "servers": {
    "web": {"command": "npx", "args": ["a//b", "/* c */",], "env": {"KEY": "${input:key}"}}, /* the
    last one */
  },
}
"""
CODEX = """
model = "x"
[mcp_servers.git]
command = "uvx"
args = ["mcp-server-git"]
enabled_tools = ["git_log", "git_diff"]
disabled_tools = ["git_diff"]
[mcp_servers.off]
command = "x"
enabled = false
"""


def read(document: Any, form: Any = "json") -> dict[str, Configured]:
    text = document if isinstance(document, str) else json.dumps(document)
    return {one.name: one for one in read_client(text, form, "file")}


def test_claude_desktop_and_cursor() -> None:
    (one,) = read(DESKTOP).values()
    assert (one.name, one.command, one.arguments, one.enabled) == ("files", "npx", ("-y", "x"), True)
    assert one.env["TOKEN"] == "s3cret"
    assert "s3cret" not in repr(one)


def test_claude_code_with_projects() -> None:
    found = read(CODE)
    assert set(found) == {"a", "a@site", "b"}
    assert found["a@site"].command == "other"
    assert found["b"].sse
    assert not found["a"].sse
    assert "s3cret" not in repr(found)


def test_vs_code_with_comments_and_commas() -> None:
    (one,) = read(VSCODE).values()
    assert one.arguments == ("a//b", "/* c */")
    assert read({"mcp": {"servers": {"x": {"command": "y"}}}})["x"].client == "VS Code"


@pytest.mark.parametrize("text", ['{"a": "x // y"}', '{"a": "\\" /* */ ,]"}', '{"a": ",}", "b": [1, 2]}'])
def test_what_stands_in_texts_is_no_comment(text: str) -> None:
    assert json.loads(plain_json(text)) == json.loads(text)


def test_codex_and_its_switches() -> None:
    found = read(CODEX, "toml")
    assert found["git"].offers("git_log")
    assert not found["git"].offers("git_diff")
    assert not found["git"].offers("git_commit")
    assert not found["off"].enabled


def test_gemini() -> None:
    found = read({"mcpServers": {"a": {"httpUrl": "https://a.example", "excludeTools": ["x"]}}})
    assert found["a"].url == "https://a.example"
    assert not found["a"].offers("x")
    assert found["a"].offers("y")


WRONG = [
    ("{", "not JSON"),
    ('{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}}}', "'a' stands twice"),
    ({}, "no servers"),
    ({"mcpServers": []}, "no object"),
    ({"mcpServers": {"a": 1}}, "server 'a': an object"),
    ({"mcpServers": {"a": {}}}, "either a command or a url"),
    ({"mcpServers": {"a": {"command": "x", "url": "y"}}}, "either a command or a url"),
    ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, "args"),
    ({"mcpServers": {"a": {"command": "x", "env": []}}}, "env"),
    ({"mcpServers": {"a": {"command": "x", "disabled_tools": "y"}}}, "disabled_tools"),
]


@pytest.mark.parametrize(("document", "message"), WRONG, ids=stable)
def test_what_is_wrong_is_said_with_its_place(document: Any, message: str) -> None:
    with pytest.raises(Misconfigured, match=message) as caught:
        read(document)
    assert str(caught.value).startswith("file: ")


def test_variables() -> None:
    one = Configured("a", "x", "${HOME}/bin", ("${env:A}", "${B:-b}", "$C"), {"K": "${A}"})
    here = expanded(one, {"HOME": "/h", "A": "1"})
    assert (here.command, here.arguments, here.env["K"]) == ("/h/bin", ("1", "b", "$C"), "1")


@pytest.mark.parametrize("text", ["${MISSING}", "${input:key}", "${env:MISSING}"])
def test_a_variable_that_is_not_there_is_no_empty_text(text: str) -> None:
    with pytest.raises(Misconfigured, match="server 'a'"):
        expanded(Configured("a", "x", text), {"key": "1"})
