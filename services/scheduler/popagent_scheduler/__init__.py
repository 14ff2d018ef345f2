"""The scheduler service: when work starts."""
