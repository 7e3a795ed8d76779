"""Whether certificates lead to an authority that is believed, and whether one was revoked."""

from __future__ import annotations

import datetime
import itertools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from atomcast.errors import ClusterError

#: The longest way from a party to an authority in ca.pem.
LONGEST = 5
_LIST = re.compile(rb"-----BEGIN X509 CRL-----.+?-----END X509 CRL-----", re.DOTALL)


class IdentityError(ClusterError):
    """Somebody is not who they should be; the message says why."""


def chain_of(
    certificates: Sequence[x509.Certificate], believed: Sequence[x509.Certificate], name: str
) -> list[x509.Certificate]:
    """The way from the first certificate to one that is believed, each signed by the next.

    Parameters
    ----------
    certificates : sequence of Certificate
        That of a party, and of authorities in between.
    believed : sequence of Certificate
    name : str
        Of the party, for messages.

    Raises
    ------
    IdentityError
        If there is no such way, or one of them is not valid now.
    InvalidSignature
        If one of them has not signed what it says.
    """
    chain = [certificates[0]]
    while len(chain) == 1 or chain[-1] not in believed:
        chain.append(_issuer(chain, [*believed, *certificates[1:]], name))
    now = datetime.datetime.now(datetime.UTC)
    for one in chain:
        if not one.not_valid_before_utc <= now <= one.not_valid_after_utc:
            whose = "" if one is chain[0] else " of an authority"
            raise IdentityError(
                f"the certificate{whose} of {name!r} is valid from {one.not_valid_before_utc} to "
                f"{one.not_valid_after_utc}, not now: renew it"
            )
    return chain


def _issuer(
    chain: Sequence[x509.Certificate], candidates: Sequence[x509.Certificate], name: str
) -> x509.Certificate:
    """The authority that has signed the last certificate of a chain, and may do so."""
    named = [one for one in candidates if one.subject == chain[-1].issuer and one not in chain]
    if not named or len(chain) > LONGEST:
        raise IdentityError(f"the certificate of {name!r} is of another authority than ours")
    for one in named:  # an authority may have had several keys
        try:
            chain[-1].verify_directly_issued_by(one)
        except InvalidSignature:
            continue
        if not _may_sign(one, below=len(chain) - 1):
            raise IdentityError(f"{name!r} has a certificate of somebody who may not sign any")
        return one
    raise InvalidSignature


def _may_sign(certificate: x509.Certificate, below: int) -> bool:
    """Whether this is an authority, also over so many authorities below it."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return False
    try:
        usage = certificate.extensions.get_extension_for_class(x509.KeyUsage).value
        signs = usage.key_cert_sign
    except x509.ExtensionNotFound:
        signs = True
    return found.ca and signs and (found.path_length is None or found.path_length >= below)


def check_revoked(chain: Sequence[x509.Certificate], path: Path, name: str) -> None:
    """Raise IdentityError if a certificate of a chain was revoked, or nobody can tell."""
    lists = [x509.load_pem_x509_crl(one) for one in _LIST.findall(path.read_bytes())]
    now = datetime.datetime.now(datetime.UTC)
    for one, issuer in itertools.pairwise(chain):
        told = [listed for listed in lists if listed.issuer == issuer.subject]
        if one is chain[0] and not told:
            raise IdentityError(f"{path} has no list of the authority of {name!r}: add it")
        for listed in told:
            if not listed.is_signature_valid(cast(Any, issuer.public_key())):
                raise IdentityError(f"{path} is not signed by the authority: get it again")
            if listed.next_update_utc is not None and listed.next_update_utc < now:
                raise IdentityError(f"{path} was good until {listed.next_update_utc}: get it again")
            if listed.get_revoked_certificate_by_serial_number(one.serial_number):
                raise IdentityError(f"the certificate of {name!r} was revoked")
