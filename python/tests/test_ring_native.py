"""cingulum.ring.native: actors on threads of the library."""

import asyncio
import multiprocessing
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import cingulum
from cingulum.ring.native import MessageType, Runtime, bodies


@pytest.fixture
def runtime():
    with Runtime() as made:
        yield made


def test_a_request_is_answered(runtime):
    echo = runtime.launch("echo")
    assert echo.state == "ACTIVE" and runtime["echo"] is echo and runtime.names == ["echo"]
    assert [echo.request(float(value), timeout=5) for value in range(100)] == list(range(100))
    assert echo.telemetry()["received"] == 100
    assert "echo" in bodies() and "sum" in bodies()


def test_messages_of_several_fields_come_back_as_they_went(runtime):
    point = MessageType("Point", np.dtype([("x", "f4"), ("n", "i8"), ("flag", "?"), ("y", "<f8")], align=True))
    assert point.dtype.itemsize == 32
    echo = runtime.launch("points", "echo", takes=point)
    answer = echo.request(1.5, -3, True, 2.25, timeout=5)
    assert answer == (1.5, -3, True, 2.25) and answer.n == -3
    odd = MessageType("Odd", np.dtype([("three", "f4", 3), ("big", ">i4")]))
    other = runtime.launch("odd", "echo", takes=odd)
    assert other.request(([1, 2, 3], 70000), timeout=5)["big"] == 70000
    records = np.zeros(1000, point.dtype)
    records["n"] = np.arange(1000)
    assert np.array_equal(echo.exchange(records), records)
    with pytest.raises(cingulum.InvalidArgumentError, match="48"):
        MessageType("Large", "f8,f8,f8,f8,f8,f8,f8")


def test_sums_take_arrays(runtime):
    values = np.random.default_rng(1).integers(-50, 50, 10_001).astype(float)
    assert runtime.launch("sum").request(values, timeout=5) == values.sum()
    assert runtime.launch("squares", "sum_of_squares").request(values[::2], timeout=5) == (values[::2] ** 2).sum()
    assert runtime["sum"].request(np.zeros(0), timeout=5) == 0


@pytest.mark.parametrize("count", [0, 1, 255, 100_000])
def test_batches_come_back_in_order(runtime, count):
    actor = runtime.launch("many", "batch_echo", stream=True, inbox=64, outbox=64)
    values = np.arange(count, dtype=float)
    assert np.array_equal(actor.exchange(values), values)


def test_awaited_answers_leave_the_loop_free(runtime):
    echo = runtime.launch("echo")

    async def main():
        assert await asyncio.gather(*(echo.ask(float(value), timeout=5) for value in range(200))) == list(range(200))
        echo.deactivate()
        waiting = [asyncio.create_task(echo.ask(float(value), timeout=10)) for value in range(20)]
        ticks = 0
        while ticks < 5:
            await asyncio.sleep(0.01)
            ticks += 1
        assert not any(task.done() for task in waiting)
        waiting[3].cancel()
        echo.reactivate()
        done = await asyncio.gather(*waiting, return_exceptions=True)
        assert isinstance(done.pop(3), asyncio.CancelledError)
        assert done == [float(value) for value in range(20) if value != 3]

    asyncio.run(main())
    asyncio.run(main())  # another loop after the first was closed


def test_shutting_down_ends_those_who_wait():
    async def main():
        runtime = Runtime()
        echo = runtime.launch("echo")
        echo.deactivate()
        waiting = asyncio.create_task(echo.ask(1.0))
        await asyncio.sleep(0.05)
        runtime.shutdown()
        with pytest.raises(cingulum.ClosedError):
            await asyncio.wait_for(waiting, 5)

    asyncio.run(main())


def test_a_loop_of_quick_answers_gives_others_a_turn(runtime):
    echo = runtime.launch("echo")

    async def main():
        turns = 0

        async def other():
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        task = asyncio.create_task(other())
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            await echo.ask(1.0)
        task.cancel()
        assert turns > 3

    asyncio.run(main())


def test_nothing_comes_in_time(runtime):
    echo = runtime.launch("echo")
    echo.deactivate()
    with pytest.raises(TimeoutError):
        echo.request(1.0, timeout=0.05)
    with pytest.raises(cingulum.TimedOutError):
        asyncio.run(echo.ask(1.0, timeout=0.05))
    with pytest.raises(cingulum.TimedOutError):
        echo.receive(timeout=0.05)
    echo.reactivate()
    echo.send(2.0)
    # Those that nobody waited for any more do not come.
    assert echo.receive(timeout=5) == 2.0


