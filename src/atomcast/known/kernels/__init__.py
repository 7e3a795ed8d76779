"""Known atoms that are points in a kernel space: kernels, their values, sums over points."""
