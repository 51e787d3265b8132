"""What nobody but the person who runs Raymond can change: checkouts, agents, other users and accidents are kept out."""
