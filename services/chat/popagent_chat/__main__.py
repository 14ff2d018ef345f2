"""`python -m popagent_chat`."""

from popagent_chat.app import SERVICE
from popagent_host import run

if __name__ == "__main__":
    run(SERVICE)
