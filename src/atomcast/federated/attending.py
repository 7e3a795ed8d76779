"""A node's end of the connection: it calls out, proves who it is, and answers until it is stopped.

Nothing ever connects to a node.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Iterator
from queue import Full, Queue
from typing import Any

import grpc

from atomcast.federated.chains import IdentityError
from atomcast.federated.frames import METHOD, OPTIONS, Assembler, frames
from atomcast.federated.identity import Credentials, proof_statement
from atomcast.federated.kinds import Hello, Introduce, Message, Proof
from atomcast.federated.party import Node
from atomcast.federated.schema import SchemaError

logger = logging.getLogger(__name__)

#: How long to wait before the next try, in seconds: twice as long each time.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
#: How many pieces of answers may wait to be sent.
WAITING = 16


def attend(node: Node, stop: threading.Event) -> None:
    """Connect, answer, and connect again when the connection is lost, until told to stop."""
    pause = FIRST_PAUSE
    while not stop.is_set():
        connection = Connection(node, stop)
        try:
            connection.serve()
        except (IdentityError, SchemaError) as error:
            node.note("disconnected", reason=str(error)[:1000])
            logger.warning("%s", error)
        except grpc.RpcError as error:
            code, details = error.code(), error.details()  # type: ignore[attr-defined]
            if not stop.is_set():
                logger.info("no connection to %s (%s)", node.config.address, details)
            if code in (grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.UNAUTHENTICATED):
                node.note("disconnected", reason=f"the coordinator refuses this node: {details}")
        pause = FIRST_PAUSE if connection.met else min(2 * pause, LONGEST_PAUSE)
        stop.wait(pause)


class Connection:
    """One connection to the coordinator."""

    def __init__(self, node: Node, stop: threading.Event) -> None:
        self._node, self._stop = node, stop
        self._outgoing: Queue[bytes | None] = Queue(WAITING)
        self._call: Any = None
        #: Whether both sides have proved who they are.
        self.met = False

    def serve(self) -> None:
        """Answer until the connection ends."""
        config = self._node.config
        with channel(config.address, self._node.credentials, config.proxy) as wire:
            call = self._call = wire.stream_stream(METHOD)(iter(self._outgoing.get, None))
            watcher = threading.Thread(target=self._end_with, args=(call,), daemon=True)
            watcher.start()
            try:
                self._talk(call)
            finally:
                with contextlib.suppress(Full):  # where it is full, nobody waits for more
                    self._outgoing.put_nowait(None)
                call.cancel()

    def _end_with(self, call: Any) -> None:
        """End the call when the node is told to stop."""
        while call.is_active():
            if self._stop.wait(0.2):
                call.cancel()

    def _talk(self, call: Any) -> None:
        assembler = Assembler(self._node.longest)
        messages = _messages(call, assembler)
        self._meet(messages)
        for message in messages:
            self._say(self._node.answer(message))
            assembler.limit = self._node.longest

    def _meet(self, messages: Iterator[Message]) -> None:
        """Prove who this node is, and see that the coordinator is who it should be."""
        credentials, coordinator = self._node.credentials, self._node.config.coordinator
        mine = credentials.hello()
        self._say(mine)
        theirs, proof = next(messages, None), None
        if isinstance(theirs, Hello):
            claim = introduction(coordinator, theirs)
            peer = credentials.known(claim)
            self._say(Proof(credentials.sign(proof_statement("node", mine, theirs))))
            proof = next(messages, None)
        if not isinstance(theirs, Hello) or not isinstance(proof, Proof):
            raise SchemaError("the other side does not speak as a coordinator does")
        peer.check(proof_statement("coordinator", mine, theirs), proof.signature, "the greeting")
        self.met = True
        self._node.meet(claim)

    def _say(self, message: Message) -> None:
        """Answer; a coordinator that does not listen is not asked what it wants next."""
        for frame in frames(message):
            while not self._put(frame):
                pass

    def _put(self, frame: bytes) -> bool:
        """Whether there was room to send a piece of an answer; an error once nobody is there."""
        try:
            self._outgoing.put(frame, timeout=0.2)
        except Full:
            if self._stop.is_set() or not self._call.is_active():
                raise SchemaError("the coordinator has not listened to the answers") from None
            return False
        return True


def introduction(name: str, hello: Hello) -> Introduce:
    """Who somebody claims to be who should have this name."""
    return Introduce(name, hello.certificate, hello.key, hello.endorsement)


def channel(address: str, credentials: Credentials, proxy: str | None) -> Any:
    """An encrypted channel on which both sides show certificates."""
    secure = grpc.ssl_channel_credentials(
        credentials.authority, credentials.key, credentials.certificate
    )
    options: list[tuple[str, Any]] = [*OPTIONS]
    if proxy is not None:
        options.append(("grpc.http_proxy", proxy))
    return grpc.secure_channel(address, secure, options)


def _messages(call: Any, assembler: Assembler) -> Iterator[Message]:
    for frame in call:
        message = assembler.feed(frame)
        if message is not None:
            yield message
