"""cingulum.ring: actors of the event loop and of threads, their queues, messages and memory."""

import asyncio
import dataclasses
import subprocess
import sys
import threading
import time
import uuid

import numpy as np
import pytest

from cingulum.ring import ComputeOrchestrator, RingKernelRuntime, UnifiedBuffer, kernel, message, ring_kernel
from cingulum.ring.core.orchestrator import KernelLaunchConfig
from cingulum.ring.core.unified_buffer import BufferState
from cingulum.ring.decorators.validators import RuntimeValidator, validate_block_size, validate_config
from cingulum.ring.exceptions import (
    BufferNotAllocatedError,
    InvalidConfigurationError,
    KernelAlreadyExistsError,
    KernelFailedError,
    KernelNotFoundError,
    KernelStateError,
    MessageDeserializationError,
    MessageSerializationError,
    QueueClosedError,
    QueueFullError,
    QueueTimeoutError,
)
from cingulum.ring.ring_kernels import (
    ArrayMessage,
    BackpressureStrategy,
    FastMessageQueue,
    KernelState,
    MessageQueue,
    RingKernel,
    RingKernelConfig,
    RingKernelMessage,
    SPSCQueue,
    ThreadedKernelPool,
    ThreadedRingKernel,
    array_message,
    deserialize_message,
    get_buffer_registry,
    managed_kernel,
)


def run(coroutine):
    return asyncio.run(asyncio.wait_for(coroutine, 20))


@message
class Number:
    value: float = 0.0


async def twice(context):
    """The usual loop: it tests the flag, waits a little, and goes on after any exception."""
    while not context.should_terminate:
        try:
            got = await context.receive(timeout=0.1)
            await context.send(Number(value=2 * got.value, correlation_id=got.message_id))
        except Exception:
            continue


# Actors of the event loop.
def test_an_actor_goes_through_its_life_and_refuses_what_is_not_allowed():
    async def main():
        actor = RingKernel("a", twice)
        assert actor.state is KernelState.CREATED
        for operation in (actor.activate, actor.deactivate, actor.reactivate):
            with pytest.raises(KernelStateError):
                await operation()
        with pytest.raises(KernelStateError, match="CREATED"):
            await actor.send(Number())
        await actor.launch()
        with pytest.raises(KernelStateError):
            await actor.launch()
        await actor.activate()
        await actor.send(Number(value=3))
        assert (await actor.receive(timeout=1)).value == 6
        await actor.deactivate()
        assert actor.state is KernelState.DEACTIVATED
        await actor.reactivate()
        await actor.terminate()
        assert actor.state is KernelState.TERMINATED
        await actor.terminate()
        with pytest.raises(KernelStateError):
            await actor.send(Number())
        fresh = RingKernel("b", twice)
        await fresh.terminate()
        assert fresh.state is KernelState.TERMINATED

    run(main())


def test_deactivation_holds_messages_back_from_every_actor_and_keeps_them():
    async def main():
        async with managed_kernel("a", twice) as actor:
            await actor.deactivate()
            for value in (1, 2, 3):
                await actor.send(Number(value=value))
            with pytest.raises(QueueTimeoutError):
                await actor.receive(timeout=0.25)
            await actor.reactivate()
            assert [(await actor.receive(timeout=1)).value for _ in range(3)] == [2, 4, 6]

    run(main())


def test_a_failing_actor_is_failed_and_tells_those_who_wait():
    async def broken(context):
        await context.receive()
        raise RuntimeError("no luck")

    async def main():
        async with RingKernelRuntime() as runtime:
            actor = await runtime.launch("broken", broken)
            await runtime.activate("broken")
            waiting = asyncio.create_task(runtime.receive("broken"))
            await asyncio.sleep(0)
            await runtime.send("broken", 1.0)
            with pytest.raises(KernelFailedError, match="no luck"):
                await waiting
            assert runtime.get_kernel_state("broken") is KernelState.FAILED
            assert isinstance(actor.error, RuntimeError)
            telemetry = runtime.get_telemetry("broken")
            assert telemetry.error_count == 1 and "no luck" in telemetry.last_error
            with pytest.raises(KernelFailedError):
                await runtime.send("broken", 2.0)

    run(main())


