"""What the run of an agent needs of its service, be it a turn or a task: models, hooks, the workspace, its lease.

`begun` makes a run's context from what was stored of it (`stored`), with `models`, `hooks` and `workspaces`.
"""
