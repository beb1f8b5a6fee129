"""T4 over TLS: who can't prove to be the server that was named is not believed, and who is not asked who it is.

Mutation that it is shown to catch: a context that checks no host name, or a client certificate that is not shown.
"""

from __future__ import annotations

import datetime
import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest

pytest.importorskip("opa_client")

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from interlock.errors import Misconfigured
from interlock.model.decisions import ENGINE_ERROR, Verdict
from interlock.policy.opa import Limits
from interlock.policy.opa_client import OpaServer
from tests.opa_worlds import BUNDLE, DEADLINE, Agent, StandIn, engine_for, in_time, kinds, written
from tests.servers import opa

DRIVERS = ["sync", "async"]
NOW = datetime.datetime.now(datetime.UTC)
DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Identity:
    cert: Path
    key: Path


class Authority:
    """A certificate authority in a folder."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder, self._name = folder, x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        made = self._builder(self._name, self._key.public_key(), NOW + DAY)
        made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.file = folder / f"{name}.pem"
        self.file.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _builder(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, until: datetime.datetime
    ) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(NOW - 10 * DAY)
            .not_valid_after(until)
        )

    def identity(self, name: str, until: datetime.datetime = NOW + DAY) -> Identity:
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(name)]
        if name == "localhost":
            names.append(x509.IPAddress(ipaddress.ip_address("127.0.0.1")))
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        made = self._builder(subject, key.public_key(), until)
        made = made.add_extension(x509.SubjectAlternativeName(names), critical=False)
        place = self._folder / f"{name}-{made._serial_number}"
        found = Identity(place.with_suffix(".crt"), place.with_suffix(".key"))
        found.cert.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        plain = serialization.NoEncryption()
        pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain
        found.key.write_bytes(key.private_bytes(*pem))
        found.key.chmod(0o600)
        return found


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours"), "ours")


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("theirs"), "theirs")


def serving(identity: Identity, clients: Path | None = None, oldest: bool = False) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.cert, identity.key)
    if clients is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(clients)
    return context


@pytest.fixture(params=DRIVERS)
def driver(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_named_server_is_believed(driver: str, ours: Authority) -> None:
    with StandIn(context=serving(ours.identity("localhost"))) as server:
        for url in (server.url(), server.url("localhost")):
            with engine_for(url, ca_file=ours.file) as engine:
                assert Agent(engine, driver).call().verdict is Verdict.ALLOW


@pytest.mark.parametrize("who", ["another name", "an unknown authority", "expired", "the system's authorities"])
def test_nobody_else_is(who: str, driver: str, ours: Authority, theirs: Authority) -> None:
    identity, trusted = ours.identity("localhost"), ours.file
    if who == "another name":
        identity = ours.identity("opa.example")
    elif who == "an unknown authority":
        identity = theirs.identity("localhost")
    elif who == "expired":
        identity = ours.identity("localhost", NOW - DAY)
    with StandIn(context=serving(identity)) as server:
        files = {} if who == "the system's authorities" else {"ca_file": trusted}
        with engine_for(server.url(), **files) as engine:
            agent = Agent(engine, driver)
            outcome = agent.call()
            assert (outcome.decision.code, agent.ran, kinds(engine)) == (ENGINE_ERROR, 0, {"tls": 1})
            assert in_time(agent.took)


def test_a_server_without_tls_where_tls_was_named(driver: str, ours: Authority) -> None:
    limits = Limits(DEADLINE)
    with (
        StandIn() as server,
        engine_for(f"https://127.0.0.1:{server.port}", limits=limits, ca_file=ours.file) as engine,
    ):
        agent = Agent(engine, driver)
        assert (agent.call().decision.code, agent.ran) == (ENGINE_ERROR, 0)
        assert set(kinds(engine)) <= {"tls", "deadline", "refused"}  # two that wait for each other
        assert in_time(agent.took)


def test_a_client_shows_who_it_is(driver: str, ours: Authority, theirs: Authority) -> None:
    client, stranger = ours.identity("client"), theirs.identity("client")
    with StandIn(context=serving(ours.identity("localhost"), clients=ours.file)) as server:
        known = {"ca_file": ours.file, "client_cert": client.cert, "client_key": client.key}
        with engine_for(server.url(), **known) as engine:
            assert Agent(engine, driver).call().verdict is Verdict.ALLOW
        for one in ({}, {"client_cert": stranger.cert, "client_key": stranger.key}):
            with engine_for(server.url(), ca_file=ours.file, **one) as engine:
                agent = Agent(engine, driver)
                assert (agent.call().decision.code, agent.ran) == (ENGINE_ERROR, 0)
                assert set(kinds(engine)) <= {"tls", "reset"}


def test_files_that_are_no_certificates(ours: Authority, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    for files in (
        {"ca_file": nothing},
        {"ca_file": tmp_path / "not there"},
        {"client_cert": nothing},
        {"client_cert": ours.identity("client").cert, "client_key": ours.identity("client").key},
        {"client_key": ours.identity("client").key},
    ):
        with pytest.raises(Misconfigured, match=r"engine\.(ca_file|client_cert|client_key)"):
            OpaServer("https://127.0.0.1:8181", **files)


AUTHZ = """package system.authz

default allow := false

allow if input.identity in {"first", "second", "CN=client"}
"""


@pytest.mark.opa
def test_the_real_server(ours: Authority, theirs: Authority, tmp_path: Path) -> None:
    """A token that changes, and certificates of clients, against OPA itself."""
    it, token = ours.identity("localhost"), tmp_path / "token"
    folder = written(BUNDLE, tmp_path / "bundle")
    (folder / "authz.rego").write_text(AUTHZ)
    options = ["--tls-cert-file", str(it.cert), "--tls-private-key-file", str(it.key), "--authorization", "basic"]
    token.write_text("first\n")
    with (
        opa(*options, "--authentication", "token", "-b", str(folder)) as server,
        engine_for(server.url, ca_file=ours.file, token_file=token) as engine,
    ):
        for driver in DRIVERS:
            assert Agent(engine, driver).call().verdict is Verdict.ALLOW
        token.write_text("a-wrong-one\n")
        assert Agent(engine, "sync").call().decision.code == ENGINE_ERROR
        token.unlink()
        assert Agent(engine, "sync").call().decision.code == ENGINE_ERROR
        assert kinds(engine) == {"unauthorised": 1, "token": 1}
        token.write_text("second\n")
        assert Agent(engine, "sync").call().verdict is Verdict.ALLOW
    options += ["--authentication", "tls", "--tls-ca-cert-file", str(ours.file)]
    with opa(*options, "-b", str(folder)) as server:
        for authority, verdict in ((ours, Verdict.ALLOW), (theirs, Verdict.DENY)):
            me = authority.identity("client")
            files = {"ca_file": ours.file, "client_cert": me.cert, "client_key": me.key}
            with engine_for(server.url, **files) as engine:
                assert {Agent(engine, driver).call().verdict for driver in DRIVERS} == {verdict}
