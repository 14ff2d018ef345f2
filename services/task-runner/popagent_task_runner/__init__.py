"""The task-runner service: work that outlives a request."""
