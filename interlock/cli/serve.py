"""``interlock serve``: decisions over HTTP, for agents that are not in Python."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import click

from interlock.cli.output import existing
from interlock.errors import InterlockError, Misconfigured

_INSTALL = "interlock serve needs FastAPI, uvicorn and prometheus-client: pip install interlock[serve]"


@click.command()
@click.option(
    "--config",
    "configuration",
    type=click.Path(path_type=Path),
    default=Path("interlock.toml"),
    show_default=True,
    help="The operator's configuration. Its [journal] must be a store.",
)
@click.option(
    "--listen", default="127.0.0.1:8443", show_default=True, metavar="HOST:PORT", help="Port 0: any free one."
)
@click.option("--callers", type=click.Path(path_type=Path), help="Who may ask: tokens and certificates. Must be given.")
@click.option("--new-token", is_flag=True, help="Print a new token and its digest for the callers' file, and end.")
@click.option("--tls-cert", type=click.Path(path_type=Path), help="Certificate of this server, with its chain.")
@click.option("--tls-key", type=click.Path(path_type=Path), help="Its key.")
@click.option(
    "--client-ca", type=click.Path(path_type=Path), help="Authorities of clients: each must have a certificate."
)
@click.option("--plaintext", is_flag=True, help="Accept other machines without TLS, as behind a proxy that has it.")
@click.option(
    "--same-machine", is_flag=True, help="The agents' files are on this machine: follow links in paths of arguments."
)
@click.option("--max-body", type=click.IntRange(1024, 1 << 20), default=1 << 20, show_default=True, help="Bytes.")
@click.option("--concurrency", type=click.IntRange(1, 256), default=8, show_default=True, help="Requests at once.")
@click.option("--queue", type=click.IntRange(0, 10_000), default=64, show_default=True, help="Requests that wait.")
@click.option("--per-caller", type=click.IntRange(1, 10_000), default=32, show_default=True, help="Of one caller.")
@click.option("--deadline", type=click.FloatRange(0.1, 600), default=10.0, show_default=True, help="Seconds a request.")
@click.option(
    "--conversations",
    type=click.IntRange(1),
    default=10_000,
    show_default=True,
    help="Of one namespace, active in the last 24 hours.",
)
@click.option("--grace", type=click.IntRange(1, 600), default=30, show_default=True, help="Seconds to end requests.")
def serve(configuration: Path, listen: str, callers: Path | None, new_token: bool, **options: Any) -> None:
    """Decide tool calls over HTTP. Several processes may share one PostgreSQL.

    SIGTERM and SIGINT end it when the requests under way are answered; SIGHUP reads the configuration again.
    """
    try:
        from interlock.serve.app import application
        from interlock.serve.callers import Callers
        from interlock.serve.callers import new_token as made
        from interlock.serve.desk import Desk
        from interlock.serve.files import FarFiles
        from interlock.serve.meters import Meters
        from interlock.serve.server import Listening, server
        from interlock.serve.work import Limits
    except ImportError as error:
        raise ImportError(f"{_INSTALL} ({error.name} is missing)") from None
    if new_token:
        token = made()
        click.echo(json.dumps({"token": token.token, "digest": token.digest}, indent=2))
        return
    if callers is None:
        raise Misconfigured(
            "nobody may ask: name the file of callers with --callers; --new-token makes a token for it."
            " There is no service without authentication, on loopback neither"
        )
    from interlock.assembly import Interlock, LocalFiles
    from interlock.ports import Store

    host, port = _address(listen)
    listening = Listening(
        host,
        port,
        options["tls_cert"],
        options["tls_key"],
        options["client_ca"],
        options["plaintext"],
        options["grace"],
    )
    listening.check()
    known = Callers(callers)
    files = LocalFiles() if options["same_machine"] else FarFiles()
    lock = Interlock.load(existing(configuration), files=files)
    try:
        limits = Limits(
            options["max_body"],
            options["concurrency"],
            options["queue"],
            options["per_caller"],
            options["deadline"],
            options["conversations"],
        )
        desk = Desk(lock, Meters(), conversations=limits.conversations)
        running = server(application(desk, known, limits), listening)
        running.announce = _announce
        _reload_on_hangup(lock)
        running.run()
    except SystemExit:
        raise Misconfigured(f"can't listen on {listen}; the line above says why") from None
    finally:
        if isinstance(lock.journal, Store):
            lock.journal.close()


def _address(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65535:
        raise Misconfigured(f"--listen {listen!r}: write HOST:PORT, such as 127.0.0.1:8443")
    return host.strip("[]"), int(port)


def _announce(host: str, port: int) -> None:
    """The one line on standard output: where it listens, now that it does."""
    click.echo(json.dumps({"listening": f"{host}:{port}"}))


def _reload_on_hangup(lock: Any) -> None:
    if not hasattr(signal, "SIGHUP"):
        return
    from interlock.serve.log import log

    def again(_number: int, _frame: object) -> None:
        try:
            log().warning("reloaded", revision=lock.reload())
        except InterlockError as error:
            log().error("not reloaded, what was in force stays in force", problem=str(error))

    signal.signal(signal.SIGHUP, again)
