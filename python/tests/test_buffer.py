"""Buffer and kernel: memory of devices, shared with others, and kernels from text."""

import gc
import pickle
import weakref

import numpy as np
import pytest

import cingulum

SCALE = """
@group(0) @binding(0) var<storage, read> from_values: array<f32>;
@group(0) @binding(1) var<storage, read_write> to_values: array<f32>;
struct Numbers { factor: f32, count: u32 }
@group(0) @binding(2) var<uniform> numbers: Numbers;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < numbers.count) { to_values[id.x] = numbers.factor * from_values[id.x]; }
}
"""
SCALE_CUDA = """
extern "C" __global__ void scale(const float* from, float* to, float factor, unsigned count) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) to[i] = factor * from[i];
}
"""
PARAMETERS = {"from_values": "in", "to_values": "out", "factor": "f32", "count": "u32"}


def devices():
    return [device for device in cingulum.devices() if device.available]


def device_of(backend):
    for device in devices():
        if device.backend == backend:
            return device.id
    pytest.skip(f"no device of {backend}")
    return None


@pytest.mark.parametrize("dtype", ["f4", "f8", "f2", "i1", "u2", "i8", "c8", ">i4", "?"])
def test_every_device_keeps_what_it_is_given(dtype):
    values = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for device in devices():
        buffer = cingulum.Buffer.of(values[:, ::-1], device.id)
        assert (buffer.device, buffer.shape, buffer.nbytes) == (device.id, values.shape, values.nbytes)
        assert np.array_equal(buffer.numpy(), values[:, ::-1])
        assert np.array_equal(np.asarray(buffer, dtype="f8" if dtype != "c8" else "c16"), values[:, ::-1])
        assert (cingulum.Buffer(5, device=device.id).numpy() == 0).all()


def test_memory_of_the_cpu_is_shared_without_a_copy():
    buffer = cingulum.Buffer((2, 3), device="cpu")
    first, second = buffer.numpy(), np.from_dlpack(buffer)
    first[1, 2] = 7
    assert second[1, 2] == 7 and np.shares_memory(first, second)
    assert buffer.__dlpack_device__() == (1, 0)
    with pytest.raises(AttributeError):
        buffer.__cuda_array_interface__
    seen = weakref.ref(buffer)
    del buffer, second
    gc.collect()
    assert seen() is not None and first[1, 2] == 7  # kept alive by who sees it
    del first
    gc.collect()
    assert seen() is None


def test_memory_without_an_address_says_so():
    buffer = cingulum.Buffer(4, device=device_of("webgpu"))
    with pytest.raises(cingulum.UnavailableError, match="address"):
        np.from_dlpack(buffer)


def test_memory_of_cuda_is_shared_through_its_interface():
    device = device_of("cuda")
    values = np.arange(6, dtype=np.float32)
    buffer = cingulum.Buffer.of(values, device)
    interface = buffer.__cuda_array_interface__
    assert interface["shape"] == (6,) and interface["typestr"] == "<f4" and interface["data"][0] != 0
    assert np.array_equal(cingulum.Buffer.of(buffer, device).numpy(), values)


def test_what_cannot_be_is_refused():
    buffer = cingulum.Buffer((2, 3), device="cpu")
    with pytest.raises(cingulum.InvalidArgumentError, match="shape"):
        buffer.copy_from(np.zeros(5))
    with pytest.raises(cingulum.InvalidArgumentError, match="shape"):
        cingulum.Buffer((2, 0), device="cpu")
    with pytest.raises(cingulum.InvalidArgumentError, match="dtype"):
        cingulum.Buffer(2, dtype="U3", device="cpu")
    with pytest.raises(TypeError, match="pickled"):
        pickle.dumps(buffer)
    with pytest.raises(cingulum.UnavailableError, match="CUDA C"):
        cingulum.kernel("", "none", {}, device="cpu")


@pytest.mark.parametrize(("backend", "source"), [("webgpu", SCALE), ("cuda", SCALE_CUDA)])
def test_a_kernel_from_text_runs_on_buffers_and_on_arrays(backend, source):
    device = device_of(backend)
    kernel = cingulum.kernel(source, "scale", PARAMETERS, device=device)
    values = np.arange(1000, dtype=np.float32)
    wanted = np.float32(1.5) * values
    result = cingulum.Buffer(1000, device=device)
    block = None if backend == "webgpu" else 64
    kernel(16, block, cingulum.Buffer.of(values, device), result, 1.5, 1000)
    assert np.array_equal(result.numpy(), wanted)
    out = np.zeros(1000, np.float32)
    kernel((16,), block, values, out, 1.5, 500)
    assert np.array_equal(out[:500], wanted[:500]) and (out[500:] == 0).all()
    assert kernel.report["target"]
    short = cingulum.Buffer.of(values, backend)  # the device by another name
    kernel(16, block, short, result, 2.0, 1000)
    assert np.array_equal(result.numpy(), 2 * values)
    with pytest.raises(cingulum.InvalidArgumentError, match="4 arguments"):
        kernel(1, block, values)
    out.flags.writeable = False
    with pytest.raises(cingulum.InvalidStateError, match="read-only"):
        kernel(16, block, values, out, 1.5, 1000)


def test_a_text_that_does_not_compile_says_why():
    device = device_of("webgpu")
    with pytest.raises(cingulum.CompilationError, match="(?i)scale|expected|error"):
        cingulum.kernel("fn scale( {", "scale", PARAMETERS, device=device)
    with pytest.raises(cingulum.InvalidArgumentError, match="known: in"):
        cingulum.kernel(SCALE, "scale", {"a": "float"}, device=device)
