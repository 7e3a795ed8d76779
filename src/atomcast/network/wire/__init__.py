"""What an atom looks like between two nodes: exact, small, and safe to read."""
