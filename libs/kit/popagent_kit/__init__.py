"""Errors, settings, log, clock, text and ids: what every other package may use."""
