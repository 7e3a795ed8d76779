"""TODO wire."""
