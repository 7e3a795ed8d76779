"""Errors that more than one kind of cluster raises."""

from __future__ import annotations


class ClusterError(RuntimeError):
    """Something went wrong on another node, or on the way there; the message says what."""


class FalseMessageError(ClusterError):
    """A node has said something that cannot be true; the message names the node."""


class StallError(TimeoutError):
    """A node was waited for longer than the deadline; the message names it and the round."""