def test_termination_wakes_who_waits_and_keeps_what_was_sent():
    async def sends_one_and_waits(context):
        await context.send("left")
        await context.receive()

    async def main():
        actor = RingKernel("a", sends_one_and_waits)
        await actor.launch()
        await actor.activate()
        await asyncio.sleep(0.01)
        await actor.terminate(timeout=60)  # more than `run` waits: the body ended by itself
        assert await actor.receive() == "left"
        with pytest.raises(KernelStateError):
            await actor.receive()
        async with managed_kernel("b", twice) as other:
            waiting = asyncio.create_task(other.receive())
            await asyncio.sleep(0.01)
        with pytest.raises(QueueClosedError):
            await waiting

    run(main())


def test_a_stuck_actor_is_cancelled_after_its_time():
    async def stuck(context):
        await asyncio.sleep(60)

    async def main():
        actor = RingKernel("a", stuck)
        await actor.launch()
        await actor.activate()
        begin = time.monotonic()
        await actor.terminate(timeout=0.1)
        assert time.monotonic() - begin > 0.09

    run(main())


def test_a_runtime_has_actors_by_name():
    @ring_kernel(kernel_id="registered", queue_size=8)
    async def body(context):
        await twice(context)

    async def main():
        runtime = RingKernelRuntime()
        async with runtime:
            assert runtime.is_active
            await runtime.launch("registered")
            with pytest.raises(KernelAlreadyExistsError):
                await runtime.launch("registered")
            with pytest.raises(KernelNotFoundError) as missing:
                await runtime.send("nobody", 1)
            assert missing.value.available == ["registered"]
            await runtime.activate("registered")
            first, second = await runtime.launch("x", twice), await runtime.launch("y", twice)
            assert runtime.kernel_ids == ["registered", "x", "y"]
            await first.activate()
            await second.activate()
            await runtime.send("x", Number(value=5))
            await runtime.send("y", await runtime.receive("x", timeout=1))
            assert (await runtime.receive("y", timeout=1)).value == 20
            assert runtime.get_telemetry("x").messages_processed == 1
            assert runtime.get_telemetry("x").avg_latency_ns > 0
            assert runtime.get_summary()["kernel_count"] == 3
            await runtime.terminate("y")
            assert await runtime.launch("y", twice)
            async with runtime.kernel_scope("scoped", twice) as scoped:
                assert scoped.state is KernelState.ACTIVE
            assert "scoped" not in runtime.kernel_ids
        assert runtime.kernel_ids == [] and not runtime.is_active

    run(main())


def test_answers_find_who_asked_by_their_correlation():
    async def backwards(context):
        held = [await context.receive() for _ in range(3)]
        for got in reversed(held):
            await context.send(Number(value=got.value, correlation_id=got.message_id))
        while not context.should_terminate:
            try:
                got = await context.receive(timeout=0.1)
            except QueueTimeoutError:
                continue
            await context.send(float(got))

    async def main():
        async with RingKernelRuntime() as runtime:
            await runtime.launch("a", backwards)
            await runtime.activate("a")
            asked = [runtime.send_and_receive("a", Number(value=value), timeout=2) for value in (1, 2, 3)]
            assert [answer.value for answer in await asyncio.gather(*asked)] == [1, 2, 3]
            # Any object is a message, and an answer without correlation is the next one's.
            assert await runtime.send_and_receive("a", 4.5, timeout=2) == 4.5

    run(main())


def test_a_late_answer_is_not_given_to_who_asked_next():
    async def slow_first(context):
        first = await context.receive()
        second = await context.receive()
        for got in (first, second):
            await context.send(Number(value=got.value, correlation_id=got.message_id))
        await context.receive()

    async def main():
        async with RingKernelRuntime() as runtime:
            await runtime.launch("a", slow_first)
            await runtime.activate("a")
            with pytest.raises(QueueTimeoutError):
                await runtime.send_and_receive("a", Number(value=1), timeout=0.05)
            assert (await runtime.send_and_receive("a", Number(value=2), timeout=2)).value == 2
            assert (await runtime.receive("a", timeout=1)).value == 1

    run(main())


