"""`python -m popagent_gateway`."""

from popagent_gateway.app import SERVICE
from popagent_host import run

if __name__ == "__main__":
    run(SERVICE)
