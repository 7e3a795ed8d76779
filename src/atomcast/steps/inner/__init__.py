"""TODO inner."""
