// Blocks of lanes on the host: every lane is a fiber, all run in the calling thread, and a seed decides who runs next.
// A lane may be left at each step that it takes on memory which it shares (step, touch), and waits at barriers that are
// real: block_sync for a whole block, warp_sync and exchange for its first warp. So a machine for
// ring/resident/seat_core.hpp (lane_machine.hpp) runs here as it does on a GPU, without one, and the same again for the
// same seed.
//
// What a lane touches of its block's memory is recorded: two lanes that touch a word without a barrier between them,
// one of them writing, are a complaint, whatever the order in which it happened. So are lanes that meet at different
// barriers, a lane that ends while others wait for it, a body that asks for a lane that is not there, and one that
// looks up the buffer of a message before the slot of the message was acquired.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

namespace cingulum::ring::testing {

class LaneScheduler {
 public:
  static constexpr std::uint32_t warp_lanes = 32;
  static constexpr std::uint32_t most_lanes = 64;

  struct Options {
    std::uint64_t seed = 0;
    std::uint32_t blocks = 1;
    std::uint32_t lanes = most_lanes;  // of each; a multiple of warp_lanes
  };
  // `run_lane(block)` is called on each lane; `memory` is what the lanes of a block share.
  LaneScheduler(const Options& options, std::function<void(std::uint32_t)> run_lane,
                std::vector<std::span<std::byte>> memory);
  ~LaneScheduler();
  LaneScheduler(const LaneScheduler&) = delete;
  LaneScheduler& operator=(const LaneScheduler&) = delete;

  // Called by the host: lanes run for a while that the seed gives. False: all have ended, or there is a complaint.
  bool run_for_a_while();
  [[nodiscard]] bool has_ended() const { return lanes_running_ == 0; }
  [[nodiscard]] const std::string& complaint() const { return complaint_; }
  // How a member of the block's memory at an offset is called in complaints.
  void name_memory(std::function<std::string(std::size_t)> name) { name_memory_ = std::move(name); }
  [[nodiscard]] std::uint64_t switches() const { return switches_; }
  // Whether the compiler reports every access (not in builds with sanitizers), and how many it has reported so far.
  [[nodiscard]] static bool sees_every_access();
  [[nodiscard]] std::uint64_t accesses_seen() const { return accesses_seen_; }
  void count_access() { ++accesses_seen_; }
  // A draw of the same seed, for what the host does.
  [[nodiscard]] std::uint64_t draw() { return random_(); }

  // ---- called by lanes ----

  // The one that runs; null outside of lanes.
  [[nodiscard]] static LaneScheduler* current();
  [[nodiscard]] std::uint32_t block() const { return current_ / lanes_; }
  [[nodiscard]] std::uint32_t lane() const { return current_ % lanes_; }
  [[nodiscard]] std::uint32_t lanes() const { return lanes_; }

  // Before a step on memory that others see: maybe they go first.
  void step() {
    if (--steps_until_switch_ == 0) give_way();
  }
  // Before `bytes` bytes are read or written: a step and a record, where they are the block's memory.
  void touch(const void* address, std::size_t bytes, bool writes);
  // Others go first for certain.
  void give_way();

  // `where` tells barriers apart: lanes that meet at different ones are a complaint.
  void block_sync(const void* file, std::uint32_t where);
  // The first warp's lanes wait for each other; what they did before is seen after.
  void warp_sync(std::uint32_t where);
  // As shuffles and votes of a warp: what each of its lanes gave. What lanes read before is read before others write
  // after; what they wrote before is not yet seen.
  const std::uint64_t* exchange(std::uint64_t value, std::uint32_t where);

  // The running lane has read a message that names a buffer: what was written to the buffer is not seen yet; or it is.
  void set_unacquired(bool is_unacquired);
  // Before the running lane looks up a buffer.
  void check_acquired();

