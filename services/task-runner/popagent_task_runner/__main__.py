"""`python -m popagent_task_runner`."""

from popagent_host import run
from popagent_task_runner.app import SERVICE

if __name__ == "__main__":
    run(SERVICE)
