// A schedule for tests of actors: threads run one at a time, who goes on is drawn from a seed, time is virtual and
// moves only when nobody has anything to do. The same seed gives the same run. The test's own thread drives: whenever
// it waits (receive, request, terminate) or calls run_until_idle, the actors go on.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "ring/queue/waiting.hpp"

namespace cingulum::ring {

class TurnSchedule final : public Schedule {
 public:
  explicit TurnSchedule(std::uint64_t seed) : random_(seed) {}

  int announce() override;
  void enter(int number) override;
  void leave() override;
  void step() override;
  void idle(std::uint64_t deadline_ns) override;
  [[nodiscard]] std::uint64_t now_ns() const override;

  // Called by the test: runs the threads until all of them wait for something that only the test or time can bring.
  void run_until_idle();
  // Called by the test: time passes, and the threads that waited for it go on.
  void advance(Nanoseconds duration);
  // Turns given so far; two runs of one seed agree in it and in trace().
  [[nodiscard]] std::uint64_t turns() const { return turns_; }
  // A hash of which thread had which turn.
  [[nodiscard]] std::uint64_t trace() const { return trace_; }

 private:
  enum class Standing : std::uint8_t { announced, ready, waiting, gone };
  struct Member {
    Standing standing = Standing::announced;
    std::uint64_t seen_change = 0;  // waiting: what had happened when it looked
    std::uint64_t deadline_ns = no_deadline;
  };
  static constexpr int nobody = -1;

  [[nodiscard]] bool can_go(const Member& member) const;
  // Gives one member a turn; false when none can go.
  bool give_turn(std::unique_lock<std::mutex>& lock);
  void wait_for_turn(std::unique_lock<std::mutex>& lock, int number);
  [[nodiscard]] std::uint64_t next_random();

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Member> members_;
  int turn_ = nobody;  // whose turn it is; nobody: the test's
  std::uint64_t changes_ = 1;
  std::uint64_t time_ns_ = 1'000'000'000;
  std::uint64_t random_;
  std::uint64_t turns_ = 0;
  std::uint64_t trace_ = 14695981039346656037u;
};

}  // namespace cingulum::ring
