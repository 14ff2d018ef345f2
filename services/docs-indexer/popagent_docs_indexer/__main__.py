"""`python -m popagent_docs_indexer`."""

from popagent_docs_indexer.app import SERVICE
from popagent_host import run

if __name__ == "__main__":
    run(SERVICE)