@pytest.mark.parametrize("fast", [True, False])
def test_backpressure_reaches_the_queues(fast):
    async def idle(context):
        while not context.should_terminate:
            await asyncio.sleep(0.01)

    async def main():
        for strategy in ("block", "reject", "drop_oldest"):
            config = RingKernelConfig("a", input_queue_size=2, backpressure_strategy=strategy, use_fast_queue=fast)
            async with managed_kernel("a", idle, config=config) as actor:
                await actor.send(1)
                await actor.send(2)
                if strategy == "drop_oldest":
                    await actor.send(3)
                    assert [actor._input.get_nowait(), actor._input.get_nowait()] == [2, 3]
                elif strategy == "reject":
                    with pytest.raises(QueueFullError):
                        await actor.send(3)
                else:
                    with pytest.raises((QueueFullError, QueueTimeoutError)):
                        await actor.send(3, timeout=0.05)

    run(main())


# Queues.
def test_the_fast_queue_gives_the_most_urgent_band_first():
    async def main():
        queue = FastMessageQueue(maxsize=8)
        for priority in (10, 100, 170, 230, 101, 11):
            await queue.put(RingKernelMessage(priority=priority))
        assert [(await queue.get()).priority for _ in range(6)] == [230, 170, 100, 101, 10, 11]
        assert queue.get_stats()["peak_size"] == 6
        with pytest.raises(QueueTimeoutError):
            await queue.get(timeout=0.02)
        assert queue.put_batch([1, 2, 3] * 4) == 8 and queue.full
        with pytest.raises(QueueFullError):
            await queue.put(1, timeout=0)
        assert queue.get_batch(3) == [1, 2, 3]
        assert queue.clear() == 5

    run(main())


def test_a_cancelled_reader_loses_no_message():
    async def main():
        for queue in (FastMessageQueue(), MessageQueue()):
            reader = asyncio.create_task(queue.get())
            await asyncio.sleep(0)
            queue.put_nowait("kept")
            reader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reader
            assert await queue.get(timeout=0.5) == "kept"

    run(main())


def test_waits_end_at_their_own_time_in_any_order():
    async def main():
        queue = FastMessageQueue()

        ended = []

        async def waited(timeout):
            begin = time.monotonic()
            with pytest.raises(QueueTimeoutError):
                await queue.get(timeout=timeout)
            assert time.monotonic() - begin >= timeout * 0.95
            ended.append(timeout)

        await asyncio.gather(waited(0.5), waited(0.05), waited(0.2))
        assert ended == [0.05, 0.2, 0.5]

    run(main())


def test_a_message_from_another_thread_wakes_the_reader():
    async def main():
        queue = FastMessageQueue()
        threading.Timer(0.05, queue.put_nowait, ["from afar"]).start()
        assert await queue.get(timeout=5) == "from afar"

    run(main())


def test_a_full_queue_by_priority_blocks_and_drops_the_least_urgent():
    async def main():
        blocking = MessageQueue(maxsize=2)
        await blocking.put(RingKernelMessage(priority=1))
        await blocking.put(RingKernelMessage(priority=2))
        assert not blocking.put_nowait(RingKernelMessage(priority=3))
        with pytest.raises(QueueTimeoutError):
            await blocking.put(RingKernelMessage(priority=3), timeout=0.02)
        putting = asyncio.create_task(blocking.put(RingKernelMessage(priority=3)))
        await asyncio.sleep(0)
        assert (await blocking.get()).priority == 2
        assert await putting
        dropping = MessageQueue(maxsize=2, backpressure=BackpressureStrategy.DROP_OLDEST)
        for priority in (200, 1, 2):
            await dropping.put(RingKernelMessage(priority=priority))
        assert [(await dropping.get()).priority for _ in range(2)] == [200, 2]
        assert dropping.get_stats()["total_dropped"] == 1
        rejecting = MessageQueue(maxsize=1, backpressure=BackpressureStrategy.REJECT, use_priority=False)
        await rejecting.put(1)
        with pytest.raises(QueueFullError):
            await rejecting.put(2)

    run(main())


