"""Kernels: functions of two points, and fast ways to sum them over many points."""
