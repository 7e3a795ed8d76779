"""How an atom travels: exact, and in few bytes."""