def test_a_full_queue_of_threads_blocks_and_loses_nothing():
    queue = SPSCQueue(capacity=4)
    assert [queue.put(value) for value in range(3)] == [True] * 3 and queue.full
    assert not queue.put(3, timeout=0.02) and queue.size == 3
    taken = []
    reader = threading.Thread(target=lambda: taken.extend(queue.get(timeout=5) for _ in range(1000)), daemon=True)
    queue.clear()
    reader.start()
    assert all(queue.put(value, timeout=5) for value in range(1000))
    reader.join(timeout=20)
    assert taken == list(range(1000))
    waiting = threading.Timer(0.05, queue.shutdown)
    waiting.start()
    assert queue.get() is None


# Actors of threads.
def doubling(context):
    while not context.should_terminate:
        got = context.receive(timeout=0.1)
        if got is not None:
            context.send(2 * got)


def test_an_actor_of_a_thread_answers_and_keeps_its_error():
    with ThreadedRingKernel("a", doubling) as actor:
        assert actor.is_running and actor.send(21)
        assert actor.receive(timeout=5) == 42
        assert actor.receive(timeout=0.01) is None

    def broken(context):
        raise ValueError("no luck")

    failing = ThreadedRingKernel("b", broken)
    failing.start()
    assert failing.receive(timeout=5) is None
    failing.stop()
    assert isinstance(failing.error, ValueError)
    with pytest.raises(KernelStateError):
        failing.start()


def test_a_pool_gives_the_answer_of_whichever_worker_has_one():
    def only_the_last(context):
        if context.kernel_id.endswith("_2"):
            doubling(context)
        else:
            context.wait_shutdown()

    with ThreadedKernelPool("w", only_the_last, num_workers=3) as pool:
        for value in (1, 2, 3):
            pool.send(value)
        assert pool.receive_any(timeout=5) == 6
        assert pool.receive_any(timeout=0.02) is None and len(pool) == 3


# Messages.
def test_messages_have_identity_priority_and_reply():
    first = Number(value=1)
    assert first.priority == 128 and first.correlation_id is None and first.message_id.version == 4
    answer = first.reply(value=2)
    assert answer.correlation_id == first.message_id and answer.message_id != first.message_id
    assert first.with_correlation(answer.message_id).message_id == first.message_id
    for cls in (Number, RingKernelMessage):
        with pytest.raises(ValueError, match="256|255"):
            cls(priority=999)


@message
class Everything:
    text: str = ""
    number: int = 0
    ratio: float = 0.0
    flag: bool = False
    raw: bytes = b""
    items: list = dataclasses.field(default_factory=list)
    table: dict = dataclasses.field(default_factory=dict)
    array: object = None
    owner: uuid.UUID | None = None


