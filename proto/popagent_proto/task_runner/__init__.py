"""What the task-runner answers and tells."""
