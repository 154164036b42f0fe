#include "ring/cpu/turn_schedule.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace cingulum::ring {
namespace {

// The number of the member that this thread is; nobody for the test's own.
thread_local int own_number = -1;

}  // namespace

int TurnSchedule::announce() {
  const std::lock_guard lock(mutex_);
  members_.emplace_back();
  return static_cast<int>(members_.size()) - 1;
}

void TurnSchedule::enter(int number) {
  own_number = number;
  std::unique_lock lock(mutex_);
  members_[static_cast<std::size_t>(number)].standing = Standing::ready;
  changed_.notify_all();
  wait_for_turn(lock, number);
}

void TurnSchedule::leave() {
  const std::lock_guard lock(mutex_);
  members_[static_cast<std::size_t>(own_number)].standing = Standing::gone;
  ++changes_;
  turn_ = nobody;
  changed_.notify_all();
}

void TurnSchedule::wait_for_turn(std::unique_lock<std::mutex>& lock, int number) {
  changed_.wait(lock, [&] { return turn_ == number; });
}

void TurnSchedule::step() {
  std::unique_lock lock(mutex_);
  ++changes_;
  if (own_number == nobody) return;
  turn_ = nobody;
  changed_.notify_all();
  wait_for_turn(lock, own_number);
}

void TurnSchedule::idle(std::uint64_t deadline_ns) {
  std::unique_lock lock(mutex_);
  if (own_number != nobody) {
    Member& self = members_[static_cast<std::size_t>(own_number)];
    self.standing = Standing::waiting;
    self.seen_change = changes_;
    self.deadline_ns = deadline_ns;
    turn_ = nobody;
    changed_.notify_all();
    wait_for_turn(lock, own_number);
    members_[static_cast<std::size_t>(own_number)].standing = Standing::ready;
    return;
  }
  if (give_turn(lock)) return;
  std::uint64_t next = deadline_ns;
  for (const Member& member : members_) {
    if (member.standing == Standing::waiting) next = std::min(next, member.deadline_ns);
  }
  if (next == no_deadline) {
    // The one who called would wait for ever: a deadlock, which a test must see rather than sleep through.
    std::fputs("turn schedule: everybody waits and no deadline will come\n", stderr);
    std::abort();
  }
  time_ns_ = std::max(time_ns_, next);
}

bool TurnSchedule::can_go(const Member& member) const {
  if (member.standing == Standing::ready) return true;
  return member.standing == Standing::waiting && (member.seen_change != changes_ || member.deadline_ns <= time_ns_);
}

bool TurnSchedule::give_turn(std::unique_lock<std::mutex>& lock) {
  // Threads that were announced but have not come yet would make the choice depend on the machine.
  changed_.wait(lock, [&] {
    return std::none_of(members_.begin(), members_.end(),
                        [](const Member& member) { return member.standing == Standing::announced; });
  });
  std::vector<int> able;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (can_go(members_[i])) able.push_back(static_cast<int>(i));
  }
  if (able.empty()) return false;
  turn_ = able[next_random() % able.size()];
  ++turns_;
  trace_ = (trace_ ^ static_cast<std::uint64_t>(turn_)) * 1099511628211u;
  changed_.notify_all();
  changed_.wait(lock, [&] { return turn_ == nobody; });
  return true;
}

void TurnSchedule::run_until_idle() {
  std::unique_lock lock(mutex_);
  while (give_turn(lock)) {
  }
}

void TurnSchedule::advance(Nanoseconds duration) {
  {
    const std::lock_guard lock(mutex_);
    time_ns_ += static_cast<std::uint64_t>(duration.count());
  }
  run_until_idle();
}

std::uint64_t TurnSchedule::now_ns() const {
  const std::lock_guard lock(mutex_);
  return time_ns_;
}

// SplitMix64 (Steele, Lea, Flood 2014).
std::uint64_t TurnSchedule::next_random() {
  std::uint64_t z = (random_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

}  // namespace cingulum::ring
