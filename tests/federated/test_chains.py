"""Certificates of an organisation's own authorities, one of which has signed the next."""

from __future__ import annotations

import datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from atomcast import Lasso
from atomcast.federated.chains import IdentityError
from atomcast.federated.identity import Credentials
from atomcast.federated.keys import make_keys
from federation import NAMES, Parties, make_data

NOW = datetime.datetime.now(datetime.UTC)


class Authority:
    """Signs certificates, as an organisation's own would."""

    def __init__(self, name, above=None, key=None, ca=True, depth=None, days=30):
        self.key = key or ec.generate_private_key(ec.SECP256R1())
        self.subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        constraints = x509.BasicConstraints(ca=ca, path_length=depth)
        above = above or self
        self.certificate = above.signed(self.subject, self.key.public_key(), [constraints], days)

    def signed(self, subject, key, extensions, days=30):
        made = x509.CertificateBuilder().subject_name(subject).issuer_name(self.subject)
        made = made.public_key(key).serial_number(x509.random_serial_number())
        made = made.not_valid_before(NOW - datetime.timedelta(days=60))
        made = made.not_valid_after(NOW + datetime.timedelta(days=days))
        for extension in extensions:
            made = made.add_extension(extension, critical=True)
        return made.sign(self.key, hashes.SHA256())

    def revoked(self, *certificates, days=30):
        made = x509.CertificateRevocationListBuilder().issuer_name(self.subject)
        made = made.last_update(NOW - datetime.timedelta(days=60))
        made = made.next_update(NOW + datetime.timedelta(days=days))
        for one in certificates:
            entry = x509.RevokedCertificateBuilder().serial_number(one.serial_number)
            made = made.add_revoked_certificate(entry.revocation_date(NOW).build())
        return pem(made.sign(self.key, hashes.SHA256()))


def pem(*made):
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in made)


def certified(folder, name, authority, *between):
    """Keys of a party with a certificate of this authority, and of those in between."""
    request = x509.load_pem_x509_csr(make_keys(name, folder, ["127.0.0.1"]).read_bytes())
    hosts = request.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    made = authority.signed(request.subject, request.public_key(), [hosts])
    (folder / f"{name}.pem").write_bytes(pem(made, *(one.certificate for one in between)))
    return made


@pytest.fixture
def root():
    return Authority("our organisation", key=rsa.generate_private_key(65537, 2048))


def test_parties_of_authorities_under_one_root_fit_together(root, tmp_path):
    """Two departments have an authority each; only that of the organisation is in ca.pem."""
    first, second = Authority("IT", root, depth=0), Authority("research", root)
    keys = tmp_path / "keys"
    for name, authority in zip(("coordinator", *NAMES), (first, second) * 2, strict=True):
        certified(keys, name, authority, authority)
    (keys / "ca.pem").write_bytes(pem(root.certificate))
    (keys / "revoked.pem").write_bytes(b"".join(one.revoked() for one in (root, first, second)))
    parts, y = make_data()
    with Parties(tmp_path / "p", parts, keys=keys) as parties:
        cluster = parties.open()
        model = Lasso(5.0, cluster=cluster).fit(cluster.shards("cohort"), y)
    assert model.result_.status == "optimal"


def test_what_leads_to_nobody_we_believe_is_refused(root, tmp_path):
    middle, expired = Authority("middle", root), Authority("expired", root, days=-1)
    shallow = Authority("shallow", root, depth=0)
    deep = Authority("deep", shallow)
    none = Authority("no authority", root, ca=False)
    impostor = Authority("our organisation")
    (tmp_path / "ca.pem").write_bytes(pem(root.certificate))
    for name, authority, between, text in (
        ("a", middle, [middle], None),
        ("b", middle, [], "of another authority than ours"),
        ("c", expired, [expired], "an authority of 'c' is valid"),
        ("d", none, [none], "somebody who may not sign"),
        ("e", deep, [deep, shallow], "somebody who may not sign"),
        ("f", impostor, [impostor], "a signature does not fit"),
    ):
        certified(tmp_path, name, authority, *between)
        if text is None:
            Credentials(tmp_path, name)
        else:
            with pytest.raises(IdentityError, match=text):
                Credentials(tmp_path, name)


def test_every_authority_may_revoke_what_it_has_signed(root, tmp_path):
    middle = Authority("middle", root)
    own = certified(tmp_path, "north", middle, middle)
    (tmp_path / "ca.pem").write_bytes(pem(root.certificate))
    for lists, text in (
        (middle.revoked() + root.revoked(), None),
        (middle.revoked(), None),
        (root.revoked(), "no list of the authority"),
        (middle.revoked(own), "was revoked"),
        (middle.revoked() + root.revoked(middle.certificate), "was revoked"),
        (middle.revoked(days=-1), "was good until"),
        (Authority("middle").revoked(), "not signed by the authority"),
    ):
        (tmp_path / "revoked.pem").write_bytes(lists)
        if text is None:
            Credentials(tmp_path, "north")
        else:
            with pytest.raises(IdentityError, match=text):
                Credentials(tmp_path, "north")
