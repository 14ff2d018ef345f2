"""Long answers and long chats: made quickly, and read from their end to their beginning."""

from __future__ import annotations

from itertools import cycle
from typing import Final

import asyncpg

from popagent_testing.model_replies import Reply
from tests.suite import Suite

SEED_TURNS: Final = 10
PARAGRAPHS: Final = (
    "## Section {n}\n\nThe station writes a line every ten seconds, `{n}` of them so far. Where **the clock** was set"
    " back, the older line stays, and [the log](https://station.example/log) says so.\n\n",
    "| quantity | unit | mean of {n} | most |\n|---|---|---|---|\n| wind | m/s | 4.{n} | 19.2 |\n"
    "| rain | mm | .3 | 12 |\n| light | lx | 12,000 | 98,000 |\n\n",
    "```python\ndef mean_{n}(values: list[float]) -> float:\n    if not values:\n        raise ValueError('nothing was"
    " measured')\n    return sum(values) / len(values)  # of the hour\n```\n\n",
    "1. Read the lines of hour {n}.\n2. Leave out what lies outside of the bounds:\n   - wind above 80 m/s\n"
    "   - rain below zero\n3. Write the mean, and *how many* lines it stands for.\n\n",
    "> What was measured twice counts once. Line {n} is the one that came first, as long as nobody corrects it by"
    " hand, which the table of corrections would show.\n\n",
)
# Message n of the chat is a copy of the one as many rounds before it as it takes; its parent is the message before it.
COPY: Final = """
with known as (
    select *, row_number() over (order by seq) - 1 as place, count(*) over () as size
    from chat.messages where thread_id = $1
), numbered as (
    select known.*, n, case when n < size then id else id || '-' || n / size end as new_id
    from known, generate_series(0, $2::int - 1) as n
    where n % size = place
), chained as (
    select *, lag(new_id) over (order by n) as before from numbered
), copied as (
    insert into chat.messages (thread_id, id, seq, parent_id, role, parts, metadata, token_count, sealed_at, created_at)
    select thread_id, new_id, n + 1, before, role, parts, metadata, token_count, sealed_at, created_at
    from chained where n >= size
)
update chat.threads
set next_seq = $2::int + 1, head_id = (select new_id from chained order by n desc limit 1)
where id = $1
returning head_id
"""
# 300 px every other frame, until the first message is at the top. What stands in the middle must move by what was
# scrolled, whatever is put in front of it or measured anew above it.
CLIMB: Final = """
async () => {
  const box = document.querySelector(".talk-scroll");
  const frame = () => new Promise(requestAnimationFrame);
  const { left, top, width, height } = box.getBoundingClientRect();
  const middle = () => {
    for (const share of [.5, .45, .55, .4, .6]) {
      const found = document.elementFromPoint(left + width / 2, top + height * share)?.closest(".turn");
      if (found) return found;
    }
  };
  const result = { worst: 0, jumps: 0, frames: 0, messages: 0 };
  for (let waited = 0; waited < 600;) {
    const read = middle();
    const was = read?.getBoundingClientRect().top;
    const from = box.scrollTop;
    box.scrollTop -= 300;
    const by = from - box.scrollTop;
    await frame();
    await frame();
    result.frames++;
    if (read?.isConnected) {
      const jump = Math.abs(read.getBoundingClientRect().top - was - by);
      result.worst = Math.max(result.worst, jump);
      if (jump > 2) result.jumps++;
    }
    const isTop = box.scrollTop <= 0;
    if (isTop && !box.querySelector(".older")) break;
    waited = isTop ? waited + 1 : 0;
  }
  result.messages = box.querySelectorAll(".turn").length;
  return result;
}
"""


def article(words: int) -> str:
    """Return Markdown of at least so many words: prose, tables, code, lists and quotes in turn, none like another."""
    text, count = [], 0
    for number, paragraph in enumerate(cycle(PARAGRAPHS)):
        text.append(paragraph.format(n=number))
        count += len(text[-1].split())
        if count >= words:
            return "".join(text)
    raise AssertionError


async def seed(suite: Suite, session: str, count: int) -> str:
    """Make a chat of so many messages, the first ones through the door and the others as copies; return the last id."""
    async with suite.talk() as talk:
        for number in range(SEED_TURNS):
            suite.model.script(Reply(text=article(60 + 40 * (number % 5))))
            await talk.chat(f"What about hour {number}? Think of the wind, the rain and what was corrected.", session)
    password = (suite.home / "credentials/postgres-application").read_text(encoding="utf-8").strip()
    database = await asyncpg.connect(
        host="127.0.0.1", port=suite.program("postgres").port, user="popagent", password=password, database="popagent"
    )
    try:
        return str(await database.fetchval(COPY, session, count))
    finally:
        await database.close()
