#include "bench/device_ceiling.hpp"

#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

namespace cingulum::bench {
namespace {

constexpr int warm_up = 3;

void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "bench: CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

__global__ void copy_kernel(const uint4* __restrict__ from, uint4* __restrict__ to, std::uint64_t count) {
  const std::uint64_t stride = std::uint64_t{gridDim.x} * blockDim.x;
  for (std::uint64_t i = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

__global__ void empty_kernel() {}

class Stream {
 public:
  Stream() { check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { check(cudaStreamDestroy(stream_)); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_;
};

struct DeviceBytes {
  explicit DeviceBytes(std::uint64_t bytes) { check(cudaMalloc(&data, bytes)); }
  ~DeviceBytes() { check(cudaFree(data)); }
  void* data = nullptr;
};

struct PinnedBytes {
  explicit PinnedBytes(std::uint64_t bytes) { check(cudaHostAlloc(&data, bytes, cudaHostAllocDefault)); }
  ~PinnedBytes() { check(cudaFreeHost(data)); }
  void* data = nullptr;
};

// Seconds between events around `body` on the stream.
template <class Body>
std::vector<double> time_on_device(cudaStream_t stream, int repetitions, Body&& body) {
  cudaEvent_t start, end;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&end));
  std::vector<double> seconds;
  for (int i = -warm_up; i < repetitions; ++i) {
    check(cudaEventRecord(start, stream));
    body();
    check(cudaEventRecord(end, stream));
    check(cudaEventSynchronize(end));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, start, end));
    if (i >= 0) seconds.push_back(milliseconds * 1e-3);
  }
  check(cudaEventDestroy(start));
  check(cudaEventDestroy(end));
  return seconds;
}

template <class Body, class After>
std::vector<double> time_on_host(int repetitions, Body&& body, After&& after) {
  std::vector<double> seconds;
  for (int i = -warm_up; i < repetitions; ++i) {
    const auto start = std::chrono::steady_clock::now();
    body();
    const auto end = std::chrono::steady_clock::now();
    after();
    if (i >= 0) seconds.push_back(std::chrono::duration<double>(end - start).count());
  }
  return seconds;
}

}  // namespace

std::vector<double> raw_cuda_upload(std::uint64_t bytes, int repetitions) {
  const Stream stream;
  const DeviceBytes device(bytes);
  const PinnedBytes host(bytes);
  return time_on_device(stream, repetitions,
                        [&] { check(cudaMemcpyAsync(device.data, host.data, bytes, cudaMemcpyHostToDevice, stream)); });
}

std::vector<double> raw_cuda_download(std::uint64_t bytes, int repetitions) {
  const Stream stream;
  const DeviceBytes device(bytes);
  const PinnedBytes host(bytes);
  return time_on_device(stream, repetitions,
                        [&] { check(cudaMemcpyAsync(host.data, device.data, bytes, cudaMemcpyDeviceToHost, stream)); });
}

std::vector<double> raw_cuda_copy(std::uint64_t bytes, int repetitions) {
  const Stream stream;
  const DeviceBytes from(bytes), to(bytes);
  return time_on_device(stream, repetitions,
                        [&] { check(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDeviceToDevice, stream)); });
}

std::vector<double> raw_cuda_copy_kernel(std::uint64_t bytes, int repetitions) {
  const Stream stream;
  const DeviceBytes from(bytes), to(bytes);
  int processors = 0;
  check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  return time_on_device(stream, repetitions, [&] {
    copy_kernel<<<processors * 16, 512, 0, stream>>>(static_cast<const uint4*>(from.data), static_cast<uint4*>(to.data),
                                                     bytes / sizeof(uint4));
    check(cudaGetLastError());
  });
}

std::vector<double> raw_cuda_empty_launch_call(int repetitions) {
  const Stream stream;
  return time_on_host(
      repetitions, [&] { empty_kernel<<<1, 32, 0, stream>>>(); }, [&] { check(cudaStreamSynchronize(stream)); });
}

std::vector<double> raw_cuda_empty_launch_and_wait(int repetitions) {
  const Stream stream;
  return time_on_host(
      repetitions,
      [&] {
        empty_kernel<<<1, 32, 0, stream>>>();
        check(cudaStreamSynchronize(stream));
      },
      [] {});
}

std::vector<double> raw_cuda_event_record(int repetitions) {
  const Stream stream;
  cudaEvent_t event = nullptr;
  return time_on_host(
      repetitions,
      [&] {
        check(cudaEventCreate(&event));
        check(cudaEventRecord(event, stream));
      },
      [&] {
        check(cudaEventSynchronize(event));
        check(cudaEventDestroy(event));
      });
}

}  // namespace cingulum::bench
