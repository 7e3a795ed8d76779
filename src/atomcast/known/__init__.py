"""What everybody knows: the atoms broadcast so far, their weights, and products of these."""
