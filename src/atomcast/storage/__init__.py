"""Files that outlive a run: container, checkpoint, and what tells data from other data."""
