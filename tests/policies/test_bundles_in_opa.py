"""Proves that bundles are OPA's too: OPA loads, verifies, polls and answers them as the embedded engine does.

The program is the real one. What OPA signs holds here, what is signed here holds there, and what is refused here is
refused there; hashes of data agree over many texts; a server that polls takes what was pushed, and keeps what it had
when somebody tampers with what it polls.

Mutations that it is shown to catch (scripts/mutate.py): keys of data hashed in another order, U+2028 left as it is in a
hash, the revision left out of the manifest, no `scope` in the token.
"""

from __future__ import annotations

import json
import random
import subprocess
import tarfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest

from interlock import Call, Conversation, Interlock, MemoryJournal
from interlock.model.canonical import pack
from interlock.model.settings import parse_settings
from interlock.policy.archives import files_of, written
from interlock.policy.bundle import assemble
from interlock.policy.bundle_files import DATA, MANIFEST, build, open_bundle
from interlock.policy.embedded import EmbeddedEngine
from interlock.policy.publishing import Access, put_address
from interlock.policy.samples import SAMPLES
from interlock.policy.signatures import SIGNATURES, BadSignature, check_signature, file_hash, signed
from interlock.policy.sources import Source, shipped_sources
from tests.ids import stable
from tests.policies.bundling import HOURS, OFFICE, SCHEMA, keys, own_bundle, pair, plain, plain_files, shelf
from tests.servers import opa

pytestmark = pytest.mark.opa

ENTRY = "/v1/data/interlock/entrypoint/answers?provenance=true&strict-builtin-errors=true"


def asked(program: Path, *words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(program), *words], capture_output=True, text=True, check=False, timeout=60, cwd=folder)


def sealed(algorithm: Any = "RS256", **more: str) -> bytes:
    files = plain_files()
    return written({**files, SIGNATURES: signed(files, keys(algorithm, **more)[0])})


# --- signatures -------------------------------------------------------------------------------------------------------


def accepts(program: Path, folder: Path, data: bytes, algorithm: str = "RS256", scope: str = "") -> bool:
    """Does OPA take a bundle, which it must verify?"""
    (folder / "b.tar.gz").write_bytes(data)
    (folder / "public").write_bytes(keys(algorithm)[1].secret)
    words = ["--verification-key", "public", "--signing-alg", algorithm, *(["--scope", scope] if scope else [])]
    done = asked(program, "build", "-b", "b.tar.gz", "-o", "o.tar.gz", *words, folder=folder)
    return done.returncode == 0


@pytest.mark.parametrize("algorithm", ["RS256", "PS384", "ES256", "ES512", "HS256"])
def test_what_is_signed_here_holds_there(opa_binary: Path, tmp_path: Path, algorithm: Any) -> None:
    data = sealed(algorithm, scope="read", key_id="default")
    assert accepts(opa_binary, tmp_path, data, algorithm, "read")
    assert not accepts(opa_binary, tmp_path, data, algorithm, "write")


def _with(**files: bytes) -> Callable[[], bytes]:
    return lambda: written({**files_of(sealed(), "it"), **files})


REFUSED: dict[str, Callable[[], bytes]] = {
    "unsigned": plain,
    "a file added": _with(**{"x.rego": b"package controls.x\n"}),
    "a file changed": _with(**{"lib/hours/001.rego": HOURS.encode() + b"\n"}),
    "the manifest edited": _with(**{MANIFEST: b'{"revision":"x","roots":[""],"rego_version":1}'}),
    "another algorithm": lambda: sealed("RS512"),
    "another key": lambda: written({**plain_files(), SIGNATURES: signed(plain_files(), keys(kind="RS-other")[0])}),
}


@pytest.mark.parametrize("what", REFUSED, ids=stable)
def test_what_is_refused_here_is_refused_there(opa_binary: Path, tmp_path: Path, what: str) -> None:
    data = REFUSED[what]()
    with pytest.raises(BadSignature):
        check_signature(files_of(data, "it"), keys()[1], "it")
    assert not accepts(opa_binary, tmp_path, data)


