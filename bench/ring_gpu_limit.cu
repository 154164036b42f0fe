#include "bench/ring_gpu_limit.hpp"

#include <cuda_runtime.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/ring_bodies.hpp"
#include "ring/cuda/resident_kernel.cuh"

namespace cingulum::bench {
namespace {

constexpr std::uint64_t longest_kernel_ns = 20'000'000'000ull;

void check(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "bench: CUDA: %s\n", cudaGetErrorString(code));
  std::exit(1);
}

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

template <class T>
T* mapped(std::uint64_t count) {
  void* memory = nullptr;
  check(cudaHostAlloc(&memory, count * sizeof(T), cudaHostAllocMapped));
  std::memset(memory, 0, count * sizeof(T));
  return static_cast<T*>(memory);
}

}  // namespace

std::vector<double> raw_round_trips(std::uint32_t count) {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  auto* const in = mapped<std::uint64_t>(16);
  auto* const out = mapped<std::uint64_t>(16);
  std::vector<double> seconds(count);
  echo_words<<<1, 32, 0, stream>>>(in, out, count);
  check(cudaGetLastError());
  for (std::uint32_t i = 1; i <= count; ++i) {
    const auto start = std::chrono::steady_clock::now();
    for (std::uint32_t w = 0; w < 16; ++w) {
      store_host(in[w], std::uint64_t{i} << 32 | w, std::memory_order_relaxed);
    }
    for (std::uint32_t w = 0; w < 16; ++w) {
      while (load_host(out[w], std::memory_order_relaxed) >> 32 != i) {
      }
    }
    seconds[i - 1] = seconds_since(start);
  }
  check(cudaStreamSynchronize(stream));
  check(cudaFreeHost(in));
  check(cudaFreeHost(out));
  check(cudaStreamDestroy(stream));
  return seconds;
}

double raw_messages_per_second(std::uint64_t count) {
  struct Slot {
    std::uint64_t words[8];
  };
  constexpr std::uint32_t capacity = 4096;
  constexpr std::uint64_t batch = 32;
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  auto* const in = mapped<Slot>(capacity);
  auto* const out = mapped<Slot>(capacity);
  auto* const lines = mapped<Lines>(1);
  const auto start = std::chrono::steady_clock::now();
  echo_ring<<<1, 512, 0, stream>>>(lines, reinterpret_cast<const uint4*>(in), reinterpret_cast<uint4*>(out), capacity,
                                   count);
  check(cudaGetLastError());
  std::uint64_t written = 0;
  std::uint64_t taken = 0;
  std::uint64_t credit = 0;
  std::uint64_t wrong = 0;
  while (taken < count) {
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
  const double seconds = seconds_since(start);
  check(cudaStreamSynchronize(stream));
  check(cudaFreeHost(in));
  check(cudaFreeHost(out));
  check(cudaFreeHost(lines));
  check(cudaStreamDestroy(stream));
  return wrong == 0 ? static_cast<double>(count) / seconds : 0;
}

double raw_kernel_to_kernel_seconds(std::uint32_t count) {
  std::uint64_t* words = nullptr;
  check(cudaMalloc(&words, 32 * sizeof(std::uint64_t)));
  check(cudaMemset(words, 0, 32 * sizeof(std::uint64_t)));
  void* arguments[] = {&words, &count};
  check(cudaDeviceSynchronize());
  const auto start = std::chrono::steady_clock::now();
  check(cudaLaunchCooperativeKernel(reinterpret_cast<const void*>(&bounce_between_blocks), dim3(2), dim3(32), arguments,
                                    0, nullptr));
  check(cudaDeviceSynchronize());
  const double seconds = seconds_since(start);
  check(cudaFree(words));
  return seconds / count;
}

std::vector<double> raw_launch_and_synchronise(std::uint32_t count) {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<double> seconds;
  for (std::uint32_t i = 0; i < count + 100; ++i) {
    const auto start = std::chrono::steady_clock::now();
    nothing<<<1, 32, 0, stream>>>();
    check(cudaStreamSynchronize(stream));
    if (i >= 100) seconds.push_back(seconds_since(start));
  }
  check(cudaStreamDestroy(stream));
  return seconds;
}

ring::CudaProgram bench_program() {
  return ring::make_cuda_program<EchoBody, BatchEchoBody, BounceBody>("bench actors", {"echo", "batch_echo", "bounce"});
}

}  // namespace cingulum::bench
