"""TODO problems."""
