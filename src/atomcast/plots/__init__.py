"""TODO plots."""
