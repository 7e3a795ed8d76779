"""The one loop, the state that it moves from round to round, and what comes of it."""
