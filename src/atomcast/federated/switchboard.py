"""The coordinator's end of all connections: members call in, strangers are turned away."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from typing import Any

import grpc
from cryptography import x509

from atomcast.federated.attending import introduction
from atomcast.federated.chains import IdentityError
from atomcast.federated.frames import METHOD, OPTIONS, Assembler, frames
from atomcast.federated.identity import Credentials, Peer, proof_statement
from atomcast.federated.kinds import Hello, Introduce, Message, Proof
from atomcast.federated.schema import SchemaError

logger = logging.getLogger(__name__)
#: How many seconds a caller has to prove who it is.
GREETING = 10.0


class LostError(ConnectionError):
    """A connection has ended."""


class Line:
    """The connection to one member."""

    def __init__(self, peer: Peer, claim: Introduce, address: str) -> None:
        self.peer, self.claim, self.address = peer, claim, address
        self.outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self.incoming: SimpleQueue[Message | None] = SimpleQueue()
        self.open = True
        #: How many questions were asked, and how many answers have come.
        self.asked = self.answered = 0

    def send(self, message: Message) -> None:
        """Ask something."""
        self.asked += 1
        for frame in frames(message):
            self.outgoing.put(frame)

    def receive(self, until: float | None) -> Message:
        """What the member says next; LostError or TimeoutError if it says nothing."""
        left = None if until is None else max(until - time.monotonic(), 0.0)
        try:
            message = self.incoming.get(timeout=left)
        except Empty:
            raise TimeoutError from None
        if message is None:
            self.lose()
            raise LostError
        return message

    def lose(self) -> None:
        """Know that nothing more will come."""
        self.open = False
        self.incoming.put(None)
        self.outgoing.put(None)


class Switchboard:
    """A server that members connect to.

    Parameters
    ----------
    address : str
        "host:port" to listen at; port 0 takes a free one.
    members : sequence of str
    credentials : Credentials
    """

    def __init__(self, address: str, members: Sequence[str], credentials: Credentials) -> None:
        self._members, self.credentials = tuple(members), credentials
        self._lines: dict[str, Line] = {}
        self._changed = threading.Condition()
        #: How many bytes a message may have.
        self.longest = 1 << 20
        # Nobody without a certificate of our authority gets as far as to take a thread.
        workers = ThreadPoolExecutor(4 * len(members) + 8, thread_name_prefix="atomcast")
        # Two coordinators at one port would each get some of the members.
        self._server = grpc.server(workers, options=[*OPTIONS, ("grpc.so_reuseport", 0)])
        handler = grpc.stream_stream_rpc_method_handler(self._attend)
        service, method = METHOD.strip("/").split("/")
        generic = grpc.method_handlers_generic_handler(service, {method: handler})
        self._server.add_generic_rpc_handlers((generic,))
        secure = grpc.ssl_server_credentials(
            [(credentials.key, credentials.certificate)], credentials.authority, True
        )
        try:
            self.port = self._server.add_secure_port(address, secure)
        except RuntimeError as error:
            raise OSError(
                f"nothing can listen at address={address!r} ({error}): is the port in use, and the "
                "host one of this machine?"
            ) from None
        self._server.start()

    def line(self, name: str, until: float | None) -> Line:
        """The open connection to a member, once there is one; TimeoutError if it takes too long."""
        with self._changed:
            while name not in self._lines or not self._lines[name].open:
                left = None if until is None else until - time.monotonic()
                if left is not None and left <= 0:
                    raise TimeoutError
                self._changed.wait(left)
            return self._lines[name]

    def close(self) -> None:
        """End all connections."""
        with self._changed:
            for line in self._lines.values():
                line.lose()
        self._server.stop(grace=0.5).wait()

    # -- in threads of the server -----------------------------------------------------------

    def _attend(self, requests: Iterator[bytes], context: Any) -> Iterator[bytes]:
        """Everything that is said to one caller."""
        assembler = Assembler(1 << 20)
        hurry = threading.Timer(GREETING, context.cancel)  # silent callers would take every thread
        hurry.daemon = True
        hurry.start()
        try:
            hello = _next(requests, assembler)
            if not isinstance(hello, Hello):
                raise SchemaError("a caller did not say hello")
            line = Line(*self._member(hello, context), context.peer())
            mine = self.credentials.hello()
            yield from frames(mine)
            proof = _next(requests, assembler)
            if not isinstance(proof, Proof):
                raise SchemaError(f"{line.peer.name} did not prove who it is")
            line.peer.check(proof_statement("node", hello, mine), proof.signature, "the greeting")
        except (IdentityError, SchemaError) as error:
            logger.warning("a caller was turned away: %s", error)
            context.abort(grpc.StatusCode.PERMISSION_DENIED, str(error))
            return
        finally:
            hurry.cancel()
        yield from frames(Proof(self.credentials.sign(proof_statement("coordinator", hello, mine))))
        context.add_callback(line.lose)
        listener = threading.Thread(target=self._listen, args=(requests, line, assembler))
        listener.daemon = True
        listener.start()
        self._register(line)
        yield from iter(line.outgoing.get, None)

    def _member(self, hello: Hello, context: Any) -> tuple[Peer, Introduce]:
        """The member that a caller is, by the certificate with which TLS let it in."""
        shown = x509.load_pem_x509_certificate(context.auth_context()["x509_pem_cert"][0])
        try:
            same = x509.load_pem_x509_certificate(hello.certificate) == shown
        except ValueError:
            same = False
        if not same:
            raise IdentityError("a caller shows another certificate than that of its connection")
        names = shown.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        name = str(names[0].value) if names else ""
        if name not in self._members:
            raise IdentityError(
                f"{name!r} has a certificate, but is no member: {', '.join(self._members)} are"
            )
        claim = introduction(name, hello)
        return self.credentials.known(claim), claim

    def _listen(self, requests: Iterator[bytes], line: Line, assembler: Assembler) -> None:
        try:
            while True:
                assembler.limit = self.longest
                message = _next(requests, assembler)
                if message is None:
                    break
                if line.answered == line.asked:  # or a member could fill the memory
                    raise SchemaError("speaks without being asked")
                line.answered += 1
                line.incoming.put(message)
        except SchemaError as error:
            logger.warning("%s: %s", line.peer.name, error)
        except Exception as error:  # gRPC raises bare exceptions where a caller is gone
            logger.debug("%s is gone: %r", line.peer.name, error)
        line.lose()

    def _register(self, line: Line) -> None:
        with self._changed:
            before = self._lines.get(line.peer.name)
            self._lines[line.peer.name] = line
            if before is not None:
                before.lose()
            self._changed.notify_all()
        logger.info("%s has connected from %s", line.peer.name, line.address)


def _next(requests: Iterator[bytes], assembler: Assembler) -> Message | None:
    """The next message of a caller; None when it has nothing more to say."""
    for frame in requests:
        message = assembler.feed(frame)
        if message is not None:
            return message
    return None
