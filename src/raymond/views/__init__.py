"""What a run looks like, as values. Pure."""
