"""`python -m popagent_evolution_worker`."""

from popagent_evolution_worker.app import SERVICE
from popagent_host import run

if __name__ == "__main__":
    run(SERVICE)
