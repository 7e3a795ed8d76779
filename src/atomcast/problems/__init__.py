"""What to fit, within what, from which kind of atoms."""
