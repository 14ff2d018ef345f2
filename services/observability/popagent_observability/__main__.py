"""`python -m popagent_observability`."""

from popagent_host import run
from popagent_observability.app import SERVICE

if __name__ == "__main__":
    run(SERVICE)
