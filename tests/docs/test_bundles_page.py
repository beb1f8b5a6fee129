"""Proves that the guide to bundles holds: its commands print what it shows, and its OPA server takes the bundle.

Commands of `opa` run where there is one. Mutation that it is shown to catch: any line of output changed.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from interlock.cli import cli
from tests.docs.test_code_blocks import ROOT, blocks_of, lay_out
from tests.policies.bundling import pair, shelf
from tests.policies.test_bundles_in_opa import answer, until
from tests.servers import opa, opa_program

PAGE = ROOT / "docs" / "bundles.md"


def masked(text: str) -> list[str]:
    """Pieces that stand in this order; what differs from run to run, and what the page leaves out, is between them."""
    return [piece.strip() for piece in re.split(r"…|sha256:\w+", text) if piece.strip()]


def follow(program: Path | None) -> int:
    """Run the page's commands in the current folder; those of OPA only if there is one."""
    ran = 0
    for block in blocks_of(PAGE):
        for command, _, said in (part.partition("\n") for part in block.body.split("$ ")[1:]):
            if block.language != "console":
                continue
            words = shlex.split(command)
            if words[0] == "interlock":
                done = CliRunner().invoke(cli, words[1:])
                assert done.exit_code == 0, done.output
                printed = done.output
                for piece in masked(said):
                    assert piece in printed, f"{command} printed {done.output}"
                    printed = printed.partition(piece)[2]
                assert bool(said) == bool(done.output)
                ran += 1
            elif words[0] == "opa":
                if program is not None:
                    subprocess.run([program, *words[1:]], check=True, timeout=60)
            elif words[0] == "openssl" and shutil.which("openssl") is None:
                Path("bundle.key").write_bytes(pair("RS")[0])
                Path("bundle.pem").write_bytes(pair("RS")[1])
            else:
                assert words[0] in ("mkdir", "openssl")
                subprocess.run(words, check=True, timeout=60, capture_output=True)
    return ran


def test_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(PAGE, tmp_path)
    monkeypatch.chdir(tmp_path)
    assert follow(None) == 8


@pytest.mark.opa
def test_with_opa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its commands, and its configuration of a server, with address and key filled in and less patience."""
    program = opa_program()
    lay_out(PAGE, tmp_path)
    monkeypatch.chdir(tmp_path)
    follow(program)
    assert Path("checked.tar.gz").is_file()
    with shelf() as held:
        held.held["/signed.tar.gz"] = Path("www/signed.tar.gz").read_bytes()
        text = Path("opa.json").read_text().replace("http://127.0.0.1:8000", held.url(""))
        configuration = json.loads(text)
        configuration["keys"]["office"]["key"] = Path("bundle.pem").read_text()
        configuration["bundles"]["interlock"]["polling"] = {"min_delay_seconds": 1, "max_delay_seconds": 1}
        Path("filled.json").write_text(json.dumps(configuration))
        told = json.loads(CliRunner().invoke(cli, ["bundle", "inspect", "signed.tar.gz", "--json"]).stdout)
        with opa("--config-file", "filled.json") as server:
            until(lambda: "result" in answer(server.url, {}))
            given = answer(server.url, {})
            assert given["provenance"]["bundles"]["interlock"]["revision"] == told["revision"]
            assert set(given["result"]) == {one["code"] for one in told["controls"]}
