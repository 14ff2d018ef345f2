"""The contracts as files for other languages: JSON Schema, AsyncAPI, TypeScript and golden examples."""
