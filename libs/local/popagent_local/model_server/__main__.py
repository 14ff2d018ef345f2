"""`python -m popagent_local.model_server --port N --api-key-env NAME`: the embedded models, on loopback alone."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys

from popagent_kit import log as logs
from popagent_kit.errors import AppError, ConfigurationError
from popagent_local.model_server.server import serve
from popagent_local.model_server.settings import ModelServerSettings
from popagent_telemetry import redact, register_secret

log = logging.getLogger(__name__)


def main() -> int:
    """Run; return 0 after a signal, 1 when something broke, 78 when the configuration or the weights are at fault."""
    parser = argparse.ArgumentParser(prog="popagent_local.model_server", description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--api-key-env", required=True, metavar="NAME", help="The variable that holds the key.")
    options = parser.parse_args()
    logs.set_up(plain=sys.stderr.isatty(), redact=redact)
    try:
        api_key = os.environ.get(options.api_key_env, "")
        if not api_key:
            raise ConfigurationError(f"{options.api_key_env} must hold the key that clients send.")
        register_secret(api_key)
        asyncio.run(serve(options.port, api_key, ModelServerSettings.load()))
    except ConfigurationError as error:
        log.error(error.message)
        return os.EX_CONFIG
    except AppError as error:
        log.error(error.message)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
