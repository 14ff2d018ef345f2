"""Sentence embeddings: MiniLM over ONNX, on one thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

DIMENSIONS: Final = 384
# The model was trained on texts of this length; what follows is not looked at.
MAX_TOKENS: Final = 256
BATCH: Final = 16

Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Embedded:
    """One row of length 1 for each text, and how many tokens were read for all of them."""

    vectors: Matrix
    tokens: int


class Embedder(Protocol):
    """What makes vectors of texts; called in a worker thread with at most `BATCH` texts."""

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return the vectors, in the order of `texts`."""


class MiniLm:
    """all-MiniLM-L6-v2. Loading takes about half a second."""

    def __init__(self, model: Path, tokenizer: Path, threads: int = 1) -> None:
        import onnxruntime  # noqa: PLC0415 (a heavy import that only the process with weights needs)
        import tokenizers  # noqa: PLC0415

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._inputs = {node.name for node in self._session.get_inputs()}
        self._tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer.enable_padding()
        self._lock = threading.Lock()

    def embed(self, texts: Sequence[str]) -> Embedded:
        """Return the means of the token vectors, scaled to length 1."""
        with self._lock:
            encoded = self._tokenizer.encode_batch(list(texts))
            mask = np.array([one.attention_mask for one in encoded], dtype=np.int64)
            feed = {
                "input_ids": np.array([one.ids for one in encoded], dtype=np.int64),
                "attention_mask": mask,
                "token_type_ids": np.zeros_like(mask),
            }
            hidden = self._session.run(None, {name: feed[name] for name in self._inputs})[0]
        return Embedded(mean_pooled(hidden, mask), int(mask.sum()))


def mean_pooled(hidden: npt.NDArray[np.floating], mask: npt.NDArray[np.int64]) -> Matrix:
    """Return one vector of length 1 a row: the mean of `hidden` (rows, tokens, dimensions) where `mask` is 1."""
    weights = mask[:, :, None].astype(np.float32)
    mean = (hidden * weights).sum(axis=1) / np.maximum(weights.sum(axis=1), 1e-9)
    scaled: Matrix = (mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), 1e-12)).astype(np.float32)
    return scaled
