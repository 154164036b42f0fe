// A warp on the host: 32 fibers that run the code of one thread each and meet wherever lanes exchange something, so
// that kernels written for threads (kernel/ptt_in_registers.hpp) are tested without a GPU. Fibers run in an order that
// changes from meeting to meeting: what one writes before a meeting and another reads without one is found.
#pragma once

#include <ucontext.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "numerics/lanes_portable.hpp"

namespace cingulum::test {

class FiberWarp {
 public:
  static constexpr std::uint32_t count = numerics::lane_count;

  // Calls `body` on each fiber, returns when all have returned.
  static void run(const std::function<void()>& body);

  static std::uint32_t lane_index() { return current().lane_; }
  // What every lane gave, once all have.
  template <class T>
  static const T* meet(T value) {
    static_assert(sizeof(T) == sizeof(std::uint32_t));
    FiberWarp& warp = current();
    const std::uint32_t side = warp.meetings_of_[warp.lane_]++ % 2u;
    warp.given_[side][warp.lane_] = __builtin_bit_cast(std::uint32_t, value);
    warp.next();
    return reinterpret_cast<const T*>(warp.given_[side]);
  }

 private:
  static constexpr std::size_t stack_bytes = std::size_t{256} << 10;

  static FiberWarp*& current_pointer() {
    static thread_local FiberWarp* warp = nullptr;
    return warp;
  }
  static FiberWarp& current() { return *current_pointer(); }
  static void enter() {
    (*current().body_)();
    FiberWarp& warp = current();
    warp.done_[warp.lane_] = true;
    warp.next();
  }
  // Switches to the next fiber that has not met yet; the last one begins a new round.
  void next();

  const std::function<void()>* body_ = nullptr;
  ucontext_t main_{};
  ucontext_t context_[count]{};
  std::vector<std::byte> stacks_ = std::vector<std::byte>(count * stack_bytes);
  std::uint32_t meetings_of_[count] = {};
  alignas(16) std::uint32_t given_[2][count] = {};
  bool done_[count] = {};
  std::uint32_t lane_ = 0;
  std::uint32_t arrived_ = 0;
  std::uint32_t round_ = 0;
};

inline void FiberWarp::next() {
  ++arrived_;
  const std::uint32_t from = lane_;
  if (arrived_ == count) {
    arrived_ = 0;
    ++round_;
    if (done_[from]) {
      // All return after the same meeting.
      setcontext(&main_);
    }
  }
  // A rotation of the lanes that differs from round to round.
  const std::uint32_t step = 2u * (round_ % 16u) + 1u;
  lane_ = arrived_ == 0u ? round_ % count : (lane_ + step) % count;
  if (lane_ != from) swapcontext(&context_[from], &context_[lane_]);
}

inline void FiberWarp::run(const std::function<void()>& body) {
  const auto warp = std::make_unique<FiberWarp>();
  FiberWarp* const before = current_pointer();
  current_pointer() = warp.get();
  warp->body_ = &body;
  for (std::uint32_t lane = 0; lane < count; ++lane) {
    getcontext(&warp->context_[lane]);
    warp->context_[lane].uc_stack.ss_sp = warp->stacks_.data() + lane * stack_bytes;
    warp->context_[lane].uc_stack.ss_size = stack_bytes;
    makecontext(&warp->context_[lane], &FiberWarp::enter, 0);
  }
  swapcontext(&warp->main_, &warp->context_[0]);
  current_pointer() = before;
}

// The primitives of WarpLanes on fibers.
template <bool side_by_side>
struct FiberLanesOf {
  static constexpr bool corners_side_by_side = side_by_side;  // kernel/ptt_in_registers.hpp
  using Float = float;
  using Word = std::uint32_t;
  using Mask = bool;
  using Narrow = FiberLanesOf;
  using Wide = FiberLanesOf;
  static constexpr bool serial = false;
  static constexpr std::uint32_t width = numerics::lane_count;

