from __future__ import annotations

import orjson

from popagent_chat.threads.fitting import fitted

LIMIT = 10_000


def size(message: object) -> int:
    return len(orjson.dumps(message))


def test_a_message_that_fits_is_left_alone() -> None:
    message = {"id": "m", "role": "assistant", "parts": [{"type": "text", "text": "x" * 5_000}]}

    assert fitted(message, LIMIT) is message


def test_only_the_longest_texts_are_cut_and_names_never() -> None:
    call_id = "c" * 400
    output = {"deep": ["鷺" * 20_000]}
    message = {
        "id": "m",
        "role": "assistant",
        "parts": [
            {"type": "text", "text": "short"},
            {"type": "tool-read", "toolCallId": call_id, "state": "output-available", "output": output},
        ],
    }

    shorter = fitted(message, LIMIT)

    assert size(shorter) <= LIMIT
    assert shorter["parts"][0] == message["parts"][0]
    assert shorter["parts"][1]["toolCallId"] == call_id
    assert shorter["parts"][1]["output"]["deep"][0].endswith("more characters are stored]")


def test_of_very_many_parts_the_newest_are_kept() -> None:
    parts = [{"type": "text", "text": f"part {number}"} for number in range(10_000)]

    shorter = fitted({"id": "m", "role": "assistant", "parts": parts}, LIMIT)

    assert size(shorter) <= LIMIT
    assert shorter["parts"][-1] == parts[-1]
