"""Proves that a bundle is one thing to everybody: same bytes, same revision, one reading, and nothing foreign in it.

The revision is that of the embedded engine, wherever the files stand (T3); what is read is what was written; whatever
readers of archives could understand differently is refused, and so is whatever would soften what Interlock ships.

Mutations that it is shown to catch (scripts/mutate.py): paths in the revision, the check for a name that stands twice,
for what stands behind the end, for links; the check of a bundle's revision; a shipped control that may be missing.
"""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import tarfile
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import Call, Conversation, Interlock
from interlock.assembly import bundled, read_parts
from interlock.errors import Misconfigured, PolicyError, SettingsError
from interlock.model.canonical import pack
from interlock.model.settings import parse_settings
from interlock.policy.archives import files_of, written
from interlock.policy.bundle import assemble
from interlock.policy.bundle_files import DATA, MANIFEST, ROOTS, build, bundle_files, contents, open_bundle
from interlock.policy.signatures import SIGNATURES, BadSignature, signed
from interlock.policy.sources import MAX_ARCHIVE_BYTES, Source, shipped_sources
from tests.ids import stable
from tests.policies.bundling import HOURS, OFFICE, SCHEMA, keys, own_bundle, plain, plain_files, tar

# --- written and read -------------------------------------------------------------------------------------------------

NAMES = st.from_regex(r"[.a-z_][a-z_.]{0,8}[a-z](/[a-z_]{1,9}\.rego){0,2}", fullmatch=True)


@given(st.dictionaries(NAMES, st.binary(max_size=2000), max_size=6))
def test_what_is_written_is_read(files: dict[str, bytes]) -> None:
    data = written(files)
    assert files_of(data, "it") == files
    assert written(dict(reversed(files.items()))) == data
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:  # and others read the same
        assert {one.name: archive.extractfile(one).read() for one in archive} == files  # type: ignore[union-attr]


def test_large_files_are_read_by_others_too() -> None:
    files = {"a.rego": random.Random(1).randbytes(200_000), "b.rego": b""}
    assert files_of(written(files), "it") == files
    assert len(gzip.decompress(written(files))) > 200_000


@pytest.mark.parametrize(
    "name", ["a" * 101, "../a.rego", "/etc//a", "a/./b", "a\\b", "a\nb", "", "\x1b[2J"], ids=stable
)
def test_names_that_are_not_written(name: str) -> None:
    with pytest.raises(PolicyError):
        written({name: b""})


# --- one reading ------------------------------------------------------------------------------------------------------


def _info(name: str, kind: bytes, **more: Any) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type = kind
    for key, value in more.items():
        setattr(info, key, value)
    return info


def _edited(plain_tar: bytes, place: int, data: bytes) -> bytes:
    """A tar with bytes of its first header exchanged and its checksum made right again."""
    header = bytearray(plain_tar[:512])
    header[place : place + len(data)] = data
    header[148:156] = b" " * 8
    header[148:156] = f"{sum(header):06o}\0 ".encode()
    return bytes(header) + plain_tar[512:]


ONE = tar(("a.rego", b"x"))
LONG = "d/" * 60 + "a.rego"
HOSTILE: dict[str, bytes] = {
    "a file that stands twice": tar(("a.rego", b"x"), ("a.rego", b"y")),
    "twice, with a slash": tar(("a.rego", b"x"), ("/a.rego", b"y")),
    "a symbolic link": tar(_info("a.rego", tarfile.SYMTYPE, linkname="/etc/passwd")),
    "a hard link": tar(("b", b"x"), _info("a.rego", tarfile.LNKTYPE, linkname="b")),
    "a pipe": tar(_info("a.rego", tarfile.FIFOTYPE)),
    "a device": tar(_info("a.rego", tarfile.CHRTYPE)),
    "a way out": tar(("../a.rego", b"x")),
    "a way out in the middle": tar(("a/../../b.rego", b"x")),
    "a dot": tar(("./a.rego", b"x")),
    "two slashes": tar(("//a.rego", b"x")),
    "a backslash": tar(("a\\..\\b.rego", b"x")),
    "a name that moves a cursor": tar(("a\x1b[2J.rego", b"x")),
    "an extended header": tar(
        _info("a.rego", tarfile.REGTYPE, pax_headers={"path": "b.rego"}), form=tarfile.PAX_FORMAT
    ),
    "a long name of GNU's": tar((LONG, b"x"), form=tarfile.GNU_FORMAT),
    "a global header": tar(_info("a.rego", tarfile.XGLTYPE)),
    "a sparse file": tar(_info("a.rego", tarfile.GNUTYPE_SPARSE)),
    "a file that is called a folder": tar(_info("a.rego/", tarfile.REGTYPE)),
    "an old file that is called a folder": tar(_info("a.rego/", tarfile.AREGTYPE)),
    "a prefix in GNU's dialect": _edited(_edited(ONE, 257, b"ustar  \0"), 345, b"b"),
    "star's dialect": _edited(ONE, 508, b"tar\0"),
    "no magic": _edited(ONE, 257, bytes(8)),
    "a size below zero": _edited(ONE, 124, b"\xff" * 12),
    "a size beyond the end": _edited(ONE, 124, b"00000777777\0"),
    "something in the padding": ONE[:512] + b"x" + b"y" * 511 + bytes(1024),
    "something behind the end": ONE + b"x" * 512,
    "an archive behind the end": ONE + tar(("b.rego", b"x")),
    "no end": ONE[:1024],
    "half an end": ONE[:1536],
    "a damaged header": ONE[:3] + b"x" + ONE[4:],
    "no tar": b"package controls.x\n",
    "not UTF-8": _edited(ONE, 0, b"\xff\xfe"),
}


