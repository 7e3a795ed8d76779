"""Nodes in this process: networks, faults, asynchrony and clocks that are simulated."""
