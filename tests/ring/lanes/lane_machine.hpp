// The machine of a seat (ring/resident/seat_core.hpp) whose lanes are fibers: what ring/cuda/cuda_machine.cuh does,
// lane for lane and barrier for barrier, on a LaneScheduler. Where CUDA orders memory (__syncwarp) warp_sync stands,
// where it does not (shuffles, votes) exchange does.
#pragma once

#include <cstring>

#include "ring/lanes/lane_scheduler.hpp"
#include "ring/queue/atomics.hpp"
#include "ring/queue/fast_ring.hpp"
#include "ring/resident/seat_layout.hpp"

namespace cingulum::ring::testing {

struct LaneMachine {
  static LaneScheduler& scheduler() { return *LaneScheduler::current(); }

  static std::uint32_t lane() { return scheduler().lane(); }
  static std::uint32_t lanes() { return scheduler().lanes(); }
  static bool in_mailbox() { return lane() < LaneScheduler::warp_lanes; }
  static bool is_first() { return lane() == 0; }
  static bool is_one_warp() { return lanes() <= LaneScheduler::warp_lanes; }
  static void block_sync(const char* file = __builtin_FILE(), std::uint32_t line = __builtin_LINE()) {
    scheduler().block_sync(file, line);
  }

  static std::uint64_t own_time_ns() { return scheduler().look_at_clock(); }
  static std::uint64_t own_cycles() { return scheduler().look_at_clock(); }
  static std::uint64_t time_ns() { return from(0, own_time_ns()); }
  static std::uint64_t cycles() { return from(0, own_cycles()); }
  static bool any(bool yes) { return votes(yes) != 0; }
  static constexpr std::uint64_t cycles_per_beat = 1000000;
  static void nap(std::uint32_t nanoseconds) {
    if (is_first()) scheduler().pass_time(nanoseconds);
    scheduler().give_way();
  }

  static std::uint64_t load_acquire(const std::uint64_t* word) {
    std::uint64_t value = 0;
    if (is_first()) value = load(word);
    return from(0, value);
  }
  template <class T>
  static T load_word(const T* word) {  // of the table of buffers
    scheduler().check_acquired();
    return load(word);
  }
  static std::uint64_t load_shared(const std::uint64_t* word) { return load(word); }
  static void store_shared(std::uint64_t* word, std::uint64_t value) { store(word, value); }
  static void back_off() { scheduler().give_way(); }
  static void store_relaxed(std::uint64_t* word, std::uint64_t value) {
    if (is_first()) store(word, value);
    scheduler().warp_sync(__LINE__);
  }
  static void store_release(std::uint64_t* word, std::uint64_t value) {
    scheduler().warp_sync(__LINE__);
    if (is_first()) store(word, value);
    scheduler().warp_sync(__LINE__);
  }
  static void store_release_on_device(std::uint64_t* word, std::uint64_t value) { store_release(word, value); }
  static bool compare_exchange(std::uint64_t* word, std::uint64_t expected, std::uint64_t desired) {
    std::uint64_t seen = 0;
    if (is_first()) {
      scheduler().step();
      seen = *word;
      if (seen == expected) *word = desired;
    }
    return from(0, seen) == expected;
  }

  struct HostWords {
    std::uint64_t command;
    std::uint64_t beat;
  };
  static HostWords read_host_line(const SeatHostLine* line) {
    std::uint64_t value = 0;
    if (lane() < 2) value = load(&line->command + lane());
    const std::uint64_t command = from(0, value);
    return {command, from(1, value)};
  }

