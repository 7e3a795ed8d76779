"""Where the nodes run."""
