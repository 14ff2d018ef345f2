"""The OpenAPI document: the contracts' own schemas, one error shape, a stable order."""

from __future__ import annotations

from typing import Any, Final

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from popagent_gateway.door import KEY_HEADER
from popagent_proto.http import ErrorBody

SUMMARY: Final = "Chat with a company of agents; see what they do."
DESCRIPTION: Final = (
    "Every route wants the key in the header x-popagent-key when the server has one. "
    "Refusals have one shape: `{error, code, field?}`; a conflict carries the stored object beside it."
)
VERSION: Final = "1"
REFUSALS: Final = {
    "400": "Not JSON.",
    "401": "The key is missing or wrong.",
    "403": "The request comes from another web page.",
    "404": "There is nothing with this id.",
    "409": "The stored state does not allow this now.",
    "413": "The body is too large.",
    "415": "The body is not declared as JSON.",
    "422": "A field has a value that is not accepted; it is named.",
    "503": "A part of popagent does not answer at the moment.",
}
WITH_BODY: Final = frozenset({"400", "409", "413", "415", "422"})


def describe(api: FastAPI) -> dict[str, Any]:
    """Return the document with sorted keys, so that a diff shows what changed and nothing else."""
    document = get_openapi(
        title=api.title, version=VERSION, summary=SUMMARY, description=DESCRIPTION, routes=api.routes
    )
    schemas = document.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["ErrorBody"] = ErrorBody.model_json_schema(by_alias=True, mode="serialization")
    document["components"]["securitySchemes"] = {
        "key": {"type": "apiKey", "in": "header", "name": KEY_HEADER.decode("ascii")}
    }
    document["security"] = [{"key": []}, {}]
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            _describe_refusals(operation, path, method)
    ordered: dict[str, Any] = _sorted(document)
    return ordered


def _describe_refusals(operation: dict[str, Any], path: str, method: str) -> None:
    responses: dict[str, Any] = operation["responses"]
    responses.pop("422", None)
    for status, description in REFUSALS.items():
        if (status in WITH_BODY and method == "get" and status != "422") or (status == "404" and "{" not in path):
            continue
        responses.setdefault(
            status,
            {
                "description": description,
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/ErrorBody"}}},
            },
        )


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    if isinstance(value, list):
        return [_sorted(item) for item in value]
    return value
