"""TODO domains."""
