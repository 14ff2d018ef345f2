"""Messages of the chat service, a module a slice."""
