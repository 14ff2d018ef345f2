"""`python -m popagent_evolution_worker`."""

from popagent_evolution_worker.app import main

main()
