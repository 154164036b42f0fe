#include "ring/workloads/cuda/bare_exchanges.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

namespace cingulum::ring {
namespace {

constexpr std::uint64_t longest_kernel_ns = 20'000'000'000ull;

__device__ std::uint64_t now_ns() {
  std::uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}
__device__ std::uint64_t load(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ std::uint64_t load_acquire(const std::uint64_t* word) {
  std::uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
  return value;
}
__device__ void store(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}
__device__ void store_release(std::uint64_t* word, std::uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// Sixteen lanes, sixteen words; echoes `count` messages.
__global__ void echo_words(const std::uint64_t* in, std::uint64_t* out, std::uint32_t count) {
  const std::uint64_t start = now_ns();
  const std::uint32_t lane = threadIdx.x & 15u;
  for (std::uint32_t expected = 1; expected <= count; ++expected) {
    std::uint64_t word;
    std::uint32_t looks = 0;
    do {
      word = load(in + lane);
      if (++looks % 1024 == 0 && now_ns() - start > longest_kernel_ns) return;
    } while (!__all_sync(0xffffffffu, static_cast<std::uint32_t>(word >> 32) == expected));
    if (threadIdx.x < 16) store(out + lane, word);
  }
}

struct Lines {
  alignas(128) std::uint64_t in_written;
  alignas(128) std::uint64_t in_taken;
  alignas(128) std::uint64_t out_written;
  alignas(128) std::uint64_t out_taken;
};

__global__ void __launch_bounds__(512)
    echo_ring(Lines* lines, const uint4* in, uint4* out, std::uint32_t capacity, std::uint64_t count) {
  __shared__ std::uint64_t seen;
  const std::uint64_t start = now_ns();
  for (std::uint64_t done = 0; done < count;) {
    if (threadIdx.x == 0) {
      std::uint32_t looks = 0;
      do {
        seen = load_acquire(&lines->in_written);
        if (++looks % 1024 == 0 && now_ns() - start > longest_kernel_ns) seen = ~std::uint64_t{0};
      } while (seen == done);
      // The host reads as fast as it writes; its reading is waited for when the outgoing ring is full.
      while (seen != ~std::uint64_t{0} && seen - load_acquire(&lines->out_taken) > capacity) {
        if (++looks % 1024 == 0 && now_ns() - start > longest_kernel_ns) seen = ~std::uint64_t{0};
      }
    }
    __syncthreads();
    const std::uint64_t until = seen;
    if (until == ~std::uint64_t{0}) return;
    for (std::uint64_t i = done * 4 + threadIdx.x; i < until * 4; i += blockDim.x) {
      const std::uint64_t at = (i / 4 & (capacity - 1)) * 4 + (i & 3);
      out[at] = __ldcv(in + at);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      store_release(&lines->out_written, until);
      store(&lines->in_taken, until);
    }
    done = until;
  }
}

__global__ void bounce_between_blocks(std::uint64_t* words, std::uint32_t count) {
  const std::uint64_t start = now_ns();
  std::uint64_t* const mine = words + 16 * blockIdx.x;
  std::uint64_t* const other = words + 16 * (1 - blockIdx.x);
  for (std::uint32_t i = 1; i <= count; ++i) {
    const std::uint32_t lane = threadIdx.x & 15u;
    if (blockIdx.x == 0 && threadIdx.x < 16) {
      asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(other + lane), "l"(std::uint64_t{i}) : "memory");
    }
    std::uint64_t word;
    std::uint32_t looks = 0;
    do {
      asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(mine + lane) : "memory");
      if (++looks % 1024 == 0 && now_ns() - start > longest_kernel_ns) return;
    } while (!__all_sync(0xffffffffu, word == i));
    if (blockIdx.x == 1 && threadIdx.x < 16) {
      asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(other + lane), "l"(std::uint64_t{i}) : "memory");
    }
  }
}

__global__ void nothing() {}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

std::uint64_t load_host(std::uint64_t& word, std::memory_order order) {
  return std::atomic_ref<std::uint64_t>(word).load(order);
}
void store_host(std::uint64_t& word, std::uint64_t value, std::memory_order order) {
  std::atomic_ref<std::uint64_t>(word).store(value, order);
}

// Given back at the end of the scope.
template <class T>
struct Mapped {
  T* memory = nullptr;
  ~Mapped() { static_cast<void>(cudaFreeHost(memory)); }
  [[nodiscard]] cudaError_t allocate(std::uint64_t count) {
    const cudaError_t code = cudaHostAlloc(reinterpret_cast<void**>(&memory), count * sizeof(T), cudaHostAllocMapped);
    if (code == cudaSuccess) std::memset(static_cast<void*>(memory), 0, count * sizeof(T));
    return code;
  }
};
struct Stream {
  cudaStream_t stream = nullptr;
  ~Stream() {
    if (stream != nullptr) static_cast<void>(cudaStreamDestroy(stream));
  }
  [[nodiscard]] cudaError_t create() { return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); }
};

#define CGL_TRY_CUDA(call) \
  if (const cudaError_t code = (call); code != cudaSuccess) return static_cast<int>(code)

}  // namespace

