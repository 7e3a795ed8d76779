"""Minimisation over all known atoms, which the corrective step asks for."""
