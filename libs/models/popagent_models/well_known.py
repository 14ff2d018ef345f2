"""Where model servers listen by default; loads nothing, so that whoever only avoids these ports may ask."""

from __future__ import annotations

from typing import Final

PORTS: Final = {11434: "Ollama", 1234: "LM Studio", 8080: "llama.cpp", 8000: "vLLM", 20128: "9Router"}
