"""`python -m popagent_scheduler`."""

from popagent_scheduler.app import main

main()
