"""The commands of `scrim`, one file for each thing they are about."""