@pytest.mark.parametrize("what", HOSTILE, ids=stable)
def test_what_readers_understand_differently_is_refused(what: str) -> None:
    with pytest.raises(PolicyError, match=r"^it: "):
        files_of(gzip.compress(HOSTILE[what]), "it")


def test_honest_archives_of_others_are_read() -> None:
    folder = _info("a", tarfile.DIRTYPE)
    made = tar(folder, ("a/b.rego", b"x"), ("/c.rego", b"y"), form=tarfile.GNU_FORMAT)
    assert files_of(gzip.compress(made), "it") == {"a/b.rego": b"x", "c.rego": b"y"}


WRAPPED: dict[str, Callable[[], bytes]] = {
    "two members": lambda: gzip.compress(ONE) + gzip.compress(ONE),
    "zeros behind": lambda: gzip.compress(ONE) + bytes(512),
    "not gzip": lambda: ONE,
    "bzip2": lambda: b"BZh9" + ONE,
    "a wrong checksum": lambda: gzip.compress(ONE)[:-8] + bytes(4) + gzip.compress(ONE)[-4:],
    "nothing": bytes,
}


@pytest.mark.parametrize("what", WRAPPED, ids=stable)
def test_what_is_around_the_archive(what: str) -> None:
    with pytest.raises(PolicyError, match=r"^it: "):
        files_of(WRAPPED[what](), "it")


def test_a_cut_at_any_place_is_refused() -> None:
    data = plain()
    for size in range(0, len(data), 331):
        with pytest.raises(PolicyError):
            files_of(data[:size], "it")


def test_bombs_do_not_unfold() -> None:
    import tracemalloc

    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join(packer.compress(bytes(1 << 20)) for _ in range(128)) + packer.flush()
    tracemalloc.start()
    try:
        with pytest.raises(PolicyError, match="more than"):
            files_of(bomb, "it")
        assert tracemalloc.get_traced_memory()[1] < 4 * MAX_ARCHIVE_BYTES
    finally:
        tracemalloc.stop()


def test_too_many_files_are_not_listed() -> None:
    header = ONE[:124] + b"00000000000\0" + ONE[136:512]
    empty = _edited(header, 0, b"")[:512]
    with pytest.raises(PolicyError, match="more than 1000 files"):
        files_of(gzip.compress(b"".join(_edited(empty, 0, b"%06d" % n) for n in range(2001))), "it")


# --- the same thing everywhere ----------------------------------------------------------------------------------------


def test_bytes_and_revision_do_not_depend_on_places() -> None:
    """T3: another folder, other names, another order, another current folder."""
    sources = [*shipped_sources(), Source("x/y.rego", HOURS), Source("z.rego", OFFICE)]
    random.Random(3).shuffle(sources)
    settings = parse_settings({"controls": {"quiet": "blind"}, "leak_guard": "ask"})
    again = assemble(sources, settings, [Source("elsewhere.json", SCHEMA)])
    assert again.revision == own_bundle().revision
    assert build(again) == plain()
    changed = [Source("z.rego", f"{OFFICE}\n") if one.text == OFFICE else one for one in sources]
    other = assemble(changed, settings, [Source("s", SCHEMA)])
    assert other.revision != again.revision


