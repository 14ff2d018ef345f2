"""Each condition is asked about in its own period, all of them in one statement."""

from __future__ import annotations

import asyncio
from collections import Counter

from popagent_db.pool import Pool
from popagent_rows.pulse import Pulse


async def counted(pulse: Pulse, beats: dict[str, float | None], seconds: float) -> Counter[str]:
    """Count how often each of these watches was woken; all conditions are true."""
    woken: Counter[str] = Counter()
    for name, period_s in beats.items():
        pulse.watch("true", lambda name=name: woken.update([name]), period_s=period_s)  # type: ignore[misc]
    pulse.start()
    await asyncio.sleep(seconds)
    await pulse.stop()
    return woken


async def test_what_is_to_be_looked_for_oftener_or_more_seldom_than_the_pulse_beats_is(pool: Pool) -> None:
    woken = await counted(Pulse(pool, period_s=0.2), {"plain": None, "quick": 0.04, "seldom": 0.8}, 2.0)

    assert woken["quick"] > 2 * woken["plain"] > 4 * woken["seldom"] > 0
    assert woken["plain"] <= 2.0 / (0.2 * 0.8) + 1
    assert woken["seldom"] <= 2.0 / (0.8 * 0.8) + 1


async def test_another_period_counts_at_once(pool: Pool) -> None:
    pulse = Pulse(pool, period_s=0.05)
    woken = asyncio.Event()
    watch = pulse.watch("true", woken.set, period_s=600)
    pulse.start()
    await woken.wait()
    woken.clear()

    watch.resize(0.05)

    async with asyncio.timeout(5):
        await woken.wait()
    await pulse.stop()
