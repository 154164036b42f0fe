#include "ring/lanes/lane_scheduler.hpp"

#include <fmt/format.h>
#include <ucontext.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstdlib>

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

// Where nothing watches the stacks, a switch of them is ten instructions in place of two system calls.
#if defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define CGL_OWN_STACK_SWITCH 1
extern "C" void cgl_switch_stacks(void** from, void* to);
asm(R"(
.text
.globl cgl_switch_stacks
.hidden cgl_switch_stacks
.type cgl_switch_stacks, @function
cgl_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size cgl_switch_stacks, .-cgl_switch_stacks
)");
#else
#define CGL_OWN_STACK_SWITCH 0
#endif

namespace cingulum::ring::testing {
namespace {

constexpr std::size_t stack_bytes = std::size_t{256} << 10;
constexpr std::uint32_t longest_host_pause = 4096;  // switches

LaneScheduler*& running() {
  static thread_local LaneScheduler* one = nullptr;
  return one;
}

// Stacks are kept for the next scheduler of this thread: hundreds of seeds use the same pages.
class StackPool {
 public:
  ~StackPool() {
    for (void* const stack : free_) std::free(stack);
  }
  void* take() {
    if (free_.empty()) return std::aligned_alloc(4096, stack_bytes);
    void* const stack = free_.back();
    free_.pop_back();
    return stack;
  }
  void give(void* stack) { free_.push_back(stack); }

