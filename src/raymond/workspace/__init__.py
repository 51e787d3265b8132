"""A place of its own for a step: a private checkout that it works in, from which only file contents come back."""
