"""What an author writes, as values: tags, policies, workflows. Pure."""
