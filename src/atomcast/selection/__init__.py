"""Which atoms a node may propose: all, some at random, centers, or as many as its pace allows."""
