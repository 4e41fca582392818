"""How often intervals from several draws cover a known regression coefficient (ADR 23)."""