def test_identities_are_random_and_those_of_a_forked_process_its_own():
    ids = [Number().message_id for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert {(one.version, one.variant) for one in ids} == {(4, uuid.RFC_4122)}
    bits = [f"{one.int:0128b}" for one in ids]
    # All but the six bits that say version and variant are drawn: none is the same in all.
    assert sum(len({one[place] for one in bits}) == 2 for place in range(128)) == 122
    text = """
import os
from cingulum.ring import message
@message
class Number:
    value: float = 0.0
Number()
reader, writer = os.pipe()
if os.fork() == 0:
    os.write(writer, Number().message_id.bytes)
    os._exit(0)
assert os.read(reader, 16) != Number().message_id.bytes
"""
    subprocess.run([sys.executable, "-c", text], check=True)


def test_messages_travel_as_msgpack():
    sent = Everything(
        "Grüße", -(2**40), 0.1, True, b"\0\xff", [1, [2, None]], {"a": {"b": 1.5}},
        np.arange(6, dtype=np.int16).reshape(2, 3), uuid.uuid4(), priority=7,
    )  # fmt: skip
    got = Everything.deserialize(sent.serialize())
    assert np.array_equal(got.array, sent.array) and got.array.dtype == np.int16 and got.array.flags.writeable
    got.array = sent.array = None
    assert got == sent
    assert type(deserialize_message(sent.serialize())) is Everything
    assert len(RingKernelMessage().serialize()) == 98
    with pytest.raises(MessageSerializationError):
        Everything(items=[object()]).serialize()
    for garbage in (b"", b"\xc1", b"\x93\x01", sent.serialize()[:-3]):
        with pytest.raises(MessageDeserializationError):
            Everything.deserialize(garbage)


def test_the_bytes_are_those_of_the_msgpack_package():
    msgpack = pytest.importorskip("msgpack")
    from cingulum.ring.ring_kernels import _msgpack

    def none_known(value):
        raise TypeError(type(value))

    values = [None, True, 0, 127, 128, 255, 256, 65535, 65536, 2**32, 2**63, -1, -32, -33, -128, -129, -(2**15), -(2**31)]
    values += [-(2**63), 1.5, "", "a" * 31, "a" * 32, "ä" * 200, "a" * 70000, b"", b"x" * 300, b"x" * 70000]
    values += [[1] * 15, [1] * 16, [1] * 70000, {str(i): i for i in range(15)}, {str(i): i for i in range(20)}]
    for value in [*values, values]:
        packed = _msgpack.pack(value, none_known)
        assert packed == msgpack.packb(value)
        assert _msgpack.unpack(packed, dict) == value


def test_a_subclass_keeps_its_fields_after_its_base_was_written():
    RingKernelMessage().serialize()

    @dataclasses.dataclass
    class Derived(RingKernelMessage):
        number: int = 0

    assert Derived.deserialize(Derived(number=42).serialize()).number == 42
    assert deserialize_message(Derived(number=42).serialize()).number == 42


def test_array_messages_pass_the_array_itself_and_say_when_it_is_gone():
    @array_message
    class Image:
        pixels: object = None

    @dataclasses.dataclass
    class Other(ArrayMessage):
        pixels: object = None

    for cls in (Image, Other):
        get_buffer_registry().clear()
        sent = cls(pixels=np.zeros(4))
        data = sent.serialize()
        assert sent.serialize() == data and len(get_buffer_registry()) == 1
        assert cls.deserialize(data).pixels is sent.pixels
        assert deserialize_message(data).pixels is sent.pixels
        assert sent.release_arrays() == 1 and len(get_buffer_registry()) == 0
        with pytest.raises(MessageDeserializationError, match="released"):
            cls.deserialize(data)


def test_the_registry_counts_who_holds_an_array():
    registry = get_buffer_registry()
    registry.clear()
    handle = registry.register(np.zeros(3, np.float32))
    assert (handle.shape, handle.dtype, handle.device, handle.size_bytes) == ((3,), "float32", "cpu", 12)
    assert registry.increment_ref(handle.buffer_id) and registry.decrement_ref(handle.buffer_id) == 1
    assert registry.decrement_ref(handle.buffer_id) == 0 and registry.decrement_ref(handle.buffer_id) == -1
    assert handle.buffer_id not in registry


# Memory, functions, checks.
def test_a_unified_buffer_follows_its_states_without_a_gpu():
    buffer = UnifiedBuffer((2, 3))
    assert (buffer.state, buffer.size, buffer.nbytes, len(buffer)) == (BufferState.UNINITIALIZED, 6, 24, 2)
    for access in (lambda: buffer.host, lambda: buffer.device, buffer.mark_host_dirty, buffer.mark_device_dirty):
        with pytest.raises(BufferNotAllocatedError):
            access()
    assert buffer.allocate() is buffer and buffer.state is BufferState.HOST_ONLY
    assert buffer.zeros() is buffer and buffer.state is BufferState.HOST_DIRTY
    buffer[0, 1] = 5
    assert buffer.host[0, 1] == 5 and buffer.device is buffer.host
    out = np.empty((2, 3), np.float32)
    buffer.fill(7).copy_to(out)
    assert (out == 7).all()
    buffer.free()
    assert not buffer.is_allocated


def test_the_orchestrator_keeps_its_calls():
    async def main():
        async with ComputeOrchestrator() as orchestrator:
            seen = []
            orchestrator.register_kernel("add", lambda a, b: seen.append(a + b))

            async def later(value):
                seen.append(value)

            done = await orchestrator.launch_kernel("add", KernelLaunchConfig(grid_size=4), 1, 2)
            assert done.success and done.config.grid_size == (4,)
            await orchestrator.launch_kernel(later, KernelLaunchConfig(), 9)
            assert seen == [3, 9]
            with pytest.raises(ValueError, match="known"):
                await orchestrator.launch_kernel("absent", KernelLaunchConfig())
            with pytest.raises(ZeroDivisionError):
                await orchestrator.launch_kernel(lambda: 1 / 0, KernelLaunchConfig())
            calls = orchestrator.get_execution_history()
            assert [one.success for one in calls] == [True, True, False]
            assert orchestrator.get_execution_history(limit=1) == calls[-1:]
            assert orchestrator.get_execution_history(kernel_name="add") == calls[:1]

    run(main())


def test_functions_stay_callable_as_kernels():
    @kernel
    def bare(a, b):
        return a + b

    @kernel(name="other", device="cpu")
    def with_parentheses(a):
        return 2 * a

    assert bare(1, 2) == 3 and with_parentheses(4) == 8


def test_validators_refuse_and_collect():
    with pytest.raises(InvalidConfigurationError, match="1024"):
        validate_block_size((32, 64))
    strict, lenient = RuntimeValidator(), RuntimeValidator(strict=False)
    with pytest.raises(InvalidConfigurationError):
        strict.validate_kernel_config({"queue_size": 0})
    assert lenient.validate_kernel_config({"queue_size": 0, "grid_size": 2}) == {"grid_size": (2,)}
    assert len(lenient.warnings) == 1
    assert not lenient.validate_message_type(int)

    @validate_config(RingKernelConfig)
    def made(kernel_id, grid_size=1):
        return kernel_id

    assert made("a", grid_size=2) == "a"
    with pytest.raises(Exception, match="grid_size"):
        made("a", grid_size="two")


def test_the_kernel_cache_throws_the_oldest_away_and_survives_damage(tmp_path):
    from cingulum.ring.compilation import KernelCache

    cache = KernelCache(tmp_path, max_entries=2)
    for number in range(3):
        assert cache.store("k", str(number), f"text {number}")
        time.sleep(0.002)
        if number == 1:
            assert cache.load("k", "0") == b"text 0"
    assert not cache.contains("k", "1") and cache.load("k", "0") == b"text 0"
    assert KernelCache(tmp_path).load("k", "2") == b"text 2"
    (tmp_path / "k_0.ptx").unlink()
    assert cache.load("k", "0") is None
    (tmp_path / "index.json").write_text("{")
    assert KernelCache(tmp_path).get_stats()["entries"] == 0


# The other package's name.
PROGRAM = """
import asyncio
import pydotcompute
from pydotcompute import RingKernelRuntime, message, ring_kernel
from pydotcompute.ring_kernels.lifecycle import RingKernel
import pydotcompute.core.accelerator
import cingulum.ring.ring_kernels.lifecycle

assert RingKernel is cingulum.ring.ring_kernels.lifecycle.RingKernel
assert pydotcompute.core.accelerator.get_accelerator().device_count >= 1

@message
class Ask:
    value: float = 0.0

@ring_kernel(kernel_id="square", input_type=Ask)
async def square(context):
    while not context.should_terminate:
        try:
            got = await context.receive(timeout=0.1)
        except Exception:
            continue
        await context.send(got.value ** 2)

async def main():
    async with RingKernelRuntime() as runtime:
        await runtime.launch("square")
        await runtime.activate("square")
        await runtime.send("square", Ask(value=3.0))
        print(await runtime.receive("square", timeout=1.0))

asyncio.run(main())
"""


def test_a_program_for_pydotcompute_runs_unchanged(tmp_path):
    script = tmp_path / "program.py"
    script.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, "-m", "cingulum.compat", "pydotcompute", str(script)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == "9.0\n"


def test_importing_all_modules_probes_nothing(tmp_path):
    code = (
        "import asyncio, sys, pkgutil, importlib, cingulum.ring\n"
        "policy = asyncio.get_event_loop_policy()\n"
        "for module in pkgutil.walk_packages(cingulum.ring.__path__, 'cingulum.ring.'):\n"
        "    if module.name != 'cingulum.ring.native': importlib.import_module(module.name)\n"
        "assert asyncio.get_event_loop_policy() is policy\n"
        "assert not {'cingulum._native', 'cupy', 'numba', 'uvloop', 'mlx', 'dipy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


