"""What a node holds: atoms of one kind or another, under one contract."""
