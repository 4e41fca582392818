"""The commands of `scrim`, one file per resource."""
