"""Who somebody is: certificates that are checked after TLS, and signatures of atoms."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519
from cryptography.x509.oid import NameOID

from atomcast.federated.chains import IdentityError, chain_of, check_revoked
from atomcast.federated.keys import CA, REVOKED, checked_name
from atomcast.federated.kinds import Hello, Introduce
from atomcast.federated.schema import encode

_ENDORSED = b"atomcast: this key signs my atoms\n"
_ATOM = b"atomcast: this is my atom\n"
NONCE = 32


@dataclass(frozen=True)
class Peer:
    """Somebody whose certificate was checked.

    Parameters
    ----------
    name : str
    key : bytes
        The public key that signs its atoms.
    """

    name: str
    key: bytes

    @property
    def fingerprint(self) -> str:
        """What people compare by telephone."""
        return hashlib.sha256(self.key).hexdigest()[:32]

    def check(self, content: bytes, signature: bytes, what: str) -> None:
        """Raise IdentityError unless this party has signed the content."""
        try:
            ed25519.Ed25519PublicKey.from_public_bytes(self.key).verify(signature, content)
        except (InvalidSignature, ValueError):
            raise IdentityError(
                f"{what} is not signed by {self.name}: it is forged or altered"
            ) from None


class Credentials:
    """The keys and certificates of this party, and whom it believes.

    Parameters
    ----------
    folder : path
        With ca.pem, revoked.pem (if there is a list of revoked certificates), and `name`.pem,
        `name`.key and `name`.sign.key of this party. `name`.pem may go on with certificates of
        authorities that lead to one in ca.pem.
    name : str
    """

    def __init__(self, folder: str | os.PathLike[str], name: str) -> None:
        self.folder, self.name = Path(folder), checked_name(name)
        self.authority = self._read(CA)
        self.certificate = self._read(f"{name}.pem")
        self.key = self._read(f"{name}.key")
        key = serialization.load_pem_private_key(self.key, None)
        signing = serialization.load_pem_private_key(self._read(f"{name}.sign.key"), None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise ValueError(
                f"{name}.key must be an elliptic curve key, as `atomcast node keys` makes"
            )
        if not isinstance(signing, ed25519.Ed25519PrivateKey):
            raise ValueError(
                f"{name}.sign.key must be an Ed25519 key, as `atomcast node keys` makes"
            )
        self._signing = signing
        public = signing.public_key().public_bytes_raw()
        endorsement = key.sign(_ENDORSED + public, ec.ECDSA(hashes.SHA256()))
        self._hello = self.certificate, public, endorsement
        self._looked: tuple[object, ...] = ()
        self.peer = self.known(Introduce(name, *self._hello))

    def _read(self, name: str) -> bytes:
        path = self.folder / name
        if not path.is_file():
            raise FileNotFoundError(
                f"there is no {path}: `atomcast node keys` makes keys and a certificate request, "
                "for which the organisation's authority, or `atomcast coordinator ca` for a trial, "
                "returns the certificate"
            )
        return path.read_bytes()

    def hello(self) -> Hello:
        """What this party says first, with a new nonce."""
        return Hello(*self._hello, os.urandom(NONCE))

    def sign(self, content: bytes) -> bytes:
        """The signature of this party."""
        return self._signing.sign(content)

    def known(self, claim: Introduce) -> Peer:
        """Who somebody is, if the certificate is good and of that name; IdentityError if not.

        The authority, expiry, revocation, name, and the endorsement of the signing key are looked
        at each time.
        """
        try:
            certificates = x509.load_pem_x509_certificates(claim.certificate)
            names = certificates[0].subject.get_attributes_for_oid(NameOID.COMMON_NAME)
            name = str(names[0].value) if len(names) == 1 else ""
            self._check_valid(certificates, name)
            if name != claim.name:
                raise IdentityError(f"the certificate of {claim.name!r} is that of {name!r}")
            key = certificates[0].public_key()
            if not isinstance(key, ec.EllipticCurvePublicKey):
                raise IdentityError(f"the certificate of {name!r} is not for an elliptic curve key")
            key.verify(claim.endorsement, _ENDORSED + claim.key, ec.ECDSA(hashes.SHA256()))
        except (InvalidSignature, ValueError, TypeError) as error:
            raise IdentityError(
                f"{claim.name!r} is not who it says: a signature does not fit ({error})"
            ) from None
        return Peer(name, claim.key)

    def recheck(self, claims: Iterable[Introduce]) -> None:
        """Look at claims, and this party's own, again if there is reason to.

        That is if others were looked at last, if the list of the revoked has changed, and every
        minute, for certificates and lists expire.
        """
        revoked, claims = self.folder / REVOKED, (Introduce(self.name, *self._hello), *claims)
        found = revoked.stat() if revoked.exists() else None
        stamp = () if found is None else (found.st_mtime_ns, found.st_size, found.st_ino)
        looked = (claims, stamp, int(time.time() / 60))
        if looked != self._looked:
            for claim in claims:
                self.known(claim)
            self._looked = looked

    def _check_valid(self, certificates: list[x509.Certificate], name: str) -> None:
        chain = chain_of(certificates, x509.load_pem_x509_certificates(self.authority), name)
        revoked = self.folder / REVOKED
        if revoked.exists():
            check_revoked(chain, revoked, name)


def approved_members(members: str, peers: Mapping[str, Peer]) -> list[Peer]:
    """The members that a text names, "north=fingerprint south=...", if their keys are these."""
    found = []
    for member in members.split():
        name, _, fingerprint = member.partition("=")
        peer = peers.get(name)
        if peer is None or peer.fingerprint != fingerprint:
            raise IdentityError(f"the key of {name!r} is not the one that was approved")
        found.append(peer)
    return found


def atom_statement(context: str, question: str, score: float, atom: bytes) -> bytes:
    """What the owner of an atom signs: the atom, for this fit, with the score it had."""
    about = f"{context} {question} {score.hex()} {len(atom)}\n"
    return _ATOM + about.encode() + atom


def proof_statement(role: str, hello: Hello, reply: Hello) -> bytes:
    """What both sign when they meet: both greetings whole, so that neither can be passed on."""
    said = b"".join(hashlib.sha256(encode(one)).digest() for one in (hello, reply))
    return b"atomcast: I am here\n" + role.encode() + said
