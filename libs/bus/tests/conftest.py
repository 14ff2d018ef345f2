from popagent_testing.suite_bus import connect_as, shared_suite_nats, suite_nats

__all__ = ["connect_as", "shared_suite_nats", "suite_nats"]
