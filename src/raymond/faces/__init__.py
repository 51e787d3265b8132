"""Who tells people and programs what happens."""
