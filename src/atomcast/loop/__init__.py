"""TODO loop."""