  // Looks for the next message over the bus, each put off by some cycles; and their end.
  void begin_looks(std::uint32_t delay);
  void end_looks() { is_looking_ = false; }
  [[nodiscard]] bool is_looking() const { return is_looking_; }
  [[nodiscard]] std::uint64_t looks() const { return looks_; }
  [[nodiscard]] std::uint64_t delayed_looks() const { return delayed_looks_; }

  // Virtual nanoseconds; every look takes some.
  std::uint64_t look_at_clock() { return clock_ns_ += clock_step_ns_; }
  void pass_time(std::uint64_t nanoseconds) { clock_ns_ += nanoseconds; }

 private:
  enum class Wait : std::uint8_t { none, block, warp, ended };
  enum class Order : std::uint8_t { random, mailbox_first, mailbox_last, priorities };
  struct Fiber;
  struct Stamp {  // of a touch: how many barriers there were before
    std::uint32_t block_syncs = 0;
    std::uint32_t warp_syncs = 0;
    std::uint32_t warp_meetings = 0;  // exchanges as well
  };
  struct Word {
    Stamp written;
    std::uint32_t writer = 0;
    Stamp read_by_mailbox;
    std::uint64_t mailbox_readers = 0;      // since that stamp's block_syncs; other lanes than the mailbox's: all
    std::uint64_t mailbox_readers_now = 0;  // since that stamp
    std::uint32_t read_by_others = 0;
    std::uint64_t other_readers = 0;
  };
  struct Block {
    std::span<std::byte> memory;
    std::vector<Word> words;
    Stamp stamp;
    std::uint32_t at_block = 0;
    std::uint32_t at_warp = 0;
    std::uint32_t ended = 0;
    const void* barrier_file = nullptr;
    std::uint32_t barrier = 0;
    std::uint32_t warp_barrier = 0;
    bool warp_orders = false;
    // Lanes by rank: the lowest that is ready goes first, where there is an order.
    std::uint64_t ready = 0;
    std::uint8_t rank_of[most_lanes] = {};
    std::uint8_t lane_of[most_lanes] = {};
    std::uint64_t given[2][warp_lanes] = {};
    std::uint32_t exchanges[warp_lanes] = {};
  };

  static void enter();
  void begin(std::uint32_t fiber);
  void switch_to(std::uint32_t fiber);  // host_fiber(): back to run_for_a_while
  [[nodiscard]] std::uint32_t host_fiber() const { return static_cast<std::uint32_t>(waits_.size()); }
  [[nodiscard]] std::uint32_t choose();
  void wait(Wait how);
  void wake(Block& block, Wait how);
  void meet_in_warp(std::uint32_t where, bool orders);
  void complain(const std::string& text);
  void draw_pause();
  void set_ready(std::uint32_t fiber, bool is_ready);
  void swap_ranks(Block& block, std::uint32_t a, std::uint32_t b);
  void check_touch(Block& block, std::size_t offset, std::size_t bytes, bool writes);

  const std::uint32_t lanes_;
  const std::function<void(std::uint32_t)> run_lane_;
  std::function<std::string(std::size_t)> name_memory_;
  std::mt19937_64 random_;
  std::vector<Block> blocks_;
  std::vector<Wait> waits_;
  std::vector<bool> unacquired_;
  std::unique_ptr<Fiber[]> fibers_;
  Order order_ = Order::random;
  std::uint32_t mean_steps_ = 1;
  std::uint32_t steps_until_switch_ = 1;
  std::uint64_t clock_ns_ = 1'000'000;
  std::uint64_t clock_step_ns_ = 20;
  std::uint32_t current_ = 0;
  std::uint32_t lanes_running_ = 0;
  std::uint64_t host_turn_ = 0;
  std::uint64_t switches_ = 0;
  std::uint64_t accesses_seen_ = 0;
  std::uint64_t looks_ = 0;
  std::uint64_t delayed_looks_ = 0;
  bool is_looking_ = false;
  std::string complaint_;
};

}  // namespace cingulum::ring::testing
