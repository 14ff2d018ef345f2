"""`python -m popagent_task_runner`."""

from popagent_task_runner.app import main

main()
