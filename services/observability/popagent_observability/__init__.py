"""What happened: spans, logs and events of every service, in a PostgreSQL of its own."""
