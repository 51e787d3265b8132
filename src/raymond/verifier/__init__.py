"""Runs the checks of a gate, and says what it saw.

It is a process of its own, so that a driver never waits for a file or a command. What it finds goes through a socket to
whoever started it, and nothing that a check starts can open that.
"""
