// A host thread in the place of a CUDA block (ring/cuda/cuda_machine.cuh): one lane, host memory as mapped memory. The
// seat's templates run on it in the tests, so that protocol, commands, lease, drain and parking are tested without a
// GPU; the host's own end of the rings is ring/queue/fast_ring.hpp and ring/queue/bulk_ring.hpp as everywhere.
#pragma once

#include <chrono>
#include <cstring>
#include <thread>

#include "ring/queue/atomics.hpp"
#include "ring/queue/fast_ring.hpp"
#include "ring/resident/seat_layout.hpp"

namespace cingulum::ring {

struct EmulatedMachine {
  // Whatever the grid's lanes: one does it all.
  template <class Shared, class RunLane>
  static void run_block(std::uint32_t, Shared&, const RunLane& run_lane) {
    run_lane();
  }
  static std::uint32_t lane() { return 0; }
  static std::uint32_t lanes() { return 1; }
  static bool in_mailbox() { return true; }
  static bool is_first() { return true; }
  static bool is_one_warp() { return true; }
  static void block_sync() {}

  static std::uint64_t time_ns() {
    return static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
            .count());
  }
  static std::uint64_t own_time_ns() { return time_ns(); }
  static std::uint64_t cycles() { return time_ns(); }
  static std::uint64_t own_cycles() { return time_ns(); }
  static bool any(bool yes) { return yes; }
  static constexpr std::uint64_t cycles_per_beat = 1000000;
  // Many emulated blocks share few processors: a nap gives way.
  static void nap(std::uint32_t nanoseconds) {
    if (nanoseconds < 1000) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
    }
  }

  static std::uint64_t load_acquire(const std::uint64_t* word) { return HostAtomics::load_acquire(*word); }
  template <class T>
  static T load_word(const T* word) {
    return HostAtomics::load_acquire(*word);
  }
  static std::uint64_t load_shared(const std::uint64_t* word) { return HostAtomics::load_acquire(*word); }
  static void store_shared(std::uint64_t* word, std::uint64_t value) { HostAtomics::store_release(*word, value); }
  static void back_off() { std::this_thread::yield(); }
  static void store_relaxed(std::uint64_t* word, std::uint64_t value) { HostAtomics::store_relaxed(*word, value); }
  static void store_release(std::uint64_t* word, std::uint64_t value) { HostAtomics::store_release(*word, value); }
  static void store_release_on_device(std::uint64_t* word, std::uint64_t value) { store_release(word, value); }
  static bool compare_exchange(std::uint64_t* word, std::uint64_t expected, std::uint64_t desired) {
    return std::atomic_ref<std::uint64_t>(*word).compare_exchange_strong(expected, desired);
  }

  struct HostWords {
    std::uint64_t command;
    std::uint64_t beat;
  };
  static HostWords read_host_line(const SeatHostLine* line) {
    return {HostAtomics::load_acquire(line->command), HostAtomics::load_acquire(line->beat)};
  }

  template <bool on_device>
  static std::int32_t read_fast(const FastSlot<Message>* slot, std::uint32_t sequence, Message* to,
                                const SeatHostLine* line, HostWords* words) {
    if (line != nullptr) *words = read_host_line(line);
    return load_words<HostAtomics>(*slot, *to, sequence);
  }
  template <bool on_device>
  static std::uint32_t poll_fast(const FastSlot<Message>* slot, std::uint32_t sequence, Message* to,
                                 std::uint32_t polls, std::uint32_t, const std::uint64_t* command_word,
                                 std::uint64_t command) {
    for (std::uint32_t poll = 1; poll <= polls; ++poll) {
      if (command_word != nullptr && HostAtomics::load_acquire(*command_word) != command) return 0;
      const std::int32_t ahead = load_words<HostAtomics>(*slot, *to, sequence);
      if (ahead >= 0) return ahead == 0 ? poll : 0;
      HostAtomics::pause();
    }
    return 0;
  }
  template <bool on_device>
  static void write_fast(FastSlot<Message>* slot, std::uint32_t sequence, const Message& message, Message* staging,
                         std::uint32_t number) {
    *staging = message;
    staging->set_source(static_cast<std::uint16_t>(number));
    store_words<HostAtomics>(*slot, *staging, sequence);
  }
  static void load_message(Message& to, const Message& from) { to = from; }
  static void copy_message(Message& to, const Message& from) { to = from; }
  template <class Shared>
  static Shared& block_memory(Shared* memory) {
    return *memory;
  }
  static void acquire_slot(const FastSlot<Message>* slot) {
    static_cast<void>(HostAtomics::load_acquire(slot->words[FastSlot<Message>::word_count - 1]));
  }
  static void fence() {}  // the words of the slots hand over here

  static void copy_in(Message* to, const Message* slots, std::uint64_t first, std::uint32_t count,
                      std::uint32_t capacity) {
    for (std::uint32_t i = 0; i < count; ++i) to[i] = slots[(first + i) & (capacity - 1)];
  }
  static void copy_out(Message* slots, std::uint64_t first, const Message* from, std::uint32_t count,
                       std::uint32_t capacity) {
    for (std::uint32_t i = 0; i < count; ++i) slots[(first + i) & (capacity - 1)] = from[i];
  }
  static void copy_words(void* to, const void* from, std::uint64_t bytes) { std::memcpy(to, from, bytes); }
  static void clear_bytes(void* to, std::uint64_t bytes) { std::memset(to, 0, bytes); }
};

}  // namespace cingulum::ring
