from __future__ import annotations
import os, time, asyncio
from .conftest import *
from .conftest import batch, encoded, span, TRACE
from popagent_observability.records import Window, parse_batch

async def test_speed(pool, storing):
    datas = []
    for t in range(40):
        tid = os.urandom(16).hex()
        spans = [span(i, 1 if i > 1 else None, traceId=tid, spanId=os.urandom(8).hex(), name="execute_tool grep", attributes={"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "grep", "gen_ai.tool.type": "function", "gen_ai.tool.call.id": "call_abc", "popagent.tool.access": "read", "gen_ai.usage.input_tokens": 5, "popagent.turn.id": "t1", "popagent.session.id": "s1", "path": "/some/folder/file.py"}) for i in range(1, 251)]
        datas.append(encoded(spans, [log_line(f"m{t}")]))
    moment = now()
    w = Window.around(moment, 14)
    a = time.perf_counter(); c = time.process_time()
    batches = [parse_batch("chat", d, w, moment) for d in datas]
    b = time.perf_counter(); c2 = time.process_time()
    print("parse spans/s", 10000 / (b - a), "cpu", 10000/(c2-c))
    a = time.perf_counter()
    await asyncio.gather(*(storing.put(x) for x in batches))
    b = time.perf_counter()
    print("store spans/s", 10000 / (b - a), os.getloadavg())
    import cProfile, pstats
    p = cProfile.Profile(); p.enable()
    for d in datas[:8]: parse_batch("chat", d, w, moment)
    p.disable(); pstats.Stats(p).sort_stats("cumtime").print_stats(18)
