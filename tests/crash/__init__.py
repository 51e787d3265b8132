"""The crash proof: a run may be cut off anywhere and ends as if nothing had happened."""
