"""Outputs with a structure: what a model of them must be able to do, and two that are ready."""

from atomcast.structures.base import OutputModel
from atomcast.structures.labels import Chain, MultiClass

__all__ = ["Chain", "MultiClass", "OutputModel"]
