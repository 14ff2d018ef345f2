"""`python -m popagent_docs_indexer`."""

from popagent_docs_indexer.app import main

main()
