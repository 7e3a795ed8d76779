"""TODO known."""
