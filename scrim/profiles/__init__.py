"""Profiles of the columns of a public sample, and declarations for them."""

from scrim.profiles.declaration import Declaration, declare
from scrim.profiles.profile import Profile

__all__ = ["Declaration", "Profile", "declare"]
