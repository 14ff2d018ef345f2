"""The docs-indexer service: what is written."""
