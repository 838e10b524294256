"""TLS servers whose certificate or protocol is refused: the cause is named in `why`, `log` and the crawl's summary."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import certifi
import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from recrawl.model import Failure
from tests.world import Repo, Site, page

HOST = "127.0.0.1"
DAY = timedelta(days=1)
NOW = datetime.now(UTC)
PAGES = {"/": page("root", "/a"), "/a": page("walrus")}


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(autouse=True)
def trusted(authority: trustme.CA, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only this authority is trusted."""
    bundle = tmp_path / "authorities.pem"
    authority.cert_pem.write_to_path(bundle)
    monkeypatch.setattr(certifi, "where", lambda: str(bundle))


def context(certificate: trustme.LeafCert) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(tls)
    return tls


def expired(authority: trustme.CA) -> ssl.SSLContext:
    return context(authority.issue_cert(HOST, not_before=NOW - 9 * DAY, not_after=NOW - DAY))


def not_yet_valid(authority: trustme.CA) -> ssl.SSLContext:
    return context(authority.issue_cert(HOST, not_before=NOW + DAY, not_after=NOW + 9 * DAY))


def self_signed(_: trustme.CA) -> ssl.SSLContext:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, HOST)])
    builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), NOW - DAY, NOW + DAY)
    builder = builder.add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(HOST))]), critical=False)
    certificate = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    private = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    return context(trustme.LeafCert(private, certificate, []))


def other_host(authority: trustme.CA) -> ssl.SSLContext:
    return context(authority.issue_cert("other.example"))


def unknown_authority(_: trustme.CA) -> ssl.SSLContext:
    return context(trustme.CA().issue_cert(HOST))


def old_protocol(authority: trustme.CA) -> ssl.SSLContext:
    tls = context(authority.issue_cert(HOST))
    tls.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning, match="TLSv1"):
        tls.minimum_version, tls.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    return tls


def client_certificate(authority: trustme.CA) -> ssl.SSLContext:
    tls = context(authority.issue_cert(HOST))
    tls.verify_mode, tls.maximum_version = ssl.CERT_REQUIRED, ssl.TLSVersion.TLSv1_2
    return tls


@contextlib.contextmanager
def handshakes(tls: ssl.SSLContext) -> Iterator[int]:
    """A port on which a server makes handshakes. It sends its alerts, which servers of asyncio do not."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listener.accept()
                    with connection, contextlib.suppress(OSError), tls.wrap_socket(connection, server_side=True):
                        pass

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(60)


CAUSES: dict[str, tuple[Callable[[trustme.CA], ssl.SSLContext], str]] = {
    "expired": (expired, "the certificate has expired"),
    "not yet valid": (not_yet_valid, "the certificate is not valid yet"),
    "self-signed": (self_signed, "the certificate is self-signed"),
    "another host": (other_host, "the certificate is for another host"),
    "unknown authority": (unknown_authority, "the certificate comes from an unknown authority"),
    "old protocol": (old_protocol, "the server speaks only TLS versions that are not accepted"),
    "client certificate": (client_certificate, "the server refused the handshake"),
}


@pytest.mark.parametrize("kind", CAUSES)
def test_a_refused_certificate_is_named_everywhere(repo: Repo, authority: trustme.CA, kind: str) -> None:
    make, cause = CAUSES[kind]
    with handshakes(make(authority)) as port:
        url = f"https://{HOST}:{port}/"
        repo.add(url)
        assert f"https://{HOST}:{port}: {cause}" in repo.run("crawl", code=1).err
        assert f"unreachable-tls (robots.txt: {cause}" in repo.run("why", url).out
        assert cause in repo.run("log", url, "--visits").out
        assert repo.crawl()["failures"] == {Failure.UNREACHABLE_TLS: 1}


@pytest.mark.parametrize("kind", ["expired", "unknown authority"])
def test_a_certificate_that_becomes_invalid_keeps_the_pages(repo: Repo, authority: trustme.CA, kind: str) -> None:
    make, cause = CAUSES[kind]
    site = Site(PAGES, context(authority.issue_cert(HOST)))
    with site:
        repo.crawl(site.url())
    site.tls = make(authority)
    with site:
        repo.later(days=2)
        assert repo.cycle()["failures"] == {Failure.UNREACHABLE_TLS: 2}
        assert cause in repo.run("why", site.url("/a")).out
        assert repo.found("walrus") == {site.url("/a")}
    site.tls = context(authority.issue_cert(HOST))
    with site:
        repo.later(days=2)
        repo.cycle()
    assert repo.outcomes(site.url("/a")) == ["new", "unreachable-tls", "unchanged"]
    assert set(repo.states().values()) == {"live"}
