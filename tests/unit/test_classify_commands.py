"""Proves that `classify` and `mcp scan` do what their pages say, on real servers over stdio and HTTP.

Mutations that this file is shown to catch: starting without consent, a server that fails taken for empty, exit code 0
with a trifecta.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from interlock import Manifest
from interlock.cli import cli

pytest.importorskip("mcp")

SERVER = Path(__file__).parents[1] / "catalog" / "desk_server.py"
RECORDED = SERVER.parent
START = [sys.executable, str(SERVER)]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, [str(one) for one in arguments])


def scanned(folder: Path, servers: dict[str, Any], *options: str) -> tuple[int, dict[str, Any]]:
    file = folder / "mcp.json"
    file.write_text(json.dumps({"mcpServers": servers}))
    done = run("mcp", "scan", "--json", *options, file)
    assert done.exit_code in (0, 1), done.output
    return done.exit_code, json.loads(done.stdout)


# --- classify ---------------------------------------------------------------------------------------------------------


def test_a_running_server_is_classified_saved_and_compared(tmp_path: Path) -> None:
    """The whole round: first look, written for review, an upgrade that shows only what is different."""
    saved, first, second = tmp_path / "list.json", tmp_path / "first.toml", tmp_path / "second.toml"
    done = run("classify", "--save", saved, "--write", first, "--", *START)
    assert done.exit_code == 0, done.output
    assert "2 proposed" in done.stdout
    assert json.loads(saved.read_text())["server"] == {"name": "desk", "version": "1.0"}
    manifest = Manifest.loads(first.read_text())
    assert {str(one.id): one.egress.value for one in manifest} == {
        "desk/read_page": "chosen",
        "desk/list_notes": "none",
    }
    same = run("classify", "--since", saved, "--strict", saved)
    assert same.exit_code == 0
    assert "Nothing is different." in same.stdout
    done = run("classify", "--since", saved, "--strict", "--write", second, "--", *START, "--more")
    assert done.exit_code == 1, done.output
    assert list(tomllib.loads(second.read_text())["servers"]["desk"]["tools"]) == ["send_note"]


def test_a_server_over_http(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([*START, "--http", str(port)], stderr=subprocess.DEVNULL)
    try:
        for _ in range(200):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        done = run("classify", "--json", f"http://127.0.0.1:{port}/mcp")
        assert done.exit_code == 0, done.output
        assert {one["name"] for one in json.loads(done.stdout)["tools"]} == {"read_page", "list_notes"}
    finally:
        process.terminate()
        process.wait(10)


def test_a_recorded_list_of_a_known_server(tmp_path: Path) -> None:
    done = run("classify", "--json", "--write", tmp_path / "m.toml", RECORDED / "gmail.json")
    found = json.loads(done.stdout)
    assert (found["server"], found["catalogue"], found["matched_by"]) == ("gmail", "gmail", "package")
    assert {one["from"] for one in found["tools"]} == {"catalogue"}
    assert len(Manifest.loads((tmp_path / "m.toml").read_text())) == len(found["tools"])
    shown = run("classify", "--write", "-", RECORDED / "gmail.json")
    assert shown.stdout == (tmp_path / "m.toml").read_text()
    assert "19 catalogue" in run("classify", RECORDED / "gmail.json").stdout


def test_corrections_are_never_overwritten(tmp_path: Path) -> None:
    mine = tmp_path / "m.toml"
    mine.write_text("mine")
    done = run("classify", "--write", mine, RECORDED / "time.json")
    assert done.exit_code == 2
    assert "may hold your corrections" in done.stderr
    assert mine.read_text() == "mine"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--", *START, "--fail"], "its last words: the key is missing"),
        (["--", "no-such-program-anywhere"], "no list of tools"),
        (["--env", "NO_SUCH_VARIABLE", "--", *START], "there is no such variable"),
        (["--timeout", "1", "--", sys.executable, "-c", "import time; time.sleep(60)"], "no list of tools within 1 s"),
        (["nothing.json"], "not JSON that can be read"),
        (["--as", "nobody", str(RECORDED / "time.json")], "knows no server 'nobody'"),
    ],
    ids=["fails", "missing", "variable", "silent", "file", "unknown"],
)
def test_what_goes_wrong_is_said_and_nothing_is_printed(words: list[str], message: str) -> None:
    done = run("classify", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stdout == ""


# --- scan -------------------------------------------------------------------------------------------------------------

DESK = {"command": sys.executable, "args": [str(SERVER)]}
FILES = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv"]}
SLACK = {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-slack"], "env": {"SLACK_BOT_TOKEN": "s3cret"}}


def test_offline_it_knows_what_the_catalogue_knows(tmp_path: Path) -> None:
    code, found = scanned(tmp_path, {"files": FILES}, "--offline")
    assert code == 0
    assert found["trifectas"] == []
    assert found["servers"][0]["catalogue"] == "filesystem"
    code, found = scanned(tmp_path, {"files": FILES, "slack": SLACK}, "--offline")
    assert code == 1
    (one,) = found["trifectas"]
    assert one["servers"] == ["slack"]
    assert one["interlock"] == "deny"
    assert one["one_change"]["leg"] == "egress"
    assert found["still_possible"] == []
    assert "s3cret" not in json.dumps(found)


def test_what_a_client_switches_off_is_off(tmp_path: Path) -> None:
    """Two servers are started; of each, only the tools count that the client lets a model see."""
    notes = {**DESK, "disabled_tools": ["read_page"]}
    sends = {**DESK, "args": [*DESK["args"], "--more"], "enabled_tools": ["read_page"]}
    code, found = scanned(tmp_path, {"notes": notes, "web": sends}, "--yes")
    tools = {one["name"]: one["tools"] for one in found["servers"]}
    assert tools == {
        "notes": {"list_notes": ["untrusted", "private"]},
        "web": {"read_page": ["untrusted", "private", "egress"]},
    }
    assert code == 1
    assert [one["servers"] for one in found["trifectas"]] == [["web"]]
    assert found["trifectas"][0]["one_change"]["says"] == "take out web"
    assert found["still_possible"] == []


def test_what_is_not_known_has_every_leg(tmp_path: Path) -> None:
    strange = {"command": "evil-server", "args": ["@modelcontextprotocol/server-filesystem"]}
    code, found = scanned(tmp_path, {"filesystem": strange}, "--offline")
    assert code == 1
    assert found["servers"][0]["known_from"] == "unknown"
    code, found = scanned(tmp_path, {"desk": {**DESK, "args": [*DESK["args"], "--fail"]}}, "--yes")
    assert code == 1
    assert found["servers"][0]["known_from"] == "unknown"
    assert "the key is missing" in found["servers"][0]["problem"]


def test_a_server_that_is_off_counts_for_nothing(tmp_path: Path) -> None:
    code, found = scanned(tmp_path, {"slack": {**SLACK, "disabled": True}}, "--offline")
    assert code == 0
    assert found["servers"][0]["known_from"] == "off"


def test_nothing_is_started_without_consent(tmp_path: Path) -> None:
    mark = tmp_path / "started"
    file = tmp_path / "mcp.json"
    start = {"command": sys.executable, "args": ["-c", f"open({str(mark)!r}, 'w')"]}
    file.write_text(json.dumps({"mcpServers": {"a": start}}))
    done = run("mcp", "scan", file)
    assert done.exit_code == 2
    assert "use --yes to start them, or --offline" in done.stderr
    assert run("mcp", "scan", "--offline", file).exit_code == 1
    assert not mark.exists()
    assert run("mcp", "scan", "--yes", "--timeout", "10", file).exit_code == 1
    assert mark.exists()


def test_the_table_for_people(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[mcp_servers.slack]\ncommand = "npx"\nargs = ["@modelcontextprotocol/server-slack"]\n')
    done = run("mcp", "scan", "--offline", file)
    assert done.exit_code == 1
    assert "switch off" in done.stdout
    assert "no lethal trifecta is possible" in done.stdout
    file.write_text('[mcp_servers.time]\ncommand = "uvx"\nargs = ["mcp-server-time"]\n')
    assert "No lethal trifecta is possible" in run("mcp", "scan", "--offline", file).stdout


def test_two_files_are_one_installation_and_may_not_contradict(tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    one.write_text(json.dumps({"mcpServers": {"a": FILES}}))
    two.write_text(json.dumps({"mcpServers": {"a": FILES, "b": SLACK}}))
    assert run("mcp", "scan", "--offline", one, two).exit_code == 1
    two.write_text(json.dumps({"mcpServers": {"a": SLACK}}))
    done = run("mcp", "scan", "--offline", one, two)
    assert done.exit_code == 2
    assert "another server 'a'" in done.stderr


def test_a_trifecta_over_two_servers_of_the_catalogue(tmp_path: Path) -> None:
    """Neither could do it alone: the search engine brings pages and takes queries, the folder is private."""
    search = {"command": "npx", "args": ["-y", "@brave/brave-search-mcp-server"]}
    code, found = scanned(tmp_path, {"files": FILES, "web": search}, "--offline")
    assert code == 1
    (one,) = found["trifectas"]
    assert one["servers"] == ["files", "web"]
    assert one["one_change"]["says"] == "take out web"
    assert one["interlock"] == "deny"
    assert found["breaks_all"] == ["take out files", "take out web"]
