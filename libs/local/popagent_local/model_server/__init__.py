"""The embedded model: its weights, a loopback server that speaks the OpenAI protocol, and the tool shim in front."""
