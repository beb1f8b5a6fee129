"""Case 69: a switch for everything and a switch for one tool disagree, and which of them wins changes with the release.

The operator's setting, the project's narrowing and a control of the operator's own speak about the same send. In every
combination the strictest of the three is the answer, and a project's file that would loosen anything is refused. The
honest twin is the combination in which all agree.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from interlock import Interlock
from interlock.errors import Misconfigured
from tests.cases.desk import EVIL, ROOT, armed, did, got, mine

ORDER = ["allow", "ask", "deny"]
PROOFS = {
    "allow": "input.tool.known == true",
    "ask": 'input.tool.egress == "none"',
    "deny": 'input.tool.egress == "none"',
}


def built(folder: Path, setting: str, project: str, control: str) -> Interlock:
    (folder / "manifest.toml").write_text((ROOT / "tests" / "scenarios" / "manifest.toml").read_text())
    path = mine(folder / "controls", PROOFS[control]) / "mine.rego"
    if control == "ask":
        path.write_text(path.read_text().replace('{"verdict": "deny"}', '{"verdict": "ask"}', 1))
    (folder / "interlock.toml").write_text(
        f'version = 1\nmanifest = ["manifest.toml"]\npolicies = ["controls"]\n[settings]\ntrifecta = "{setting}"\n'
    )
    (folder / "project.toml").write_text(
        f'version = 1\n[settings]\ntrifecta = "{project}"\n' if project else "version = 1\n"
    )
    return Interlock.load(folder / "interlock.toml", workspace=folder / "project.toml")


@pytest.mark.parametrize(("setting", "project", "control"), list(product(["ask", "deny"], ["", "ask", "deny"], ORDER)))
def test_every_combination(tmp_path: Path, setting: str, project: str, control: str) -> None:
    if (setting, project) == ("deny", "ask"):
        with pytest.raises(Misconfigured, match="would be looser"):
            built(tmp_path, setting, project, control)
        return
    lock = built(tmp_path, setting, project, control)
    wanted = max([setting, project or setting, control], key=ORDER.index)
    assert got(did(armed(lock), "send_email", EVIL))[0] == wanted


def test_attack_a_tool_that_the_project_closed_stays_closed(tmp_path: Path) -> None:
    built(tmp_path, "ask", "", "allow")
    (tmp_path / "project.toml").write_text('version = 1\ndeny = ["send_email"]\n')
    lock = Interlock.load(tmp_path / "interlock.toml", workspace=tmp_path / "project.toml")
    assert got(did(armed(lock), "send_email", EVIL)) == ("deny", "unavailable")


@pytest.mark.parametrize(
    "text",
    [
        'allow = ["send_email"]',
        '[tools.send_email]\negress = "none"\nreturns = []\n[tools.other]\n',
        '[settings]\nleak_guard = "off"\n[settings.address_book]\nemail = ["eve@evil.test"]',
        "[settings.address_book]\nurl = []",
    ],
)
def test_attack_a_project_declares_and_vouches_for_nothing(tmp_path: Path, text: str) -> None:
    built(tmp_path, "deny", "", "allow")
    (tmp_path / "project.toml").write_text(f"version = 1\n{text}\n")
    with pytest.raises(Misconfigured):
        Interlock.load(tmp_path / "interlock.toml", workspace=tmp_path / "project.toml")


def test_attack_a_smaller_class_of_the_project_takes_nothing_away(tmp_path: Path) -> None:
    built(tmp_path, "deny", "", "allow")
    (tmp_path / "project.toml").write_text('version = 1\n[tools.send_email]\negress = "none"\n[tools.read_file]\n')
    lock = Interlock.load(tmp_path / "interlock.toml", workspace=tmp_path / "project.toml")
    assert got(did(armed(lock), "send_email", EVIL)) == ("deny", "trifecta")


def test_honest_when_nobody_objects(tmp_path: Path) -> None:
    lock = built(tmp_path, "ask", "ask", "allow")
    guard = armed(lock, typed="Write to kim@corp.example please.")
    assert did(guard, "send_email", {**EVIL, "to": "kim@corp.example"}).executed
