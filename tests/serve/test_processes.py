"""Proves that what one process was asked another one knows, that a process may end or die at any moment, and that
nobody gets in without a certificate where one is asked for (T2, T8, T16).

Mutations that it is shown to catch: a service that starts without callers; a subject that is not looked at.
"""

from __future__ import annotations

import datetime
import json
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
from click.testing import CliRunner
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from interlock.cli import cli
from interlock.serve.callers import subject_of
from interlock.stores.sqlite import SqliteStore
from tests.serve.stage import ANA, BOB, CALLERS, FETCH, LEAK, LOOK, READ, TOOLS, Asked, Process, callers_file
from tests.servers import Server

JOURNAL = '[journal]\nkind = "postgres"\ndsn_from = "SERVE_DSN"\n'


@pytest.fixture(scope="module")
def folder(postgres_server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("service")
    (found / "interlock.toml").write_text(f"version = 1\n{JOURNAL}\n{TOOLS}")
    (found / "dsn").write_text(postgres_server.fresh())
    callers_file(found)
    return found


@pytest.fixture(scope="module")
def environment(folder: Path) -> dict[str, str]:
    return {"SERVE_DSN": (folder / "dsn").read_text()}


@pytest.fixture(scope="module")
def two(folder: Path, environment: dict[str, str]) -> Iterator[tuple[str, str]]:
    options = ("--callers", "callers.toml")
    with (
        Process(folder, *options, environment=environment) as one,
        Process(folder, *options, environment=environment) as other,
    ):
        yield one.url, other.url


@pytest.mark.postgres
def test_what_one_was_asked_the_other_knows(two: tuple[str, str]) -> None:
    one, other = Asked(two[0]), Asked(two[1])
    name = one.begin()
    assert other.propose(name, READ)[0]["run"] is True
    assert one.propose(name, LOOK)[0]["run"] is True
    (leak,) = other.propose(name, LEAK)  # nothing was reported yet: what is in flight counts everywhere
    assert (leak["verdict"], leak["code"]) == ("deny", "trifecta")
    assert one.propose(name, READ)[0]["repeated"] is True
    assert one.observe(name, READ)["for_model"] == "text"
    assert other.observe(name, READ)["repeated"] is True
    assert other.observe(name, LOOK)["withheld"] is False
    for asked in (one, other):
        assert asked.labels(name) == ["private:files", "untrusted:web"]
        assert asked.propose(name, LEAK)[0]["repeated"] is True
        assert asked.get(f"/v1/conversations/{name}")["calls"] == 3


@pytest.mark.postgres
def test_both_are_asked_the_same_at_once(two: tuple[str, str]) -> None:
    name = Asked(two[0]).begin()
    told: list[tuple[int, bool]] = []
    clients = [Asked(two[number % 2]) for number in range(6)]
    gate = threading.Barrier(len(clients))

    def ask(asked: Asked) -> None:
        gate.wait()
        (one,) = asked.propose(name, READ)
        told.append((one["number"], one["repeated"]))

    threads = [threading.Thread(target=ask, args=(one,)) for one in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == [(1, False)] + [(1, True)] * 5


@pytest.mark.postgres
def test_a_process_that_dies_and_one_that_ends(two: tuple[str, str], folder: Path, environment: dict[str, str]) -> None:
    other = Asked(two[1])
    with Process(folder, "--callers", "callers.toml", environment=environment) as dying:
        name = Asked(dying.url).begin()
        Asked(dying.url).propose(name, FETCH)
        dying.process.kill()
    assert other.get(f"/v1/conversations/{name}")["exposure"] == ["untrusted:web"]
    assert other.observe(name, FETCH)["withheld"] is False
    with Process(folder, "--callers", "callers.toml", environment=environment) as ending:
        name = Asked(ending.url).begin()
        asked = [Asked(ending.url) for _ in range(4)]
        for one in asked:
            one.get(f"/v1/conversations/{name}")  # connected
        answers: list[int] = []

        def ask(number: int) -> None:
            body = {"calls": [{**READ, "id": f"r{number}"}]}
            answers.append(asked[number].http.post(f"/v1/conversations/{name}/calls", json=body).status_code)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.002)
        ending.process.terminate()
        for thread in threads:
            thread.join()
        assert ending.process.wait(30) == 0
        log = ending.log()
    # Whoever was answered was allowed, and is on record: nothing was cut off in the middle.
    assert set(answers) == {200}
    assert other.get(f"/v1/conversations/{name}")["calls"] == 4
    assert "Traceback" not in log


def test_nobody_is_served_without_callers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "interlock.toml").write_text(f'version = 1\n[journal]\nkind = "sqlite"\npath = "a.db"\n{TOOLS}')
    missing = tmp_path / "nobody.toml"
    nobody = tmp_path / "empty.toml"
    nobody.write_text("version = 1\ncallers = []\n")
    weak = tmp_path / "weak.toml"
    weak.write_text(CALLERS.replace(ANA.digest, "hunter2"))
    for path in (nobody, weak):
        path.chmod(0o600)
    public = callers_file(tmp_path)
    public.chmod(0o666)
    good = tmp_path / "good.toml"
    good.write_text(CALLERS)
    good.chmod(0o600)
    for options, said in (
        ([], "There is no service without authentication"),
        (["--callers", missing], "can't be read"),
        (["--callers", nobody], "callers"),
        (["--callers", weak], "callers.0.token"),
        (["--callers", public], "others may write it"),
        (["--callers", good, "--listen", "0.0.0.0:0"], "tokens would go in the clear"),
        (["--callers", good, "--client-ca", good], "needs TLS"),
        (["--callers", good, "--listen", "nowhere"], "write HOST:PORT"),
        (["--callers", good], "interlock store migrate"),
    ):
        done = CliRunner().invoke(cli, ["serve", *map(str, options)])
        assert done.exit_code == 2, done.output
        assert said in done.stderr, done.stderr
        assert done.stdout == ""


