"""What the operator of an installation does by hand: caps, keys, and going on after a loss."""