  template <bool on_device>
  static std::int32_t read_fast(const FastSlot<Message>* slot, std::uint32_t sequence, Message* to,
                                const SeatHostLine* line, HostWords* words) {
    const std::uint32_t at = lane();
    std::uint64_t value = 0;
    if (at < 16) {
      value = load(slot->words + at);
    } else if (line != nullptr && at < 18) {
      value = load(&line->command + (at & 1u));
    }
    if (line != nullptr) {
      const std::uint64_t command = from(16, value);
      *words = {command, from(17, value)};
    }
    const std::int32_t ahead = at < 16 ? word_ahead(value, sequence) : 0;
    if (votes(ahead == 0) == all_lanes) {
      if (at < 16) write_word(reinterpret_cast<std::uint32_t*>(to) + at, data_of_word(value));
      scheduler().warp_sync(__LINE__);
      scheduler().set_unacquired(to->has(mark_handle));
      return 0;
    }
    const std::uint32_t newer = votes(ahead > 0);
    if (newer == 0) return -1;
    return static_cast<std::int32_t>(
        from(static_cast<std::uint32_t>(__builtin_ctz(newer)), static_cast<std::uint32_t>(ahead)));
  }
  template <bool on_device>
  static std::uint32_t poll_fast(const FastSlot<Message>* slot, std::uint32_t sequence, Message* to,
                                 std::uint32_t polls, std::uint32_t delay, const std::uint64_t* command_word,
                                 std::uint64_t command) {
    if (!on_device && is_first()) scheduler().begin_looks(delay);
    const std::uint32_t found = look<on_device>(slot, sequence, to, polls, command_word, command);
    if (!on_device && is_first()) scheduler().end_looks();
    return found;
  }
  template <bool on_device>
  static std::uint32_t look(const FastSlot<Message>* slot, std::uint32_t sequence, Message* to, std::uint32_t polls,
                            const std::uint64_t* command_word, std::uint64_t command) {
    const bool watches = lane() >= 16;
    const std::uint64_t* address = slot->words + (lane() & 15u);
    std::uint64_t wanted = static_cast<std::uint64_t>(sequence) << 32;
    std::uint64_t looked_at = 0xffffffff00000000u;
    for (std::uint32_t poll = 1; poll <= polls; ++poll) {
      const std::uint64_t value = load(address);
      const std::uint32_t which = votes((value & looked_at) == wanted);
      if (which == all_lanes) {
        if (!watches) write_word(reinterpret_cast<std::uint32_t*>(to) + lane(), data_of_word(value));
        scheduler().warp_sync(__LINE__);
        scheduler().set_unacquired(to->has(mark_handle));
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
  template <bool on_device>
  static void write_fast(FastSlot<Message>* slot, std::uint32_t sequence, const Message& message, Message* staging,
                         std::uint32_t number) {
    scheduler().warp_sync(__LINE__);
    if (is_first()) copy_by_words(staging, &message, sizeof(Message));
    scheduler().warp_sync(__LINE__);
    if (lane() < 16) {
      std::uint32_t mine = 0;
      copy_by_words(&mine, reinterpret_cast<const std::uint32_t*>(staging) + lane(), sizeof mine);
      if (lane() == 1) mine = (mine & 0xffffu) | number << 16;
      store(slot->words + lane(), sequenced_word(mine, sequence));
    }
    scheduler().warp_sync(__LINE__);
  }
  static void load_message(Message& to, const Message& from) { copy_by_words(&to, &from, sizeof(Message)); }
  static void copy_message(Message& to, const Message& from) { copy_by_words(&to, &from, sizeof(Message)); }
  template <class Shared>
  static Shared& block_memory(Shared* memory) {
    scheduler().step();
    return *memory;
  }
  static void acquire_slot(const FastSlot<Message>* slot) {
    static_cast<void>(load(slot->words + (lane() & 15u)));
    scheduler().warp_sync(__LINE__);
    scheduler().set_unacquired(false);
  }
  static void fence() { scheduler().step(); }

  static void copy_in(Message* to, const Message* slots, std::uint64_t first, std::uint32_t count,
                      std::uint32_t capacity) {
    for (std::uint32_t i = lane(); i < count * 4; i += lanes()) {
      const std::uint64_t slot = (first + i / 4) & (capacity - 1);
      copy_by_words(reinterpret_cast<std::byte*>(to) + 16 * i,
                    reinterpret_cast<const std::byte*>(slots + slot) + 16 * (i & 3u), 16);
    }
  }
  static void copy_out(Message* slots, std::uint64_t first, const Message* from, std::uint32_t count,
                       std::uint32_t capacity) {
    for (std::uint32_t i = lane(); i < count * 4; i += lanes()) {
      const std::uint64_t slot = (first + i / 4) & (capacity - 1);
      copy_by_words(reinterpret_cast<std::byte*>(slots + slot) + 16 * (i & 3u),
                    reinterpret_cast<const std::byte*>(from) + 16 * i, 16);
    }
  }
  static void copy_words(void* to, const void* from, std::uint64_t bytes) {
    for (std::uint64_t i = lane(); i < bytes / 8; i += lanes()) {
      copy_by_words(static_cast<std::byte*>(to) + 8 * i, static_cast<const std::byte*>(from) + 8 * i, 8);
    }
  }
  static void clear_bytes(void* to, std::uint64_t bytes) {
    // By words of four bytes, which is what the scheduler keeps a record of, each by the lane that clears its first
    // byte on a GPU: seldom the lane that uses the word.
    if (lane() % 4 != 0) return;
    for (std::uint64_t i = lane() / 4; i < bytes / 4; i += lanes() / 4)
      write_word(static_cast<std::uint32_t*>(to) + i, 0);
  }

 private:
  static constexpr std::uint32_t all_lanes = 0xffffffffu;

  template <class T>
  static T load(const T* word) {
    scheduler().step();
    return HostAtomics::load_acquire(*word);
  }
  template <class T>
  static void store(T* word, T value) {
    scheduler().step();
    HostAtomics::store_release(*word, value);
  }
  static std::uint64_t from(std::uint32_t lane, std::uint64_t mine, std::uint32_t line = __builtin_LINE()) {
    return scheduler().exchange(mine, line)[lane];
  }
  static std::uint32_t votes(bool yes, std::uint32_t line = __builtin_LINE()) {
    const std::uint64_t* const given = scheduler().exchange(yes ? 1 : 0, line);
    std::uint32_t bits = 0;
    for (std::uint32_t i = 0; i < LaneScheduler::warp_lanes; ++i) bits |= static_cast<std::uint32_t>(given[i]) << i;
    return bits;
  }
  static void write_word(std::uint32_t* to, std::uint32_t value) {
    scheduler().touch(to, 4, true);
    std::memcpy(to, &value, 4);
  }
  static void copy_by_words(void* to, const void* from, std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += 4) {
      std::uint32_t word = 0;
      scheduler().touch(static_cast<const std::byte*>(from) + at, 4, false);
      std::memcpy(&word, static_cast<const std::byte*>(from) + at, 4);
      scheduler().touch(static_cast<std::byte*>(to) + at, 4, true);
      std::memcpy(static_cast<std::byte*>(to) + at, &word, 4);
    }
  }
};

}  // namespace cingulum::ring::testing
