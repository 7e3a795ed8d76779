"""Making keys, certificate requests and, for a trial, certificates.

A party has two keys: one (P-256) for its certificate and the encrypted connection, and one
(Ed25519) that signs its atoms. The first endorses the second.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from atomcast._checks import check_count
from atomcast._replacing import replacing

CA, CA_KEY, REVOKED = "ca.pem", "ca.key", "revoked.pem"


def make_keys(name: str, folder: Path, hosts: Sequence[str] = ()) -> Path:
    """Write `name`.key, `name`.sign.key and the request `name`.csr, whose path is returned."""
    checked_name(name)
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    _write_key(folder / f"{name}.key", key)
    _write_key(folder / f"{name}.sign.key", ed25519.Ed25519PrivateKey.generate())
    request = x509.CertificateSigningRequestBuilder().subject_name(_subject(name))
    request = request.add_extension(_alternatives(hosts or [name]), critical=False)
    path = folder / f"{name}.csr"
    _write(path, request.sign(key, hashes.SHA256()))
    return path


def make_ca(folder: Path, days: int = 365) -> None:
    """Write the key and certificate of an authority for a trial, and that nobody is revoked."""
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _subject("atomcast trial CA")
    authority = _certificate(name, name, key.public_key(), days)
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=0), True)
    _write_key(folder / CA_KEY, key)
    _write(folder / CA, authority.sign(key, hashes.SHA256()))
    revoke(folder, [])


def sign_request(folder: Path, request_path: Path, days: int = 365) -> Path:
    """Certify who a request says it is from; the certificate stands beside the request."""
    check_count("days", days, "for which the certificate is valid", minimum=-(10**4))
    key, authority = _authority(folder)
    request = x509.load_pem_x509_csr(request_path.read_bytes())
    if not request.is_signature_valid:
        raise ValueError(f"{request_path} is not signed by its own key: ask for a new one")
    (name,) = request.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if checked_name(str(name.value)) != request_path.stem or request_path.stem == Path(CA).stem:
        raise ValueError(
            f"{request_path} asks for the name {name.value!r}: certify a request only as a file of "
            "that name, if it is from that party"
        )
    made = _certificate(request.subject, authority.subject, request.public_key(), days)
    made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    made = made.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
    hosts = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    made = made.add_extension(hosts, critical=False)
    path = request_path.with_suffix(".pem")
    _write(path, made.sign(key, hashes.SHA256()))
    return path


def revoke(folder: Path, certificates: Sequence[Path]) -> Path:
    """Add certificates to the list of those that are no longer good."""
    key, authority = _authority(folder)
    path, now = folder / REVOKED, datetime.datetime.now(datetime.UTC)
    earlier = list(x509.load_pem_x509_crl(path.read_bytes())) if path.exists() else []
    numbers = {one.serial_number for one in earlier}
    numbers |= {
        x509.load_pem_x509_certificate(one.read_bytes()).serial_number for one in certificates
    }
    made = x509.CertificateRevocationListBuilder().issuer_name(authority.subject)
    made = made.last_update(now).next_update(now + datetime.timedelta(days=3650))
    for number in sorted(numbers):
        entry = x509.RevokedCertificateBuilder().serial_number(number).revocation_date(now)
        made = made.add_revoked_certificate(entry.build())
    _write(path, made.sign(key, hashes.SHA256()))
    return path


def checked_name(name: str) -> str:
    """The name of a party, which is also that of its files."""
    if (
        not name
        or not all(letter.isalnum() or letter in "-_." for letter in name)
        or name[0] == "."
    ):
        raise ValueError(
            f"the name {name!r} of a party may have letters, digits, -, _ and . only, for its "
            "files are called so"
        )
    return name


def _authority(folder: Path) -> tuple[Any, x509.Certificate]:
    key = serialization.load_pem_private_key((folder / CA_KEY).read_bytes(), None)
    return key, x509.load_pem_x509_certificate((folder / CA).read_bytes())


def _certificate(subject: Any, issuer: Any, key: Any, days: int) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    start = now - datetime.timedelta(days=max(-days, 0) + 1)
    made = x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key)
    made = made.serial_number(x509.random_serial_number())
    return made.not_valid_before(start).not_valid_after(now + datetime.timedelta(days=days))


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _alternatives(hosts: Sequence[str]) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName([_host(host) for host in hosts])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(path: Path, made: Any) -> None:
    with replacing(path) as file:
        file.write(made.public_bytes(serialization.Encoding.PEM))


def _write_key(path: Path, key: Any) -> None:
    """Write a private key that only its owner may read; none is ever replaced."""
    if path.exists():
        raise FileExistsError(f"{path} exists: a key is never replaced; remove it, or use another")
    content = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)
