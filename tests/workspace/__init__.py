"""Workspaces: each rule is a test that reads the effect, as root and as an ordinary user."""
