"""Fitting over a network that loses messages and nodes: the log protocol, and the paper's."""