  static std::uint32_t lane_index() { return FiberWarp::lane_index(); }
  static std::uint32_t lanes_below() { return (1u << lane_index()) - 1u; }
  static void barrier() { FiberWarp::meet(0u); }
  static std::uint32_t ballot(Mask mask) {
    const std::uint32_t* given = FiberWarp::meet(mask ? 1u : 0u);
    std::uint32_t bits = 0;
    for (std::uint32_t l = 0; l < width; ++l) bits |= given[l] << l;
    return bits;
  }
  static bool any(Mask mask) { return ballot(mask) != 0u; }
  static float get(Float a, std::uint32_t lane) { return FiberWarp::meet(a)[lane]; }
  static std::uint32_t get(Word a, std::uint32_t lane) { return FiberWarp::meet(a)[lane]; }
  template <std::uint32_t distance>
  static Float exchange(Float a) {
    return FiberWarp::meet(a)[lane_index() ^ distance];
  }

  template <std::uint32_t distance>
  static Word exchange(Word a) {
    return FiberWarp::meet(a)[lane_index() ^ distance];
  }

  static std::uint32_t greatest_integer(Word a) {
    const std::uint32_t* given = FiberWarp::meet(a);
    std::uint32_t greatest = given[0];
    for (std::uint32_t l = 1; l < width; ++l) {
      if (static_cast<std::int32_t>(given[l]) > static_cast<std::int32_t>(greatest)) greatest = given[l];
    }
    return greatest;
  }
  static void raise(std::uint32_t& shared, std::uint32_t by) { shared = shared < by ? by : shared; }
  static void lower(std::uint32_t& shared, std::uint32_t by) { shared = by < shared ? by : shared; }

  static Float broadcast(float value) { return value; }
  static Word broadcast(std::uint32_t value) { return value; }
  static Float load(const float* first) { return first[lane_index()]; }
  static void store(float* first, Float a) { first[lane_index()] = a; }
  static Word slots_of_row(std::uint32_t row) { return width * row + lane_index(); }
  static Mask mask_of_bits(std::uint32_t bits) { return ((bits >> lane_index()) & 1u) != 0u; }

  static Float add(Float a, Float b) { return a + b; }
  static Float subtract(Float a, Float b) { return a - b; }
  static Float multiply(Float a, Float b) { return a * b; }
  static Float divide(Float a, Float b) { return a / b; }
  static Float square_root(Float a) { return numerics::root(a); }
  static Float floor_of_lanes(Float a) { return numerics::floor_of(a); }
  static Float greater_of(Float a, Float b) { return a > b ? a : b; }
  static Float lesser_of(Float a, Float b) { return a < b ? a : b; }
  static Word add(Word a, Word b) { return a + b; }
  static Word subtract(Word a, Word b) { return a - b; }
  static Word multiply(Word a, Word b) { return a * b; }
  static Word high_product_with(Word a, std::uint32_t b) { return numerics::high_product(a, b); }
  static Word bits_and(Word a, Word b) { return a & b; }
  static Word bits_or(Word a, Word b) { return a | b; }
  static Word bits_xor(Word a, Word b) { return a ^ b; }
  template <int by>
  static Word shift_left(Word a) {
    return a << by;
  }
  template <int by>
  static Word shift_right(Word a) {
    return a >> by;
  }
  static Word bits_of(Float a) { return numerics::float_bits(a); }
  static Float float_of_bits(Word a) { return numerics::bits_float(a); }
  static Float float_of_integer(Word a) { return static_cast<float>(static_cast<std::int32_t>(a)); }
  static Word integer_of_float(Float a) { return static_cast<std::uint32_t>(static_cast<std::int32_t>(a)); }
  static Mask at_least(Float a, Float b) { return a >= b; }
  static Mask greater(Float a, Float b) { return a > b; }
  static Mask less(Word a, Word b) { return a < b; }
  static Mask both(Mask a, Mask b) { return a && b; }
  static Float select(Mask mask, Float if_set, Float otherwise) { return mask ? if_set : otherwise; }
  static Word select(Mask mask, Word if_set, Word otherwise) { return mask ? if_set : otherwise; }
};

using FiberLanes = FiberLanesOf<false>;

}  // namespace cingulum::test
