"""Models: the one client, the catalogue, profiles, admission, routing and usage."""
