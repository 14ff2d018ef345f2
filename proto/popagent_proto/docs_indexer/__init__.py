"""What docs-indexer answers and tells."""
