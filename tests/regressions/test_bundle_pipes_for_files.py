"""A pipe in the place of a file made whoever opened it wait for ever.

A workspace that named a pipe as its archive of controls kept the interlock from starting. The token of an OPA server is
read again when it changes, in the one thread that speaks to all servers: a pipe in its place stopped that thread for
good, so every later question to any server ran into its deadline, also after the file was put right. And a key that is
``/dev/zero`` was read until the memory was full.
Mutations that this file catches: opened without a look at what it is; a key read without a bound.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("opa_client")

from interlock.errors import EngineUnavailable, InterlockError, Misconfigured
from interlock.model.canonical import pack
from interlock.policy.archives import read_archive
from interlock.policy.opa import Limits
from interlock.policy.opa_client import OpaServer
from interlock.policy.samples import SAMPLES
from interlock.policy.signatures import read_key
from interlock.policy.sources import read_folder
from tests.opa_worlds import StandIn, engine_for

DOCUMENT = pack(SAMPLES["quiet tool"])


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
@pytest.mark.parametrize("read", [read_folder, read_archive])
def test_a_pipe_is_no_archive(read: Callable[[Path], object], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "rules.tar")
    with pytest.raises(InterlockError, match=r"rules\.tar"):
        read(tmp_path / "rules.tar")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names here")
def test_a_pipe_is_no_token(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first")
    with StandIn() as server, engine_for(server.url(), token_file=token, limits=Limits(2.0)) as engine:
        engine.evaluate(DOCUMENT)
        token.unlink()
        os.mkfifo(token)
        with pytest.raises(EngineUnavailable, match="token") as refused:
            engine.evaluate(DOCUMENT)
        assert refused.value.kind == "token"
        with pytest.raises(Misconfigured, match="token_file"):
            OpaServer(server.url(), token_file=token)
        token.unlink()
        token.write_text("second")
        engine.evaluate(DOCUMENT)


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no endless file here")
def test_a_key_is_bounded() -> None:
    with pytest.raises(Misconfigured, match="no key"):
        read_key(Path("/dev/zero"))
