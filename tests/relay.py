"""An HTTP CONNECT proxy for tests, which can be cut like a cable."""

from __future__ import annotations

import contextlib
import socket
import threading


class Relay:
    """Carries bytes between those who connect and where they want to go."""

    def __init__(self):
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.wanted: list[str] = []
        self.open = True
        #: While this is not set, bytes get stuck, and nobody is told.
        self.flowing = threading.Event()
        self.flowing.set()
        self._sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self):
        """End all connections, and let nobody through."""
        self.open = False
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def silence(self, seconds):
        """Let nothing through for a while, as a cable does that was pulled out."""
        self.flowing.clear()
        threading.Timer(seconds, self.flowing.set).start()

    def close(self):
        self.cut()
        self._server.close()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._server.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with contextlib.suppress(OSError, IndexError):
            request = b""
            while b"\r\n\r\n" not in request:
                request += client.recv(4096)
            self.flowing.wait()
            method, place = request.decode().split()[:2]
            if not self.open or method != "CONNECT":
                client.close()
                return
            self.wanted.append(place)
            host, port = place.rsplit(":", 1)
            there = socket.create_connection((host, int(port)))
            self._sockets += [client, there]
            client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            threading.Thread(target=self._pump, args=(there, client), daemon=True).start()
            self._pump(client, there)

    def _pump(self, source, sink):
        with contextlib.suppress(OSError):
            while content := source.recv(1 << 16):
                self.flowing.wait()
                sink.sendall(content)
        for one in (source, sink):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