def test_what_stands_in_it() -> None:
    files = plain_files()
    own = {"controls/office/office.rego", "lib/hours/001.rego", "schemas/001/settings.schema.json"}
    assert set(files) == {MANIFEST, DATA} | own | {one.path for one in shipped_sources()}
    manifest = json.loads(files[MANIFEST])
    assert manifest == {"revision": own_bundle().revision, "roots": list(ROOTS), "rego_version": 1}
    assert json.loads(files[DATA])["settings"]["leak_guard"] == "ask"
    opened = contents(files, "it")
    assert opened.bundle.revision == own_bundle().revision
    assert set(opened.bundle.controls) == set(own_bundle().controls)
    assert {one.own for one in opened.bundle.controls.values()} == {True, False}


def test_what_a_workspace_brought_is_not_bundled() -> None:
    guest = Source("w/hours.rego", 'package controls.w\n\ndefault verdict := {"verdict": "ask"}\n', guest=True)
    with pytest.raises(PolicyError, match="workspace"):
        bundle_files(assemble([*shipped_sources(), guest], parse_settings({})))


def test_guests_have_a_revision_of_their_own() -> None:
    """What a workspace's control says is told otherwise, so the same text from the operator is another policy."""
    text = 'package controls.w\n\ndefault verdict := {"verdict": "ask"}\n'
    one, other = (
        assemble([*shipped_sources(), Source("w.rego", text, guest=guest)], parse_settings({})).revision
        for guest in (True, False)
    )
    assert one != other


# --- nothing foreign --------------------------------------------------------------------------------------------------

Change = Callable[[dict[str, bytes]], object]
TRIFECTA = "interlock/controls/trifecta/trifecta.rego"


def _manifest(**more: Any) -> Change:
    def change(files: dict[str, bytes]) -> None:
        files[MANIFEST] = pack({**json.loads(files[MANIFEST]), **more})

    return change


def _data(change: Callable[[dict[str, Any]], object]) -> Change:
    def changed(files: dict[str, bytes]) -> None:
        data = json.loads(files[DATA])
        change(data)
        files[DATA] = pack(data)

    return changed


def _added(name: str, data: bytes = b"{}") -> Change:
    return lambda files: files.update({name: data})


FOREIGN: dict[str, tuple[Change, str]] = {
    "no manifest": (lambda files: files.pop(MANIFEST), "has no .manifest"),
    "a root too few": (_manifest(roots=["controls", "interlock", "settings"]), "roots are"),
    "a root too many": (_manifest(roots=[*ROOTS, "mine"]), "roots are"),
    "roots that overlap": (_manifest(roots=[*ROOTS, "controls/office"]), "roots are"),
    "every root": (_manifest(roots=[""]), "roots are"),
    "a root that stands twice": (_manifest(roots=[*ROOTS, "lib"]), "roots are"),
    "roots that are no list": (_manifest(roots="controls"), "wrong type"),
    "roots that are no texts": (_manifest(roots=[1]), "are texts"),
    "Rego 0": (_manifest(rego_version=0), "version 0 of Rego"),
    "Rego true": (_manifest(rego_version=True), "wrong type"),
    "versions by file": (_manifest(file_rego_versions={"/controls/*": 0}), "must hold revision"),
    "compiled code": (_manifest(wasm=[]), "must hold revision"),
    "another revision": (_manifest(revision="sha256:" + "0" * 64), "not that of its contents"),
    "a revision that is no text": (_manifest(revision=1), "wrong type"),
    "a manifest that is no JSON": (lambda files: files.update({MANIFEST: b"{"}), "can't be read"),
    "a manifest that is no object": (lambda files: files.update({MANIFEST: b"[]"}), "not an object"),
    "a manifest with a key twice": (lambda files: files.update({MANIFEST: b'{"revision":"","revision":""}'}), "twice"),
    "a shipped control softened": (
        lambda files: files.update({TRIFECTA: files[TRIFECTA].replace(b'"deny"', b'"ask"', 1)}),
        "not as this release",
    ),
    "a shipped control missing": (lambda files: files.pop(TRIFECTA), "missing, or not as"),
    "a shipped control moved and softened": (
        lambda files: files.update({"x.rego": files.pop(TRIFECTA).replace(b'"deny"', b'"ask"', 1)}),
        "missing, or not as",
    ),
    "a file more in our name": (
        _added("interlock/controls/trifecta/more.rego", b"package interlock.controls.trifecta\n\nlifted if true\n"),
        "not yours to define",
    ),
    "a shipped control twice": (lambda files: files.update({"x.rego": files[TRIFECTA]}), "not yours to define"),
    "a package of nobody": (_added("x.rego", b"package system.authz\n\nallow := true\n"), "not yours to define"),
    "a control without a default": (_added("x.rego", b"package controls.x\n"), "no `default verdict`"),
    "a syntax error": (_added("x.rego", b"package controls.x\n\nverdict :="), "x.rego"),
    "bytes that are no text": (_added("x.rego", b"\xff"), "not UTF-8"),
    "a file too large": (_added("x.rego", b"#" * 300_000), "larger than"),
    "a test": (_added("x_test.rego", b"package controls.x_test\n"), "no place"),
    "data of a package": (_added("controls/office/data.json"), "no place"),
    "YAML data": (_added("data.yaml"), "no place"),
    "a patch": (_added("patch.json"), "no place"),
    "a plan": (_added("plan.json"), "no place"),
    "WebAssembly": (_added("policy.wasm"), "no place"),
    "a second manifest": (_added("x/.manifest"), "no place"),
    "a manifest in another form": (_added(".manifest.pb"), "no place"),
    "a second signature": (_added("x/.signatures.json"), "no place"),
    "no data": (lambda files: files.pop(DATA), "has no data.json"),
    "data beside the settings": (_data(lambda data: data.update(interlock={})), "all settings"),
    "a setting missing": (_data(lambda data: data["settings"].pop("trifecta")), "all settings"),
    "a setting too many": (_data(lambda data: data["settings"].update(x=1)), "all settings"),
    "a setting of another value": (_data(lambda data: data["settings"].update(trifecta="off")), "trifecta"),
    "a setting that was changed": (_data(lambda data: data["settings"].update(trifecta="ask")), "changed after"),
    "settings without their schema": (lambda files: files.pop("schemas/001/settings.schema.json"), "unknown setting"),
}


