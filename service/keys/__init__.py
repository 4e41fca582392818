"""API keys: who may call, with which scopes, and how often."""
