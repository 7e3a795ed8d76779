"""TODO selection."""
