#include "ring/soak/soak_cuda.hpp"

#include <atomic>
#include <chrono>
#include <thread>

#include "ring/cuda/resident_kernel.cuh"
#include "ring/soak/neighbour.hpp"
#include "ring/soak/soak_bodies.hpp"

namespace cingulum::ring::soak {

CudaProgram soak_program() {
  return make_cuda_program<Source, Sink>("soak actors", {"source", "sink"});
}

namespace {

// Arithmetic for about `cycles`, whatever the clock is: a kernel that ends by itself.
__global__ void fill_processors(long long cycles, float* out) {
  const long long start = clock64();
  float value = static_cast<float>(threadIdx.x);
  while (clock64() - start < cycles) {
    for (int i = 0; i < 64; ++i) value = value * 0.999f + 1.0f;
  }
  if (value < 0) *out = value;
}

class CudaNeighbour final : public Neighbour {
 public:
  CudaNeighbour(cudaStream_t stream, int blocks) : stream_(stream), blocks_(blocks) {}
  ~CudaNeighbour() override {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
    cudaStreamDestroy(stream_);
  }
  void start() override {
    thread_ = std::thread([this] {
      while (!stop_) {
        // Two milliseconds each, four waves of blocks in the queue at a time.
        for (int i = 0; i < 4; ++i) fill_processors<<<blocks_, 256, 0, stream_>>>(3'000'000, nullptr);
        while (cudaStreamQuery(stream_) == cudaErrorNotReady && !stop_) {
          std::this_thread::sleep_for(std::chrono::microseconds(200));
        }
        kernels_ += 4;
      }
    });
  }
  [[nodiscard]] std::uint64_t kernels() const override { return kernels_; }

 private:
  cudaStream_t stream_;
  const int blocks_;
  std::atomic<bool> stop_{false};
  std::atomic<std::uint64_t> kernels_{0};
  std::thread thread_;
};

}  // namespace

std::unique_ptr<Neighbour> make_neighbour(std::string& problem) {
  cudaStream_t stream = nullptr;
  int device = 0;
  int processors = 0;
  cudaError_t code = cudaGetDevice(&device);
  if (code == cudaSuccess) code = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  if (code == cudaSuccess) code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (code == cudaSuccess) {
    fill_processors<<<1, 32, 0, stream>>>(1000, nullptr);  // loads the code
    code = cudaStreamSynchronize(stream);
  }
  if (code != cudaSuccess) {
    problem = cudaGetErrorString(code);
    return nullptr;
  }
  // More than fit at once: every processor is full, and the actors' ones as full as they can be.
  return std::make_unique<CudaNeighbour>(stream, 8 * processors);
}

}  // namespace cingulum::ring::soak
