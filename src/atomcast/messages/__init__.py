"""What nodes tell each other: atoms, proposals, agreements, and how these are checked and ranked."""
