"""A workspace and nothing beside it: its files, its history, commands in it.

Files: `contained` opens them; `denied` and `protected` are the tables of what is hidden and what may only be read.
`listing`, `reading` and `searching` look. `writing`, `making`, `moving` and `removing` change what the run has read by
its `ledger`, through `replacing`.
Git: `git` asks, `git_dir` stands for the checkout's own storage, `git_run` runs it within `landlock`.
Commands: `commands` are those of a run; each is `confined` by a `plan`, in the room that `bubblewrap` makes; `census`
and `disk` watch what it takes.
"""
