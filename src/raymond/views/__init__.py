"""What a run looks like from outside, as values. Pure."""
