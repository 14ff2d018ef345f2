"""The real executor: an agent carries the task out, in the same loop and by the same rules as in a chat.

`snapshots` asks chat what the run begins with, `executor` runs it, `recorder` makes the transcript of it.
"""
