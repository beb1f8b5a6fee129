"""Where a PostgreSQL database is: what libpq understands, made safe, and shown without what is secret in it (T4)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from interlock.errors import Misconfigured

LOCAL_HOSTS: Final = ("", "localhost", "127.0.0.1", "::1")
# Weaker than an encrypted connection to a server that was looked at.
OPEN_MODES: Final = ("disable", "allow", "prefer")
_NO_DSN: Final = (
    "the dsn is none that libpq understands; in a postgresql:// address write @ : / ? # % and blanks of a password as"
    " %40 %3A %2F %3F %23 %25 %20, and after password= put it between single quotes"
)
# A server that is gone without a word must not keep a caller for hours.
_WAITING: Final[Mapping[str, Any]] = {
    "connect_timeout": 10,
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}


def shown(conninfo: str) -> str:
    """Where a database is, without the password."""
    known = conninfo_to_dict(conninfo)
    return f"postgresql {known.get('dbname') or ''}@{known.get('host') or known.get('hostaddr') or 'local'}"


def secured(dsn: str, plaintext: bool = False) -> str:
    """The dsn with TLS for other machines: encrypted, with the server's certificate and its name checked.

    Raises:
        Misconfigured: it is no dsn, or asks for less than an encrypted connection to another machine.
    """
    try:
        known = conninfo_to_dict(dsn)
    except psycopg.Error:
        raise Misconfigured(_NO_DSN) from None  # libpq repeats what it can't read, and that is often the password
    _whole(known)
    places = [name for name in _named(known) if not is_local(name)]
    service = known.get("service") or os.environ.get("PGSERVICE", "")
    # A service names its host in a file that libpq reads later: another machine until it turns out to be a socket.
    remote = places or ([f"service {service}"] if service else [])
    extra = {name: value for name, value in _WAITING.items() if not known.get(name)}
    if "," in f"{known.get('host')}{known.get('hostaddr')}" and not known.get("target_session_attrs"):
        extra["target_session_attrs"] = "read-write"  # a standby tells what was true some time ago
    mode = known.get("sslmode") or os.environ.get("PGSSLMODE", "")
    if remote and not plaintext:
        if mode in OPEN_MODES:
            raise Misconfigured(
                f"sslmode={mode} may send everything to {remote[0]} in the clear; leave it out for verify-full,"
                " or accept that with plaintext = true"
            )
        if not mode:
            extra["sslmode"] = "verify-full"
            if not known.get("sslrootcert") and "PGSSLROOTCERT" not in os.environ and not _own_roots():
                extra["sslrootcert"] = "system"
    return make_conninfo(dsn, **extra)


def _named(known: dict[str, Any]) -> list[str]:
    """Every machine that a dsn or the environment may lead to, by name and by address: libpq goes to the address."""
    hosts = str(known.get("host") or os.environ.get("PGHOST", "")).split(",")
    addresses = str(known.get("hostaddr") or os.environ.get("PGHOSTADDR", "")).split(",")
    return [one.strip() for one in (*hosts, *addresses) if one.strip()]


def is_local(place: str) -> bool:
    return place.startswith(("/", "@")) or place in LOCAL_HOSTS


def _whole(known: dict[str, Any]) -> None:
    """A password with an unescaped ``@`` or ``/`` goes on where the host or the database should stand, and from there
    into every message. Raises Misconfigured, which repeats nothing."""
    hosts = str(known.get("host") or "").split(",")
    ports = str(known.get("port") or "").split(",")
    odd = any("@" in one.lstrip("@") or ("/" in one.lstrip("/") and not is_local(one)) for one in hosts)
    if (
        odd
        or not all(one.strip() == "" or one.strip().isdecimal() for one in ports)
        or "@" in str(known.get("dbname") or "")
    ):
        raise Misconfigured(_NO_DSN)


def _own_roots() -> bool:
    """Does libpq find certificates of the operator's own, or is it too old to use those of the system?"""
    return psycopg.pq.version() < 160_000 or (Path.home() / ".postgresql" / "root.crt").exists()