@pytest.mark.parametrize("algorithm", ["RS256", "ES256"])
def test_what_opa_signs_holds_here(opa_binary: Path, tmp_path: Path, algorithm: Any) -> None:
    (tmp_path / "private").write_bytes(keys(algorithm)[0].secret)
    (tmp_path / "b.tar.gz").write_bytes(plain())
    words = ("--signing-key", "private", "--signing-alg", algorithm)
    done = asked(opa_binary, "sign", "-b", "b.tar.gz", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    files = {**plain_files(), SIGNATURES: (tmp_path / SIGNATURES).read_bytes()}
    check_signature(files, keys(algorithm)[1], "it")
    (tmp_path / "s.tar.gz").write_bytes(written(files))
    assert open_bundle(tmp_path / "s.tar.gz", keys(algorithm)[1]).bundle.revision == own_bundle().revision
    # `opa build` writes an archive of its own, with other names; it loads too, where no schema of settings is lost.
    shipped = assemble(shipped_sources(), parse_settings({"trifecta": "ask"}))
    (tmp_path / "p.tar.gz").write_bytes(build(shipped))
    done = asked(opa_binary, "build", "-b", "p.tar.gz", "-o", "o.tar.gz", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert open_bundle(tmp_path / "o.tar.gz", keys(algorithm)[1]).bundle.revision == shipped.revision
    with pytest.raises(BadSignature):
        open_bundle(tmp_path / "o.tar.gz", keys(algorithm, kind=f"{algorithm}-other")[1])


TEXTS = [
    "",
    "a",
    "é",
    "\u2028",
    "\u2029",
    "<&>",
    '"',
    "\\",
    "/",
    "\x08",
    "\x0c",
    "\x1b",
    "\x7f",
    "\x80",
    "\ufeff",
    "😀",
    "z\u0000"[:1],
    "\ue000",
    "\U00010000",
]
NUMBERS = ["0", "-0", "1", "1.0", "1e5", "1E+5", "0.1", "9007199254740992", "1.50", "-1.25e-7"]


def _drawn(chance: random.Random, depth: int = 0) -> str:
    """JSON text, written in one of many ways."""
    kind = chance.randrange(7 if depth < 3 else 4)
    space = chance.choice(["", " ", "\n\t"])
    if kind == 0:
        return chance.choice(["true", "false", "null"])
    if kind == 1:
        return chance.choice(NUMBERS)
    if kind <= 3:
        return json.dumps("".join(chance.choices(TEXTS, k=3)), ensure_ascii=chance.random() < 0.5)
    inner = [_drawn(chance, depth + 1) for _ in range(chance.randrange(4))]
    if kind == 4:
        return f"[{space}{f'{space},'.join(inner)}{space}]"
    names = dict.fromkeys("".join(chance.choices(TEXTS, k=2)) for _ in inner)
    pairs = [f"{json.dumps(name)}:{space}{one}" for name, one in zip(names, inner, strict=False)]
    return f"{{{space}{f'{space},'.join(pairs)}}}"


def test_hashes_agree(opa_binary: Path, tmp_path: Path) -> None:
    """One call of `opa sign` over some hundreds of data files."""
    chance = random.Random(8)
    files = {f"d{number}/data.json": f'{{"x": {_drawn(chance)}}}'.encode() for number in range(300)}
    files |= {
        "a.rego": b"package a\n",
        "other.json": b" {}",
        MANIFEST: b'{"roots": ["z", "a"],  "revision": "\\u2028<"}',
    }
    (tmp_path / "b.tar.gz").write_bytes(written(files))
    (tmp_path / "secret").write_bytes(pair("HS256")[0])
    words = ("--signing-key", "secret", "--signing-alg", "HS256")
    done = asked(opa_binary, "sign", "-b", "b.tar.gz", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    token = json.loads((tmp_path / SIGNATURES).read_bytes())["signatures"][0]
    listed = {one["name"]: one["hash"] for one in jwt.decode(token, pair("HS256")[0], algorithms=["HS256"])["files"]}
    assert listed == {name: file_hash(name, data, "SHA-256") for name, data in files.items()}


def test_a_folder_that_opa_signed(opa_binary: Path, tmp_path: Path) -> None:
    (tmp_path / "private").write_bytes(keys()[0].secret)
    (tmp_path / "b.tar.gz").write_bytes(plain())
    folder = tmp_path / "d"
    with tarfile.open(tmp_path / "b.tar.gz") as archive:
        archive.extractall(folder, filter="data")
    done = asked(opa_binary, "sign", "-b", ".", "--signing-key", "../private", folder=folder)
    assert done.returncode == 0, done.stderr
    files = {one.relative_to(folder).as_posix(): one.read_bytes() for one in folder.rglob("*") if one.is_file()}
    check_signature(files, keys()[1], "it")


# --- a server ---------------------------------------------------------------------------------------------------------


def answer(url: str, document: object) -> dict[str, Any]:
    with httpx.Client(trust_env=False, timeout=10) as client:
        given = client.post(url + ENTRY, json={"input": document})
    assert given.status_code == 200, given.text
    told: dict[str, Any] = given.json()
    return told


def documents() -> list[Any]:
    made = [dict(one) for one in SAMPLES.values()]
    made += [{**one, key: None} for one in made[:2] for key in one]
    return [*made, {}, {"tool": {"egress": "blind"}}]


def test_a_server_answers_like_the_embedded_engine(opa_binary: Path, tmp_path: Path) -> None:
    """T13 in small: `opa run -s -b`, with the signature verified."""
    (tmp_path / "b.tar.gz").write_bytes(sealed(key_id="default"))
    (tmp_path / "public").write_bytes(keys()[1].secret)
    embedded = EmbeddedEngine(own_bundle())
    with opa("-b", str(tmp_path / "b.tar.gz"), "--verification-key", str(tmp_path / "public")) as server:
        for document in documents():
            told = answer(server.url, document)
            assert told["result"] == json.loads(embedded.evaluate(pack(document)))
            (loaded,) = told["provenance"]["bundles"].values()
            assert loaded["revision"] == own_bundle().revision
    assert set(told["result"]) >= {"trifecta", "office"}


def test_one_bundle_for_the_server_and_for_the_agent(opa_binary: Path, tmp_path: Path) -> None:
    """The server must have the very bundle that the configuration names, and the embedded engine stands in for it."""
    (tmp_path / "b.tar.gz").write_bytes(plain())
    with opa("-b", str(tmp_path / "b.tar.gz")) as server:
        file = tmp_path / "interlock.toml"
        file.write_text(
            f'version = 1\n[bundle]\nfile = "b.tar.gz"\n[engine]\nkind = "opa"\nurl = "{server.url}"\n'
            'revision = "same"\nfallback = "embedded"\ndeadline = 10.0\n'
            '[tools.send]\nreturns = []\negress = "chosen"\ndestinations = {to = "email"}\n'
        )
        guard = Interlock.load(file, journal=MemoryJournal()).guard(Conversation.new())
        asked_call = Call("send", {"to": "bob@x.example"})
        by_server = guard.preview(asked_call)
        server.kill()
        by_itself = guard.preview(Call("send", {"to": "eve@x.example"}))
    assert (by_server.code, by_itself.code) == ("office", "office")
    assert by_server.revision == by_itself.revision == own_bundle().revision
    assert by_server.engine != by_itself.engine


def polling(folder: Path, url: str) -> Path:
    """A configuration of OPA that asks for the bundle every second, and verifies it."""
    file = folder / "opa.json"
    host, _, path = url.rpartition("/")
    bundle = {
        "service": "shelf",
        "resource": path,
        "polling": {"min_delay_seconds": 1, "max_delay_seconds": 1},
        "signing": {"keyid": "k1", "scope": "read"},
    }
    key = {"key": keys()[1].secret.decode(), "algorithm": "RS256"}
    file.write_text(
        json.dumps({"services": {"shelf": {"url": host}}, "bundles": {"interlock": bundle}, "keys": {"k1": key}})
    )
    return file


def until(what: Callable[[], bool], seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


def test_a_server_takes_what_is_pushed(opa_binary: Path, tmp_path: Path) -> None:
    second = assemble(
        [*shipped_sources(), Source("o", OFFICE), Source("h", HOURS)],
        parse_settings({"controls": {"quiet": "none"}}),
        [Source("s", SCHEMA)],
    )
    files = files_of(build(second), "it")
    signer = keys(key_id="k1", scope="read")[0]
    newer = written({**files, SIGNATURES: signed(files, signer)})
    tampered = written(
        {**files, SIGNATURES: signed(files, signer), "lib/hours/001.rego": b"package lib.hours\n\nopen := true\n"}
    )
    with shelf() as held:
        put_address(sealed(key_id="k1", scope="read"), held.url(), Access())
        with opa("-c", str(polling(tmp_path, held.url()))) as server:
            document = SAMPLES["clean send"]

            def revision() -> str:
                told = answer(server.url, document)
                return told.get("provenance", {}).get("bundles", {}).get("interlock", {}).get("revision", "")

            until(lambda: revision() == own_bundle().revision)
            before = answer(server.url, document)["result"]
            assert before == json.loads(EmbeddedEngine(own_bundle()).evaluate(pack(document)))
            # Somebody who can write there, but has no key: OPA keeps what it has.
            held.held["/bundle.tar.gz"] = tampered
            asked_before = len(held.asked)
            until(lambda: len(held.asked) >= asked_before + 2)
            assert revision() == own_bundle().revision
            assert put_address(newer, held.url(), Access())
            until(lambda: revision() == second.revision)
            assert answer(server.url, document)["result"] == json.loads(EmbeddedEngine(second).evaluate(pack(document)))
            # And nothing is fetched again that did not change.
            until(lambda: any(one[2].get("If-None-Match") for one in held.asked if one[0] == "GET"))


def test_another_bundle_can_not_add_controls(opa_binary: Path, tmp_path: Path) -> None:
    """All four roots are taken, also where nothing stands below them."""
    (tmp_path / "b.tar.gz").write_bytes(build(assemble(shipped_sources(), parse_settings({}))))
    for root in ("controls", "lib", "settings", "interlock"):
        other = {
            MANIFEST: json.dumps({"revision": "x", "roots": [root]}).encode(),
            DATA: json.dumps({root: {"x": 1}}).encode(),
        }
        (tmp_path / "x.tar.gz").write_bytes(written(other))
        done = asked(opa_binary, "eval", "-b", "b.tar.gz", "-b", "x.tar.gz", "data.controls", folder=tmp_path)
        assert done.returncode != 0
        assert "overlapping roots" in done.stdout + done.stderr
