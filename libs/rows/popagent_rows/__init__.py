"""What is kept in rows because it must not be lost: events on their way out, events seen, and work under a lease."""