 private:
  std::vector<void*> free_;
};
StackPool& stacks() {
  static thread_local StackPool pool;
  return pool;
}

}  // namespace

struct LaneScheduler::Fiber {
  void* stack = nullptr;
#if CGL_OWN_STACK_SWITCH
  void* at = nullptr;
#else
  ucontext_t context = {};
#endif
#if defined(__SANITIZE_THREAD__)
  void* watched = nullptr;
#endif
};

LaneScheduler* LaneScheduler::current() {
  return running();
}

bool LaneScheduler::sees_every_access() {
#if defined(CGL_LANE_HOOKS)
  return true;
#else
  return false;
#endif
}

LaneScheduler::LaneScheduler(const Options& options, std::function<void(std::uint32_t)> run_lane,
                             std::vector<std::span<std::byte>> memory)
    : lanes_(options.lanes),
      run_lane_(std::move(run_lane)),
      random_(options.seed),
      blocks_(options.blocks),
      waits_(static_cast<std::size_t>(options.blocks) * options.lanes, Wait::none),
      unacquired_(waits_.size()),
      fibers_(std::make_unique<Fiber[]>(waits_.size() + 1)),
      lanes_running_(static_cast<std::uint32_t>(waits_.size())) {
  assert(lanes_ % warp_lanes == 0 && lanes_ <= most_lanes && memory.size() == options.blocks);
  // Switching at every step finds other things than lanes that run far ahead.
  constexpr std::uint32_t means[] = {3, 20, 150, 2000};
  constexpr std::uint64_t clock_steps[] = {20, 1000, 20'000};
  order_ = static_cast<Order>(random_() % 4);
  mean_steps_ = means[random_() % 4];
  clock_step_ns_ = clock_steps[random_() % 3];
  for (std::uint32_t b = 0; b < options.blocks; ++b) {
    blocks_[b].memory = memory[b];
    blocks_[b].words.resize((memory[b].size() + 3) / 4);
    Block& block = blocks_[b];
    block.stamp = {1, 1, 1};
    for (std::uint32_t rank = 0; rank < lanes_; ++rank) {
      const std::uint32_t lane = order_ == Order::mailbox_last ? lanes_ - 1 - rank : rank;
      block.lane_of[rank] = static_cast<std::uint8_t>(lane);
      block.rank_of[lane] = static_cast<std::uint8_t>(rank);
    }
    if (order_ == Order::priorities) {
      for (std::uint32_t lane = 0; lane < lanes_; ++lane) {
        swap_ranks(block, lane, static_cast<std::uint32_t>(random_() % lanes_));
      }
    }
    block.ready = lanes_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << lanes_) - 1;
  }
  for (std::uint32_t fiber = 0; fiber < waits_.size(); ++fiber) begin(fiber);
#if defined(__SANITIZE_THREAD__)
  fibers_[host_fiber()].watched = __tsan_get_current_fiber();
#endif
  current_ = host_fiber();
  draw_pause();
}

LaneScheduler::~LaneScheduler() {
  // Lanes that did not end are forgotten: nothing on their stacks owns anything.
  for (std::uint32_t fiber = 0; fiber < waits_.size(); ++fiber) {
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(fibers_[fiber].watched);
#endif
    stacks().give(fibers_[fiber].stack);
  }
}

void LaneScheduler::begin(std::uint32_t index) {
  Fiber& fiber = fibers_[index];
  fiber.stack = stacks().take();
#if CGL_OWN_STACK_SWITCH
  // As cgl_switch_stacks leaves a stack: six registers, and where to go on; then the stack is as after a call.
  auto* top = reinterpret_cast<void**>(static_cast<std::byte*>(fiber.stack) + stack_bytes);
  *--top = nullptr;
  *--top = reinterpret_cast<void*>(&LaneScheduler::enter);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber.at = top;
#else
  getcontext(&fiber.context);
  fiber.context.uc_stack.ss_sp = fiber.stack;
  fiber.context.uc_stack.ss_size = stack_bytes;
  makecontext(&fiber.context, &LaneScheduler::enter, 0);
#endif
#if defined(__SANITIZE_THREAD__)
  fiber.watched = __tsan_create_fiber(0);
#endif
}

void LaneScheduler::switch_to(std::uint32_t fiber) {
  if (fiber == current_) return;
  const std::uint32_t from = current_;
  current_ = fiber;
  ++switches_;
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(fibers_[fiber].watched, 0);
#endif
#if CGL_OWN_STACK_SWITCH
  cgl_switch_stacks(&fibers_[from].at, fibers_[fiber].at);
#else
  swapcontext(&fibers_[from].context, &fibers_[fiber].context);
#endif
}

void LaneScheduler::enter() {
  LaneScheduler& self = *running();
  self.run_lane_(self.block());
  Block& block = self.blocks_[self.block()];
  ++block.ended;
  --self.lanes_running_;
  self.wait(Wait::ended);
  std::abort();  // nobody wakes it
}

void LaneScheduler::draw_pause() {
  steps_until_switch_ = 1 + static_cast<std::uint32_t>(random_() % (2 * mean_steps_ - 1));
}

bool LaneScheduler::run_for_a_while() {
  if (!complaint_.empty() || lanes_running_ == 0) return false;
  host_turn_ = switches_ + (random_() % 4 == 0 ? random_() % longest_host_pause : random_() % 64) + 1;
  LaneScheduler* const before = running();
  running() = this;
  switch_to(choose());
  running() = before;
  return complaint_.empty() && lanes_running_ != 0;
}

// Some fiber that can run; the host when it is its turn, and when no fiber can.
std::uint32_t LaneScheduler::choose() {
  if (!complaint_.empty() || (switches_ >= host_turn_ && current_ != host_fiber())) return host_fiber();
  const auto first = static_cast<std::uint32_t>(blocks_.size() == 1 ? 0 : random_() % blocks_.size());
  for (std::uint32_t i = 0; i < blocks_.size(); ++i) {
    const auto at = static_cast<std::uint32_t>((first + i) % blocks_.size());
    const Block& block = blocks_[at];
    if (block.ready == 0) continue;
    std::uint32_t rank = 0;
    if (order_ == Order::random) {
      const auto turn = static_cast<int>(random_() % 64);
      rank = (static_cast<std::uint32_t>(std::countr_zero(std::rotr(block.ready, turn))) +
              static_cast<std::uint32_t>(turn)) %
             64;
    } else {
      rank = static_cast<std::uint32_t>(std::countr_zero(block.ready));
    }
    return at * lanes_ + block.lane_of[rank];
  }
  return host_fiber();
}

void LaneScheduler::set_ready(std::uint32_t fiber, bool is_ready) {
  Block& block = blocks_[fiber / lanes_];
  const std::uint64_t bit = std::uint64_t{1} << block.rank_of[fiber % lanes_];
  block.ready = is_ready ? block.ready | bit : block.ready & ~bit;
}

void LaneScheduler::swap_ranks(Block& block, std::uint32_t a, std::uint32_t b) {
  const std::uint32_t rank_a = block.rank_of[a];
  const std::uint32_t rank_b = block.rank_of[b];
  const std::uint64_t differ = ((block.ready >> rank_a) ^ (block.ready >> rank_b)) & 1u;
  block.ready ^= differ << rank_a | differ << rank_b;
  if (rank_a == rank_b) return;
  std::swap(block.rank_of[a], block.rank_of[b]);
  std::swap(block.lane_of[rank_a], block.lane_of[rank_b]);
}

void LaneScheduler::give_way() {
  draw_pause();
  // In an order the one that ran would be chosen again: it changes places with another, of its own kind where the
  // mailbox goes first or last.
  if (order_ != Order::random) {
    const std::uint32_t first = order_ == Order::priorities || lane() < warp_lanes ? 0 : warp_lanes;
    const std::uint32_t count = order_ == Order::priorities ? lanes_ : warp_lanes;
    swap_ranks(blocks_[block()], lane(), first + static_cast<std::uint32_t>(random_() % count));
  }
  switch_to(choose());
}

void LaneScheduler::wait(Wait how) {
  waits_[current_] = how;
  set_ready(current_, false);
  const Block& mine = blocks_[block()];
  if (mine.ready == 0 && mine.ended != 0 && mine.ended != lanes_) {
    complain(fmt::format("{} lanes of block {} have ended, {} wait at a barrier", mine.ended, block(),
                         mine.at_block + mine.at_warp));
  } else if (mine.ready == 0 && mine.at_block != 0 && mine.at_warp != 0) {
    complain(fmt::format("block {}: {} lanes wait at a barrier of the block (line {}), {} at one of the warp", block(),
                         mine.at_block, mine.barrier, mine.at_warp));
  }
  switch_to(choose());
}

void LaneScheduler::wake(Block& block, Wait how) {
  const auto first = static_cast<std::uint32_t>(&block - blocks_.data()) * lanes_;
  for (std::uint32_t fiber = first; fiber < first + lanes_; ++fiber) {
    if (waits_[fiber] != how) continue;
    waits_[fiber] = Wait::none;
    set_ready(fiber, true);
  }
}

void LaneScheduler::block_sync(const void* file, std::uint32_t where) {
  step();
  Block& block = blocks_[this->block()];
  if (block.at_block == 0) {
    block.barrier_file = file;
    block.barrier = where;
  } else if (block.barrier != where || block.barrier_file != file) {
    complain(fmt::format("block {}: lane {} waits at the barrier of line {}, others at the one of line {}",
                         this->block(), lane(), where, block.barrier));
  }
  if (++block.at_block == lanes_) {
    block.at_block = 0;
    ++block.stamp.block_syncs;
    wake(block, Wait::block);
    step();
    return;
  }
  wait(Wait::block);
}

void LaneScheduler::meet_in_warp(std::uint32_t where, bool orders) {
  Block& block = blocks_[this->block()];
  if (lane() >= warp_lanes) complain(fmt::format("lane {} calls what is the mailbox's (line {})", lane(), where));
  if (block.at_warp == 0) {
    block.warp_barrier = where;
  } else if (block.warp_barrier != where) {
    complain(fmt::format("block {}: lane {} of the mailbox is at line {}, others at line {}", this->block(), lane(),
                         where, block.warp_barrier));
  }
  if (++block.at_warp == warp_lanes) {
    block.at_warp = 0;
    ++block.stamp.warp_meetings;
    if (orders) ++block.stamp.warp_syncs;
    wake(block, Wait::warp);
    step();
    return;
  }
  wait(Wait::warp);
}

void LaneScheduler::warp_sync(std::uint32_t where) {
  meet_in_warp(where, true);
}

const std::uint64_t* LaneScheduler::exchange(std::uint64_t value, std::uint32_t where) {
  Block& block = blocks_[this->block()];
  const std::uint32_t lane = this->lane() % warp_lanes;
  // Twice, alternately: a lane that is already at its next exchange writes to the other one.
  const std::uint32_t turn = block.exchanges[lane]++ % 2;
  block.given[turn][lane] = value;
  meet_in_warp(where, false);
  return block.given[turn];
}

void LaneScheduler::complain(const std::string& text) {
  if (!complaint_.empty()) return;
  complaint_ = text;
  if (current_ != host_fiber()) switch_to(host_fiber());
}

void LaneScheduler::set_unacquired(bool is_unacquired) {
  unacquired_[current_] = is_unacquired;
}

void LaneScheduler::check_acquired() {
  if (!unacquired_[current_]) return;
  complain(fmt::format("block {}: lane {} looks up a buffer before it has acquired the slot of its message", block(),
                       lane()));
}

void LaneScheduler::begin_looks(std::uint32_t delay) {
  is_looking_ = true;
  ++looks_;
  if (delay != 0) ++delayed_looks_;
  pass_time(delay);
}

void LaneScheduler::touch(const void* address, std::size_t bytes, bool writes) {
  if (current_ == host_fiber()) return;
  Block& block = blocks_[this->block()];
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - block.memory.data());
  if (offset >= block.memory.size()) return;
  step();
  check_touch(block, offset, bytes, writes);
}