@pytest.mark.parametrize("what", FOREIGN, ids=stable)
def test_nothing_foreign_is_loaded(what: str) -> None:
    change, why = FOREIGN[what]
    files = plain_files()
    change(files)
    with pytest.raises((PolicyError, SettingsError), match=why):
        contents(files, "it")


def test_names_do_not_matter() -> None:
    """`opa build` moves files: what counts is what they say."""
    files = plain_files()
    moved = {f"b.tar.gz/{name}" if name.endswith(".rego") else name: data for name, data in files.items()}
    assert contents(moved, "it").bundle.revision == own_bundle().revision


# --- in a configuration -----------------------------------------------------------------------------------------------

CONFIGURATION = (
    'version = 1\n{engine}\n[tools.send]\nreturns = []\negress = "chosen"\ndestinations = {{to = "email"}}\n'
)


def _configured(folder: Path, engine: str, data: bytes) -> Path:
    (folder / "b.tar.gz").write_bytes(data)
    (folder / "public.pem").write_bytes(keys()[1].secret)
    file = folder / "interlock.toml"
    file.write_text(CONFIGURATION.format(engine=engine))
    return file


BUNDLE = '[bundle]\nfile = "b.tar.gz"\n'
VERIFIED = BUNDLE + 'key_file = "public.pem"\n'


def _signed_archive() -> bytes:
    files = plain_files()
    return written({**files, SIGNATURES: signed(files, keys()[0])})


def test_the_embedded_engine_loads_it(tmp_path: Path) -> None:
    lock = Interlock.load(_configured(tmp_path, VERIFIED, _signed_archive()))
    assert lock.engine.revision == own_bundle().revision
    decision = lock.guard(Conversation.new()).preview(Call("send", {"to": "bob@x.example"}))
    assert decision.code == "office"
    # And the same from folders.
    rules = tmp_path / "rules"
    rules.mkdir()
    for name, text in {"office.rego": OFFICE, "hours.rego": HOURS, "settings.schema.json": SCHEMA}.items():
        (rules / name).write_text(text)
    file = tmp_path / "folders.toml"
    engine = 'policies = ["rules"]\n[settings]\nleak_guard = "ask"\n[settings.controls]\nquiet = "blind"\n'
    file.write_text(CONFIGURATION.format(engine=engine))
    assert Interlock.load(file).engine.revision == own_bundle().revision


