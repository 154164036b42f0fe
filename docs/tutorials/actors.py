# %% [markdown]
# # Actors
# An actor is a loop that waits for messages and answers them. Ours run outside of Python: on threads of the library, or,
# with `Runtime("cuda")`, as blocks of a kernel that stays on a GPU. Python asks them, one by one or by the million.

# %%
import asyncio
import time

import numpy as np

from cingulum.ring.native import MessageType, Runtime, bodies

print(bodies())
runtime = Runtime()
echo = runtime.launch("echo")
print(echo.request(1.5, timeout=5))

# %% [markdown]
# A blocking request takes a few microseconds.

# %%
took = []
for number in range(2000):
    begin = time.perf_counter()
    echo.request(float(number), timeout=5)
    took.append(time.perf_counter() - begin)
print(f"median {sorted(took)[1000] * 1e6:.1f} us")

# %% [markdown]
# Awaited, others get their turn while the actor works. In a notebook, `await` needs no `asyncio.run`.

# %%
async def ask_many() -> list[float]:
    return await asyncio.gather(*(echo.ask(float(number), timeout=5) for number in range(100)))


print(sum(asyncio.run(ask_many())))

# %% [markdown]
# Batches are arrays; a message of several fields is a structured one.

# %%
point = MessageType("Point", np.dtype([("x", "f4"), ("y", "f4"), ("label", "i8")], align=True))
points = runtime.launch("points", "echo", takes=point)
sent = np.zeros(100_000, point.dtype)
sent["label"] = np.arange(len(sent))
begin = time.perf_counter()
answers = points.exchange(sent)
print(f"{len(sent) / (time.perf_counter() - begin) / 1e6:.1f} million messages/s")
assert np.array_equal(answers, sent)

# %% [markdown]
# Arrays that are too large for a message go through memory that the actor sees.

# %%
total = runtime.launch("total", "sum")
print(total.request(np.arange(1000.0), timeout=5))
print(runtime, echo.telemetry()["received"], "messages so far")
runtime.shutdown()

# %% [markdown]
# Programs for PyDotCompute run on `cingulum.ring`, which has its names: an actor is a coroutine then.

# %%
from cingulum.ring import RingKernelRuntime, message, ring_kernel  # noqa: E402


@message
class Number:
    value: float = 0.0


@ring_kernel(kernel_id="square")
async def square(context):
    while not context.should_terminate:
        try:
            got = await context.receive(timeout=0.1)
        except Exception:
            continue
        await context.send(Number(value=got.value**2, correlation_id=got.message_id))


async def main() -> None:
    async with RingKernelRuntime() as ring:
        await ring.launch("square")
        await ring.activate("square")
        answer = await ring.send_and_receive("square", Number(value=12), timeout=1.0)
        print(answer.value)


asyncio.run(main())