def test_a_pipeline_leads_from_actor_to_actor(runtime):
    for name in ("first", "second"):
        runtime.launch(name, "echo")
    runtime.pipeline(["first", "second"])
    assert runtime["first"].request(7.0, timeout=5) == 7.0
    runtime["first"].send(8.0)
    assert runtime["second"].receive(timeout=5) == 8.0


def test_a_body_that_fails_is_told(runtime):
    failing = runtime.launch("s", "sum", takes=MessageType("Ping", "f8"), answers=MessageType("SumReply", "f8"))
    with pytest.raises(cingulum.CingulumError):
        failing.request(1.0, timeout=5)
    assert failing.state == "FAILED" and failing.failure


def test_terminating_counts_what_was_queued(runtime):
    echo = runtime.launch("echo")
    echo.deactivate()
    for value in range(5):
        echo.send(float(value))
    assert echo.terminate(drain=False) == {"drained": 0, "dropped": 5}
    assert runtime.names == []
    with pytest.raises(cingulum.CingulumError):
        echo.request(1.0, timeout=1)


def test_what_is_not_there_is_refused_by_name(runtime):
    with pytest.raises(cingulum.InvalidArgumentError, match="echo"):
        runtime.launch("absent")
    with pytest.raises(cingulum.InvalidArgumentError, match="takes"):
        runtime.launch("pagerank")
    runtime.launch("echo")
    with pytest.raises(FileExistsError):
        runtime.launch("echo")
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(runtime)
    assert "ACTIVE" in runtime._repr_html_()


def test_actors_from_text_need_cuda():
    if any(device.available and device.backend == "cuda" for device in cingulum.devices()):
        pytest.skip("there is a device of CUDA")
    with pytest.raises(cingulum.UnavailableError, match="cuda"):
        Runtime(source="struct Body {};", bodies={"body": "Body"})
    with pytest.raises(cingulum.InvalidArgumentError, match="together"):
        Runtime(source="struct Body {};")


TEXT = """
struct Number {
  static constexpr const char* message_name = "Number";
  double value = 0;
};
struct Power {
  std::uint32_t exponent;
  template <class Context>
  __device__ int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      double power = 1;
      for (std::uint32_t i = 0; i < exponent; ++i) power *= payload<Number>(message).value;
      context.send(make_reply(message, Number{power}));
    }
    return 0;
  }
};
"""


def test_an_actor_from_text_answers_on_a_gpu():
    found = [device for device in cingulum.devices() if device.backend == "cuda"]
    if not any(device.available for device in found):
        pytest.skip(f"no device of CUDA: {found[0].reason if found else 'none is known'}")
    number = MessageType("Number", "f8")
    with Runtime("cuda", source=TEXT, bodies={"power": "Power"}, seats=2, lanes=32) as runtime:
        cube = runtime.launch("cube", "power", takes=number, answers=number, members=np.uint32(3))
        assert cube.request(5.0, timeout=10) == 125.0
        assert asyncio.run(cube.ask(2.0, timeout=10)) == 8.0
        assert cube.exchange(np.arange(100.0)).tolist() == [value**3 for value in range(100)]


def test_several_threads_ask_at_once(runtime):
    echo = runtime.launch("echo")
    wrong = []

    def ask(offset):
        for value in range(500):
            if echo.request(float(offset + value), timeout=10) != offset + value:
                wrong.append(value)

    threads = [threading.Thread(target=ask, args=(1000 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_blocking_request_is_interrupted():
    code = (
        "from cingulum.ring.native import Runtime\n"
        "with Runtime() as runtime:\n"
        "    echo = runtime.launch('echo'); echo.deactivate()\n"
        "    print('ready', flush=True)\n"
        "    try: echo.request(1.0)\n"
        "    except KeyboardInterrupt: print('interrupted')\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.stdout.read() == "interrupted\n"


def _asks_after_fork(connection, actor):
    try:
        actor.request(1.0, timeout=5)
        connection.send("answered")
    except cingulum.CingulumError as error:
        connection.send(str(error))


def test_a_forked_process_is_refused(runtime):
    echo = runtime.launch("echo")
    ours, theirs = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(target=_asks_after_fork, args=(theirs, echo))
    process.start()
    assert "forked" in ours.recv()
    process.kill()
    process.join()
