"""The AI SDK UI message stream, v6 chunk set: build, order, encode, parse, reduce to a message, and back."""