void LaneScheduler::check_touch(Block& block, std::size_t offset, std::size_t bytes, bool writes) {
  const std::uint32_t me = lane();
  const bool in_mailbox = me < warp_lanes;
  const std::uint64_t my_bit = std::uint64_t{1} << me;
  const Stamp now = block.stamp;
  // A barrier of the warp orders the touches of its own lanes alone.
  const auto is_seen = [&](const Stamp& then, bool both_in_mailbox) {
    return then.block_syncs != now.block_syncs || (both_in_mailbox && then.warp_syncs != now.warp_syncs);
  };
  const auto was_read = [&](const Stamp& then) {
    return then.block_syncs != now.block_syncs || then.warp_meetings != now.warp_meetings;
  };
  const auto clash = [&](const char* mine, const char* theirs, std::uint32_t other) {
    complain(fmt::format("block {}: lane {} {} {}, which lane {} {} with no barrier between", this->block(), me, mine,
                         name_memory_ ? name_memory_(offset) : fmt::format("byte {}", offset), other, theirs));
  };
  const std::size_t end = std::min((offset + bytes + 3) / 4, block.words.size());
  for (std::size_t i = offset / 4; i < end; ++i) {
    Word& word = block.words[i];
    if (word.written.block_syncs != 0 && word.writer != me &&
        !is_seen(word.written, in_mailbox && word.writer < warp_lanes)) {
      return clash(writes ? "writes" : "reads", "wrote", word.writer);
    }
    if (!writes) {
      if (in_mailbox) {
        if (word.read_by_mailbox.block_syncs != now.block_syncs) word.mailbox_readers = 0;
        if (was_read(word.read_by_mailbox)) word.mailbox_readers_now = 0;
        word.read_by_mailbox = now;
        word.mailbox_readers |= my_bit;
        word.mailbox_readers_now |= my_bit;
      } else {
        if (word.read_by_others != now.block_syncs) word.other_readers = 0;
        word.read_by_others = now.block_syncs;
        word.other_readers |= my_bit;
      }
      continue;
    }
    std::uint64_t readers = 0;
    if (word.read_by_others == now.block_syncs) readers |= word.other_readers;
    if (in_mailbox) {
      if (!was_read(word.read_by_mailbox)) readers |= word.mailbox_readers_now;
    } else if (word.read_by_mailbox.block_syncs == now.block_syncs) {
      readers |= word.mailbox_readers;
    }
    readers &= ~my_bit;
    if (readers != 0) return clash("writes", "read", static_cast<std::uint32_t>(__builtin_ctzll(readers)));
    word.written = now;
    word.writer = me;
  }
}

}  // namespace cingulum::ring::testing

