// What a CUDA block offers to the seat of an actor (ring/resident/seat_core.hpp): loads and stores at their scope,
// collective copies, the block's barrier, clocks and naps. The mailbox functions are called by the first warp, all of
// its lanes, with the same arguments; they answer all lanes alike. PTX says the instruction that is meant, and needs no
// header of libcu++, which NVRTC would not find on a user's machine. ring/resident/emulated_machine.hpp is the same for
// a host thread.
#pragma once

#include "ring/queue/fast_ring.hpp"
#include "ring/resident/seat_layout.hpp"

namespace cingulum::ring {

struct CudaMachine {
  static constexpr std::uint32_t all_lanes = 0xffffffffu;

  __device__ static std::uint32_t lane() { return threadIdx.x; }
  __device__ static std::uint32_t lanes() { return blockDim.x; }
  __device__ static bool in_mailbox() { return threadIdx.x < 32; }
  __device__ static bool is_first() { return threadIdx.x == 0; }
  // The mailbox is the whole block: no other warp must be told.
  __device__ static bool is_one_warp() { return blockDim.x <= 32; }
  __device__ static void block_sync() { __syncthreads(); }

  // Nanoseconds of the device's clock; for all lanes of the mailbox the first lane's.
  __device__ static std::uint64_t time_ns() { return __shfl_sync(all_lanes, own_time_ns(), 0); }
  __device__ static std::uint64_t own_time_ns() {
    std::uint64_t now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
  }
  __device__ static std::uint64_t cycles() {
    return __shfl_sync(all_lanes, static_cast<unsigned long long>(clock64()), 0);
  }
  // The same, each lane its own; any() makes of it what all of the mailbox agree on.
  __device__ static std::uint64_t own_cycles() { return static_cast<std::uint64_t>(clock64()); }
  __device__ static bool any(bool yes) { return __any_sync(all_lanes, yes) != 0; }
  // Cycles between two beats: about a millisecond at the clock rates of GPUs.
  static constexpr std::uint64_t cycles_per_beat = 1500000;
  __device__ static void nap(std::uint32_t nanoseconds) { __nanosleep(nanoseconds); }

  // A word of the other side; system scope serves host and device memory alike.
  __device__ static std::uint64_t load_acquire(const std::uint64_t* word) {
    std::uint64_t value = 0;
    if (is_first()) asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return __shfl_sync(all_lanes, value, 0);
  }
  // The same by each lane for itself.
  __device__ static std::uint64_t load_word(const std::uint64_t* word) {
    std::uint64_t value;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  __device__ static std::uint32_t load_word(const std::uint32_t* word) {
    std::uint32_t value;
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
  }
  // Between blocks of the same device, by each lane for itself.
  __device__ static std::uint64_t load_shared(const std::uint64_t* word) {
    std::uint64_t value;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
  }
  __device__ static void store_shared(std::uint64_t* word, std::uint64_t value) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
  }
  __device__ static void back_off() {}
  __device__ static void store_relaxed(std::uint64_t* word, std::uint64_t value) {
    if (is_first()) asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    __syncwarp();
  }
  // After the barrier of the block this also orders what the other threads wrote (cumulativity).
  __device__ static void store_release(std::uint64_t* word, std::uint64_t value) {
    __syncwarp();
    if (is_first()) asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    __syncwarp();
  }
  // For blocks of the same device: does not wait for what is under way over the bus.
  __device__ static void store_release_on_device(std::uint64_t* word, std::uint64_t value) {
    __syncwarp();
    if (is_first()) asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
    __syncwarp();
  }
  // Between the blocks of one grid, never across the bus.
  __device__ static bool compare_exchange(std::uint64_t* word, std::uint64_t expected, std::uint64_t desired) {
    std::uint64_t seen = 0;
    if (is_first()) {
      seen = atomicCAS(reinterpret_cast<unsigned long long*>(word), static_cast<unsigned long long>(expected),
                       static_cast<unsigned long long>(desired));
      __threadfence();
    }
    return __shfl_sync(all_lanes, seen, 0) == expected;
  }

  struct HostWords {
    std::uint64_t command;
    std::uint64_t beat;
  };
  // Both words by one read over the bus.
  __device__ static HostWords read_host_line(const SeatHostLine* line) {
    std::uint64_t value = 0;
    const std::uint64_t* const words = &line->command;
    if (threadIdx.x < 2)
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(words + threadIdx.x) : "memory");
    return {__shfl_sync(all_lanes, value, 0), __shfl_sync(all_lanes, value, 1)};
  }

