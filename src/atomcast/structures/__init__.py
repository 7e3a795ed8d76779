"""Outputs with a structure: what a model of them must be able to do, and two that are ready."""

from atomcast.structures.label_outputs import Chain, MultiClass
from atomcast.structures.output_model import OutputModel

__all__ = ["Chain", "MultiClass", "OutputModel"]