// The compiler calls these around every access of lane_seat.cpp, which is compiled as for ThreadSanitizer but linked
// with this in its place.
#if defined(CGL_LANE_HOOKS)
namespace {
using cingulum::ring::testing::LaneScheduler;

void touched(const void* address, std::size_t bytes, bool writes) {
  LaneScheduler* const lanes = LaneScheduler::current();
  if (lanes == nullptr) return;
  lanes->count_access();
  lanes->touch(address, bytes, writes);
}
}  // namespace

extern "C" {
// NOLINTBEGIN: the names are the compiler's.
void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
#define CGL_TOUCH_OF(bytes)                      \
  void __tsan_read##bytes(void* at) {            \
    touched(at, bytes, false);                   \
  }                                              \
  void __tsan_write##bytes(void* at) {           \
    touched(at, bytes, true);                    \
  }                                              \
  void __tsan_unaligned_read##bytes(void* at) {  \
    touched(at, bytes, false);                   \
  }                                              \
  void __tsan_unaligned_write##bytes(void* at) { \
    touched(at, bytes, true);                    \
  }
CGL_TOUCH_OF(1)
CGL_TOUCH_OF(2)
CGL_TOUCH_OF(4)
CGL_TOUCH_OF(8)
CGL_TOUCH_OF(16)
void __tsan_read_range(void* at, unsigned long bytes) {
  touched(at, bytes, false);
}
void __tsan_write_range(void* at, unsigned long bytes) {
  touched(at, bytes, true);
}
#define CGL_ATOMICS_OF(bits, T)                                                                           \
  T __tsan_atomic##bits##_load(const volatile T* at, int) {                                               \
    return __atomic_load_n(at, __ATOMIC_SEQ_CST);                                                         \
  }                                                                                                       \
  void __tsan_atomic##bits##_store(volatile T* at, T value, int) {                                        \
    __atomic_store_n(at, value, __ATOMIC_SEQ_CST);                                                        \
  }                                                                                                       \
  T __tsan_atomic##bits##_fetch_add(volatile T* at, T by, int) {                                          \
    return __atomic_fetch_add(at, by, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                                       \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* at, T* expected, T desired, int, int) {   \
    return __atomic_compare_exchange_n(at, expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                                       \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* at, T expected, T desired, int, int) {         \
    __atomic_compare_exchange_n(at, &expected, desired, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
    return expected;                                                                                      \
  }
CGL_ATOMICS_OF(32, unsigned int)
CGL_ATOMICS_OF(64, unsigned long)
// NOLINTEND
}
#endif