  // Takes the slot's message to `to` when all of its words carry `sequence`, and answers 0; negative: not there yet;
  // positive: overtaken by so many sequence numbers. Sixteen lanes read sixteen words: one 128-byte request. With
  // `line`, lanes 16 and 17 fetch the host's words in the same instruction, so that a look at the commands costs no
  // time of its own. Words are relaxed: a message that hands over a buffer is followed by fence().
  template <bool on_device>
  __device__ static std::int32_t read_fast(const FastSlot<Message>* slot, std::uint32_t sequence, Message* to,
                                           const SeatHostLine* line, HostWords* words) {
    const std::uint32_t at = threadIdx.x;
    const std::uint64_t* address = slot->words + (at & 15u);
    if (at >= 16 && line != nullptr) address = &line->command + (at & 1u);
    std::uint64_t value = 0;
    if (at < 16 || (line != nullptr && at < 18)) {
      if constexpr (on_device) {
        if (at < 16) {
          asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(address));
        } else {
          asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address));
        }
      } else {
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address));
      }
    }
    if (line != nullptr) *words = {__shfl_sync(all_lanes, value, 16), __shfl_sync(all_lanes, value, 17)};
    const std::int32_t ahead = at < 16 ? word_ahead(value, sequence) : 0;
    if (__all_sync(all_lanes, ahead == 0)) {
      if (at < 16) reinterpret_cast<std::uint32_t*>(to)[at] = data_of_word(value);
      __syncwarp();
      return 0;
    }
    const std::uint32_t newer = __ballot_sync(all_lanes, ahead > 0);
    if (newer == 0) return -1;
    return __shfl_sync(all_lanes, ahead, __ffs(static_cast<int>(newer)) - 1);
  }

  // The same again and again, at most `polls` times, and nothing between two reads; the first not before `delay` cycles
  // have passed. Answers which read found the message. 0: not there, or overtaken, which read_fast tells, or the host
  // has given another command than `command`: from the second read on the upper half of the warp watches that word with
  // the same instruction.
  template <bool on_device>
  __device__ static std::uint32_t poll_fast(const FastSlot<Message>* slot, std::uint32_t sequence, Message* to,
                                            std::uint32_t polls, std::uint32_t delay, const std::uint64_t* command_word,
                                            std::uint64_t command) {
    const bool watches = threadIdx.x >= 16;
    const std::uint64_t* address = slot->words + (threadIdx.x & 15u);
    std::uint64_t wanted = static_cast<std::uint64_t>(sequence) << 32;
    std::uint64_t looked_at = 0xffffffff00000000u;
    if (delay != 0) {
      const auto start = static_cast<std::uint32_t>(clock());
      while (static_cast<std::uint32_t>(clock()) - start < delay) {
      }
      __syncwarp();
    }
    for (std::uint32_t poll = 1; poll <= polls; ++poll) {
      std::uint64_t value;
      if constexpr (on_device) {
        asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(address));
      } else {
        asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(address));
      }
      const std::uint32_t which = __ballot_sync(all_lanes, (value & looked_at) == wanted);
      if (which == all_lanes) {
        if (threadIdx.x < 16) {
          const std::uint32_t into = static_cast<std::uint32_t>(__cvta_generic_to_shared(to)) + 4 * threadIdx.x;
          asm volatile("st.shared.b32 [%0], %1;" ::"r"(into), "r"(data_of_word(value)) : "memory");
        }
        __syncwarp();
        return poll;
      }
      if constexpr (!on_device) {
        if (poll > 1 && which < 0xffff0000u) return 0;
        if (watches) {
          address = command_word;
          wanted = command;
          looked_at = ~std::uint64_t{0};
        }
      }
    }
    return 0;
  }

  // What the first lane holds goes out under the sending actor's number: sixteen posted 8-byte stores in one request.
  // `staging` lies in the block's memory.
  template <bool on_device>
  __device__ static void write_fast(FastSlot<Message>* slot, std::uint32_t sequence, const Message& message,
                                    Message* staging, std::uint32_t number) {
    const double* const data = reinterpret_cast<const double*>(&message);  // as copy_payload says
    const auto into = static_cast<std::uint32_t>(__cvta_generic_to_shared(staging));
    __syncwarp();
    if (threadIdx.x == 0) {
#pragma unroll
      for (std::uint32_t i = 0; i < 8; i += 2) {
        asm volatile("st.shared.v2.f64 [%0], {%1, %2};" ::"r"(into + 8 * i), "d"(data[i]), "d"(data[i + 1]) : "memory");
      }
    }
    __syncwarp();
    if (threadIdx.x < 16) {
      std::uint32_t mine;
      asm volatile("ld.shared.b32 %0, [%1];" : "=r"(mine) : "r"(into + 4 * threadIdx.x) : "memory");
      if (threadIdx.x == 1) mine = (mine & 0xffffu) | number << 16;
      const std::uint64_t value = sequenced_word(mine, sequence);
      const std::uint64_t* const address = slot->words + threadIdx.x;
      if constexpr (on_device) {
        asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(address), "l"(value));
      } else {
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(address), "l"(value));
      }
    }
    __syncwarp();
  }

  // By each lane for itself: a message of the block's memory into registers.
  __device__ static void load_message(Message& to, const Message& from) {
    double* const data = reinterpret_cast<double*>(&to);
    const auto at = static_cast<std::uint32_t>(__cvta_generic_to_shared(&from));
#pragma unroll
    for (std::uint32_t i = 0; i < 8; i += 2) {
      asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(data[i]), "=d"(data[i + 1]) : "r"(at + 8 * i) : "memory");
    }
  }
  // By each lane for itself, whole words as in copy_payload.
  __device__ static void copy_message(Message& to, const Message& from) {
#pragma unroll
    for (std::uint32_t i = 0; i < 8; ++i) {
      reinterpret_cast<double*>(&to)[i] = reinterpret_cast<const double*>(&from)[i];
    }
  }
  // The block's memory by its own name: the compiler then knows where it lies.
  template <class Shared>
  __device__ static Shared& block_memory(Shared*) {
    extern __shared__ __align__(128) unsigned char shared_bytes[];
    return *reinterpret_cast<Shared*>(shared_bytes);
  }

  // By the mailbox: what the writer of this message did before is seen after. A fence would do the same and wait for
  // everything that is under way over the bus, which takes ten times as long as this one read.
  __device__ static void acquire_slot(const FastSlot<Message>* slot) {
    static_cast<void>(load_word(slot->words + (threadIdx.x & 15u)));
    __syncwarp();
  }
  // Called by every thread: what it wrote before is seen by every reader that sees what is written after; and it sees
  // what others published before what it has read.
  __device__ static void fence() {
    asm volatile("fence.acq_rel.sys;" ::: "memory");
  }

  // By all threads of the block: `count` messages from position `first` of a bulk ring, 16 bytes a thread at a time. A
  // read over the bus takes a microsecond, however many are under way: a thread sends off all of its own before it
  // waits for the first.
  __device__ static void copy_in(Message* to, const Message* slots, std::uint64_t first, std::uint32_t count,
                                 std::uint32_t capacity) {
    constexpr std::uint32_t at_once = 8;
    uint4* const out = reinterpret_cast<uint4*>(to);
    const std::uint32_t pieces = count * 4;
    for (std::uint32_t begin = threadIdx.x; begin < pieces; begin += at_once * blockDim.x) {
      uint4 came[at_once];
#pragma unroll
      for (std::uint32_t k = 0; k < at_once; ++k) {
        const std::uint32_t i = begin + k * blockDim.x;
        const std::uint64_t slot = (first + i / 4) & (capacity - 1);
        if (i < pieces) came[k] = __ldcv(reinterpret_cast<const uint4*>(slots + slot) + (i & 3u));
      }
#pragma unroll
      for (std::uint32_t k = 0; k < at_once; ++k) {
        const std::uint32_t i = begin + k * blockDim.x;
        if (i < pieces) out[i] = came[k];
      }
    }
  }
  __device__ static void copy_out(Message* slots, std::uint64_t first, const Message* from, std::uint32_t count,
                                  std::uint32_t capacity) {
    const uint4* const in = reinterpret_cast<const uint4*>(from);
    for (std::uint32_t i = threadIdx.x; i < count * 4; i += blockDim.x) {
      const std::uint64_t slot = (first + i / 4) & (capacity - 1);
      reinterpret_cast<uint4*>(slots + slot)[i & 3u] = in[i];
    }
  }
  // By all threads: plain words between mapped or device memory and the block's own.
  __device__ static void copy_words(void* to, const void* from, std::uint64_t bytes) {
    const auto* const in = static_cast<const std::uint64_t*>(from);
    auto* const out = static_cast<std::uint64_t*>(to);
    for (std::uint64_t i = threadIdx.x; i < bytes / 8; i += blockDim.x) out[i] = __ldcv(in + i);
  }
  __device__ static void clear_bytes(void* to, std::uint64_t bytes) {
    auto* const out = static_cast<unsigned char*>(to);
    for (std::uint64_t i = threadIdx.x; i < bytes; i += blockDim.x) out[i] = 0;
  }
};

}  // namespace cingulum::ring
