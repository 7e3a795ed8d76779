"""Nodes of different organisations: each guards its own data, and what leaves is agreed on."""
