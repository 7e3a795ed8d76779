"""What nodes tell each other: atoms, proposals, agreements; how these are checked and ranked."""