def test_bundle_and_key_are_protected(tmp_path: Path) -> None:
    lock = Interlock.load(_configured(tmp_path, VERIFIED, _signed_archive()))
    for name in ("b.tar.gz", "public.pem"):
        assert str(tmp_path / name) in lock._active.rules.protected


REFUSED: dict[str, tuple[str, bool, str]] = {
    "unsigned, and a key is configured": (VERIFIED, False, "not signed"),
    "signed, and no key is configured": (BUNDLE, True, "no key to verify"),
    "policies beside a bundle": ('policies = ["rules"]\n' + BUNDLE, False, "leave policies and settings out"),
    "settings beside a bundle": ("[settings]\ntrifecta = 'ask'\n" + BUNDLE, False, "leave policies and settings out"),
    "a key without a bundle": ('[bundle]\nkey_file = "public.pem"\n', False, "bundle.file"),
    "how to verify, without a key": (BUNDLE + 'algorithm = "RS256"\n', False, "key_file is missing"),
    "a scope, without a key": (BUNDLE + 'scope = ""\n', False, "key_file is missing"),
    "a key that is not there": (VERIFIED.replace("public.pem", "nokey"), True, "can't be read"),
    "a bundle that is not there": (BUNDLE.replace("b.tar", "x.tar"), False, "can't be read"),
    "no algorithm": (VERIFIED + 'algorithm = "none"\n', True, "algorithm"),
    "an unknown word": (VERIFIED + "required = false\n", True, "required"),
    "another scope": (VERIFIED + 'scope = "read"\n', True, "scope"),
}


@pytest.mark.parametrize("what", REFUSED, ids=stable)
def test_configurations_that_are_refused(what: str, tmp_path: Path) -> None:
    engine, with_signature, why = REFUSED[what]
    file = _configured(tmp_path, engine, _signed_archive() if with_signature else plain())
    with pytest.raises(Misconfigured, match=why):
        Interlock.load(file)


def test_a_reload_takes_a_new_bundle_or_keeps_the_old_one(tmp_path: Path) -> None:
    lock = Interlock.load(_configured(tmp_path, BUNDLE, plain()))
    before = lock.engine.revision
    archive = tmp_path / "b.tar.gz"
    archive.write_bytes(plain()[:-1])
    with pytest.raises(PolicyError):
        lock.reload()
    assert lock.engine.revision == before
    archive.write_bytes(build(assemble(shipped_sources(), parse_settings({}))))
    assert lock.reload() != before


def test_a_workspace_makes_it_stricter_only(tmp_path: Path) -> None:
    file = _configured(tmp_path, BUNDLE, plain())
    narrowing = tmp_path / "w" / "project.toml"
    narrowing.parent.mkdir()
    (narrowing.parent / "w.rego").write_text('package controls.w\n\ndefault verdict := {"verdict": "ask"}\n')
    narrowing.write_text('version = 1\npolicies = ["."]\n[settings]\nleak_guard = "deny"\n')
    lock = Interlock.load(file, workspace=narrowing)
    assert "w" in lock.engine.controls
    assert lock.engine.revision != own_bundle().revision
    narrowing.write_text('version = 1\n[settings]\nleak_guard = "off"\n')
    with pytest.raises(Misconfigured, match="looser"):
        Interlock.load(file, workspace=narrowing)
    shutil.rmtree(narrowing.parent)


def test_controls_beside_a_bundle_are_not_passed_over(tmp_path: Path) -> None:
    """A scenario may add its own; they must be there, and not only the bundle's."""
    parts = read_parts(_configured(tmp_path, BUNDLE, plain()))
    (tmp_path / "more").mkdir()
    (tmp_path / "more/more.rego").write_text('package controls.more\n\ndefault verdict := {"verdict": "ask"}\n')
    _, found = bundled(replace(parts, policies=(tmp_path / "more",)))
    assert {"more", "office", "trifecta"} <= set(found.controls)
    _, stricter = bundled(replace(parts, settings={**parts.settings, "leak_guard": "deny"}))
    assert stricter.revision != own_bundle().revision


def test_open_bundle_names_the_file(tmp_path: Path) -> None:
    file = tmp_path / "b.tar.gz"
    file.write_bytes(plain())
    assert open_bundle(file).bundle.revision == own_bundle().revision
    with pytest.raises(BadSignature, match=r"b\.tar\.gz: not signed"):
        open_bundle(file, keys()[1])
    file.write_bytes(bytes(MAX_ARCHIVE_BYTES + 1))
    with pytest.raises(PolicyError, match="larger than"):
        open_bundle(file)
