"""Asking several members at once, and again if one was lost on the way."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from atomcast.errors import StallError
from atomcast.federated.consent import RefusedError
from atomcast.federated.kinds import Message, Refusal
from atomcast.federated.switchboard import Line, LostError, Switchboard

logger = logging.getLogger(__name__)


class Calls:
    """Questions to members, by their number.

    Parameters
    ----------
    switchboard : Switchboard
    members : sequence of str
    limits : callable
        Returns how many seconds an answer may take (None: any), and a member may be away.
    """

    def __init__(
        self,
        switchboard: Switchboard,
        members: Sequence[str],
        limits: Callable[[], tuple[float | None, float]],
    ) -> None:
        self._switchboard, self.members, self._limits = switchboard, members, limits
        #: What a member that was lost must be told before it can go on.
        self.reminder: Callable[[int], list[Message]] = lambda node: []
        #: What is going on, for messages.
        self.where = "before the first round"
        self._used: dict[int, Line] = {}

    def line(self, node: int) -> Line:
        """The connection to a member, once it is there."""
        _, patience = self._limits()
        try:
            return self._switchboard.line(self.members[node], time.monotonic() + patience)
        except TimeoutError:
            raise StallError(
                f"{self.where}: {self.members[node]} has not connected for {patience:g} s. "
                "Is its node running, and does its audit log say why it cannot? If there is a "
                "checkpoint, the run can be resumed from it"
            ) from None

    def all(self, message: Message) -> list[Message]:
        """The answers of all members to the same question."""
        answers = self.ask({node: [message] for node in range(len(self.members))})
        return [answers[node][0] for node in range(len(self.members))]

    def ask(self, questions: Mapping[int, Sequence[Message]]) -> dict[int, list[Message]]:
        """The answers of several members, each in the order of its questions."""
        try:
            lines = {node: self._first(node, messages) for node, messages in questions.items()}
            return {
                node: self._answers(node, lines[node], messages)
                for node, messages in questions.items()
            }
        except BaseException:
            self.hang_up(questions)  # or answers that nobody waits for would be taken for others
            raise

    def hang_up(self, nodes: Iterable[int]) -> None:
        """End the connections to some members, who will call again."""
        for node in nodes:
            line = self._used.pop(node, None)
            if line is not None:
                line.lose()

    def _first(self, node: int, messages: Sequence[Message]) -> Line | None:
        """Ask a member, on the connection that was used last if it still is there."""
        line = self._used.get(node)
        if line is None or not line.open:
            try:
                line = self._again(node)
            except LostError:
                return None
        _send(line, messages)
        return line

    def _answers(self, node: int, line: Line | None, messages: Sequence[Message]) -> list[Message]:
        while True:
            try:
                if line is None:
                    line = self._again(node)
                    _send(line, messages)
                return self._heard(node, line, len(messages))
            except LostError:
                logger.warning("%s: %s is lost; waiting for it", self.where, self.members[node])
                line = None

    def _again(self, node: int) -> Line:
        """A new connection to a member, which was told where the run is."""
        line = self.line(node)
        reminder = self.reminder(node)
        _send(line, reminder)
        self._heard(node, line, len(reminder))
        self._used[node] = line
        return line

    def _heard(self, node: int, line: Line, count: int) -> list[Message]:
        deadline, _ = self._limits()
        until = None if deadline is None else time.monotonic() + deadline
        try:
            answers = [line.receive(until) for _ in range(count)]
        except TimeoutError:
            raise StallError(
                f"{self.where}: {self.members[node]} has not answered for {deadline:g} s. If "
                "it may take that long, raise FederatedCluster(deadline=...); if there is a "
                "checkpoint, the run can be resumed from it"
            ) from None
        for answer in answers:
            if isinstance(answer, Refusal):
                raise RefusedError(f"{self.where}: {self.members[node]} refuses: {answer.reason}")
        return answers


def _send(line: Line, messages: Sequence[Message]) -> None:
    for message in messages:
        line.send(message)
