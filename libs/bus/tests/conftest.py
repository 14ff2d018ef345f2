from popagent_testing.suite_bus import connect_as, suite_nats

__all__ = ["connect_as", "suite_nats"]
