"""TODO messages."""