# --- certificates -----------------------------------------------------------------------------------------------------


@dataclass
class Authority:
    """Makes certificates for one test."""

    folder: Path

    def __post_init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        self.certificate = self._made(name, self.key.public_key(), name, authority=True)
        (self.folder / "ca.pem").write_bytes(self.certificate.public_bytes(serialization.Encoding.PEM))

    def _made(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, issuer: x509.Name, *, authority: bool
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        names = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
        builder = builder.serial_number(x509.random_serial_number())
        builder = builder.not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(
            now + datetime.timedelta(days=1)
        )
        builder = builder.add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
        return builder.add_extension(names, critical=False).sign(self.key, hashes.SHA256())

    def issue(self, file: str, *parts: tuple[x509.ObjectIdentifier, str]) -> tuple[str, str]:
        """Files with a certificate and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(kind, value) for kind, value in parts])
        made = self._made(subject, key.public_key(), self.certificate.subject, authority=False)
        certificate, private = self.folder / f"{file}.pem", self.folder / f"{file}.key"
        certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
        private.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        return str(certificate), str(private)


def test_certificates_of_clients(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    authority, stranger = Authority(tmp_path), Authority(tmp_path / "other")
    authority.issue("server", (NameOID.COMMON_NAME, "localhost"))
    ana = authority.issue("ana", (NameOID.ORGANIZATION_NAME, "Corp, Inc"), (NameOID.COMMON_NAME, "ana"))
    bob = authority.issue("bob", (NameOID.COMMON_NAME, "bob"))
    eve = authority.issue("eve", (NameOID.COMMON_NAME, "ana"))
    forged = stranger.issue("forged", (NameOID.ORGANIZATION_NAME, "Corp, Inc"), (NameOID.COMMON_NAME, "ana"))
    (tmp_path / "interlock.toml").write_text(f'version = 1\n[journal]\nkind = "sqlite"\npath = "a.db"\n{TOOLS}')
    text = f"""
version = 1

[[callers]]
principal = "ana"
namespace = "ana"
rights = ["decide"]
subject = 'CN=ana,O=Corp\\, Inc'

[[callers]]
principal = "bob"
namespace = "bob"
rights = ["decide"]
subject = "CN=bob"
token = "{BOB.digest}"
"""
    callers_file(tmp_path, text)
    SqliteStore.migrate(tmp_path / "a.db")
    options = [
        "--callers",
        "callers.toml",
        "--tls-cert",
        "server.pem",
        "--tls-key",
        "server.key",
        "--client-ca",
        "ca.pem",
    ]
    with Process(tmp_path, *options) as service:
        port = service.address.rpartition(":")[2]

        def asked(certificate: tuple[str, str] | None, token: str = "") -> Asked:
            context = ssl.create_default_context(cafile=str(tmp_path / "ca.pem"))
            if certificate is not None:
                context.load_cert_chain(*certificate)
            return Asked(f"https://localhost:{port}", token, verify=context)

        name = asked(ana).begin()
        assert asked(ana).get(f"/v1/conversations/{name}")["calls"] == 0
        asked(bob, BOB.token).begin()
        asked(bob).post("/v1/conversations", {}, 401)  # both are needed
        asked(ana, BOB.token).post("/v1/conversations", {}, 401)
        asked(ana, ANA.token).post("/v1/conversations", {}, 401)
        asked(eve).post("/v1/conversations", {}, 401)  # part of a name is no name
        for nobody in (None, forged):
            with pytest.raises(httpx.TransportError):
                asked(nobody, BOB.token).get("/health")
        assert "Traceback" not in service.log()


def test_subjects_are_written_one_way() -> None:
    several = {
        "subject": ((("countryName", "DE"),), (("commonName", "a+b"), ("userId", "7")), (("commonName", " x,y "),))
    }
    assert subject_of(several) == "CN=\\ x\\,y\\ ,CN=a\\+b+UID=7,C=DE"
    assert subject_of({}) == subject_of(None) == ""
    one = {"subject": ((("commonName", "a,O=Corp"),),)}
    other = {"subject": ((("organizationName", "Corp"),), (("commonName", "a"),))}
    assert subject_of(one) != subject_of(other)


def test_a_reload_keeps_what_is_right(tmp_path: Path) -> None:
    """SIGHUP reads the configuration again; one that is wrong changes nothing."""
    import os
    import signal

    configuration = tmp_path / "interlock.toml"
    text = f'version = 1\n[journal]\nkind = "sqlite"\npath = "a.db"\n{TOOLS}'
    configuration.write_text(text)
    callers_file(tmp_path)
    SqliteStore.migrate(tmp_path / "a.db")
    with Process(tmp_path, "--callers", "callers.toml") as service:
        asked = Asked(service.url)
        name = asked.begin()
        for number, changed, verdict in (
            (1, "nonsense", "allow"),
            (2, text.replace("[tools.look]", "[tools.gone]"), "deny"),
        ):
            configuration.write_text(changed)
            os.kill(service.process.pid, signal.SIGHUP)
            end = time.monotonic() + 20
            while service.log().count("reloaded") < number:
                assert time.monotonic() < end
                time.sleep(0.02)
            assert asked.propose(name, {**LOOK, "id": f"l{number}"})[0]["verdict"] == verdict
        assert json.dumps(asked.get(f"/v1/conversations/{name}")["exposure"])
