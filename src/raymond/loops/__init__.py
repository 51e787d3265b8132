"""Loops that work through a queue of items, each in a fresh session."""
