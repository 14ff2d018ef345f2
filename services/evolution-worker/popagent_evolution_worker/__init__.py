"""The evolution-worker service: what may be learned from work."""
