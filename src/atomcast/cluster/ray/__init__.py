"""Nodes that are Ray actors."""