int bare_round_trips(std::uint32_t count, std::vector<double>& seconds) {
  Stream stream;
  Mapped<std::uint64_t> input;
  Mapped<std::uint64_t> output;
  CGL_TRY_CUDA(stream.create());
  CGL_TRY_CUDA(input.allocate(16));
  CGL_TRY_CUDA(output.allocate(16));
  std::uint64_t* const in = input.memory;
  std::uint64_t* const out = output.memory;
  seconds.assign(count, 0);
  echo_words<<<1, 32, 0, stream.stream>>>(in, out, count);
  CGL_TRY_CUDA(cudaGetLastError());
  const auto begin = std::chrono::steady_clock::now();
  for (std::uint32_t i = 1; i <= count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t w = 0; w < 16; ++w) {
      store_host(in[w], std::uint64_t{i} << 32 | w, std::memory_order_relaxed);
    }
    std::uint32_t looks = 0;
    for (std::uint32_t w = 0; w < 16; ++w) {
      while (load_host(out[w], std::memory_order_relaxed) >> 32 != i) {
        // The kernel ends by itself; so must this.
        if (++looks % 65536 == 0 && seconds_since(begin) > 1.5e-9 * longest_kernel_ns) return cudaErrorLaunchTimeout;
      }
    }
    seconds[i - 1] = seconds_since(start);
  }
  return static_cast<int>(cudaStreamSynchronize(stream.stream));
}

int bare_stream(std::uint64_t count, double& messages_per_s) {
  struct Slot {
    std::uint64_t words[8];
  };
  constexpr std::uint32_t capacity = 4096;
  constexpr std::uint64_t batch = 32;
  Stream stream;
  Mapped<Slot> input;
  Mapped<Slot> output;
  Mapped<Lines> words;
  CGL_TRY_CUDA(stream.create());
  CGL_TRY_CUDA(input.allocate(capacity));
  CGL_TRY_CUDA(output.allocate(capacity));
  CGL_TRY_CUDA(words.allocate(1));
  Slot* const in = input.memory;
  Slot* const out = output.memory;
  Lines* const lines = words.memory;
  const auto start = std::chrono::steady_clock::now();
  echo_ring<<<1, 512, 0, stream.stream>>>(lines, reinterpret_cast<const uint4*>(in), reinterpret_cast<uint4*>(out),
                                          capacity, count);
  CGL_TRY_CUDA(cudaGetLastError());
  std::uint64_t written = 0;
  std::uint64_t taken = 0;
  std::uint64_t credit = 0;
  std::uint64_t wrong = 0;
  std::uint64_t looks = 0;
  while (taken < count) {
    if (++looks % 65536 == 0 && seconds_since(start) > 1.5e-9 * longest_kernel_ns) return cudaErrorLaunchTimeout;
    if (written < count && written + batch - credit <= capacity) {
      const std::uint64_t until = std::min(count, written + batch);
      for (; written < until; ++written) {
        for (std::uint64_t w = 0; w < 8; ++w) in[written & (capacity - 1)].words[w] = written + w;
      }
      store_host(lines->in_written, written, std::memory_order_release);
    } else if (written < count) {
      credit = load_host(lines->in_taken, std::memory_order_acquire);
    }
    const std::uint64_t there = load_host(lines->out_written, std::memory_order_acquire);
    for (; taken < there; ++taken) wrong += out[taken & (capacity - 1)].words[7] != taken + 7;
    store_host(lines->out_taken, taken, std::memory_order_release);
  }
  messages_per_s = wrong == 0 ? static_cast<double>(count) / seconds_since(start) : 0;
  return static_cast<int>(cudaStreamSynchronize(stream.stream));
}

int bare_kernel_to_kernel(std::uint32_t count, double& seconds) {
  struct DeviceWords {
    std::uint64_t* words = nullptr;
    ~DeviceWords() { static_cast<void>(cudaFree(words)); }
  } memory;
  Stream stream;
  CGL_TRY_CUDA(stream.create());
  CGL_TRY_CUDA(cudaMalloc(&memory.words, 32 * sizeof(std::uint64_t)));
  CGL_TRY_CUDA(cudaMemsetAsync(memory.words, 0, 32 * sizeof(std::uint64_t), stream.stream));
  CGL_TRY_CUDA(cudaStreamSynchronize(stream.stream));
  void* arguments[] = {&memory.words, &count};
  const auto start = std::chrono::steady_clock::now();
  CGL_TRY_CUDA(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&bounce_between_blocks), dim3(2), dim3(32),
                                           arguments, 0, stream.stream));
  CGL_TRY_CUDA(cudaStreamSynchronize(stream.stream));
  seconds = seconds_since(start) / count;
  return 0;
}

int launch_and_synchronise(std::uint32_t count, std::vector<double>& seconds) {
  Stream stream;
  CGL_TRY_CUDA(stream.create());
  seconds.clear();
  for (std::uint32_t i = 0; i < count + 100; ++i) {
    const auto start = std::chrono::steady_clock::now();
    nothing<<<1, 32, 0, stream.stream>>>();
    CGL_TRY_CUDA(cudaStreamSynchronize(stream.stream));
    if (i >= 100) seconds.push_back(seconds_since(start));
  }
  return 0;
}

}  // namespace cingulum::ring
