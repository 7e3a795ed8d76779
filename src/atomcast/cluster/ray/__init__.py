"""TODO ray."""
