"""Proves that the commands of examples/opa/README.md do what the page says: OPA, PostgreSQL, two services, an agent of
curl, and decision logs of both sides that are joined by id (T8, T13).

Mutation that it is shown to catch: an engine whose decision id is not in the journal.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from interlock.model.configuration import parse_configuration
from tests.servers import Server

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "opa"
BLOCKS = re.compile(r"(?:^<!-- (.+) -->\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PORTS = ("8181", "8443", "8444")


def free_ports(count: int) -> list[str]:
    several = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [str(one.getsockname()[1]) for one in several]
    for one in several:
        one.close()
    return found


@pytest.mark.opa
@pytest.mark.postgres
def test_the_commands_of_the_page(postgres_server: Server, opa_binary: Path, tmp_path: Path) -> None:
    here = tmp_path / "opa"
    shutil.copytree(FOLDER, here)
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "opa").symlink_to(opa_binary)
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))

    def moved(text: str) -> str:
        for old, new in ports.items():
            text = text.replace(f":{old}", f":{new}")
        return text

    configuration = here / "interlock.toml"
    configuration.write_text(moved(configuration.read_text()))
    blocks = BLOCKS.findall((here / "README.md").read_text())
    commands = [moved(text) for note, language, text in blocks if language == "sh" and note != "by hand"]
    assert len(commands) == 5
    # What is still running when a command fails is ended, and shown.
    script = "set -eu\ntrap 'kill $(jobs -p) 2>/dev/null || true; cat one.log two.log >&2' ERR\n" + "\n".join(commands)
    environment = {
        **os.environ,
        "INTERLOCK_DSN": postgres_server.empty(),
        "PATH": os.pathsep.join([str(programs), str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
    done = subprocess.run(
        ["bash", "-c", script], cwd=here, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = next(text for _, language, text in blocks if language == "text")
    assert told in done.stdout, done.stdout
    joined = re.findall(r"^\S+  call (\d) (\w+): (\w+) (\S+)$", done.stdout, re.MULTILINE)
    assert [one[:3] for one in joined] == [
        ("1", "fetch", "allow"),
        ("2", "read_file", "allow"),
        ("3", "send_email", "deny"),
    ]
    assert "trifecta" in joined[2][3]
    assert "3 decisions are on both sides, 0 on ours alone, 0 differ" in done.stdout
    logged = (here / "opa.log").read_text()
    assert "eve@evil.example" not in logged  # the mask
    assert '"arguments"' not in logged
    assert not re.search(r"ilk_[A-Za-z0-9_-]{43}", logged + done.stdout + (here / "one.log").read_text())


def test_the_containers_are_what_the_page_says() -> None:
    """No container is started here: every file that is named is there or is made, and the configuration is the same."""
    compose = YAML(typ="safe").load((FOLDER / "compose.yaml").read_text())
    made = {"bundle.tar.gz", "callers.toml"}
    for service in compose["services"].values():
        for volume in service.get("volumes", []):
            source = volume.partition(":")[0]
            assert source in compose["volumes"] or source.removeprefix("./") in made or (FOLDER / source).exists(), (
                source
            )
    assert compose["services"]["serve-one"]["command"] == compose["services"]["serve-two"]["command"]
    one = tomllib.loads((FOLDER / "interlock.toml").read_text())
    other = tomllib.loads((FOLDER / "compose.toml").read_text())
    parse_configuration(one, "interlock.toml")
    parse_configuration(other, "compose.toml")
    assert other["engine"].pop("plaintext") is other["journal"].pop("plaintext") is True
    other["engine"]["url"] = one["engine"]["url"]
    assert json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
