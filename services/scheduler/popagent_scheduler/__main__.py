"""`python -m popagent_scheduler`."""

from popagent_host import run
from popagent_scheduler.app import SERVICE

if __name__ == "__main__":
    run(SERVICE)
