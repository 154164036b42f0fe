// What actors have in common whose bodies run on no thread of the runtime (ring/resident/resident_actor.hpp,
// ring/child/child_actor.hpp): host threads wait by looking again and again at words that the other side writes, and
// answers for which their streams have no room are held back here. The loops are here; what a look does, and under
// which lock, is the deriving actor's.
#pragma once

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ring/actor/actor.hpp"
#include "ring/resident/look_again.hpp"
#include "ring/resident/seat_layout.hpp"
#include "ring/telemetry/request_latency.hpp"

namespace cingulum::ring {

class Runtime;

class RemoteActor : public Actor {
 protected:
  RemoteActor(std::string name, std::uint16_t number, std::span<const std::byte> arguments, RingKind kind,
              const ActorOptions& options, RuntimeServices services);

  // MessageSink::put, where `try_put()` puts the message without waiting.
  template <class TryPut>
  PutStatus put_by(TryPut&& try_put, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                   const std::atomic<bool>* stop);
  // Actor::do_receive, where `take()` answers `empty` as long as nothing has come.
  template <class Take>
  GetStatus receive_by(Take&& take, std::uint64_t deadline_ns);
  // Called with output_mutex_ held: answers for which there was no room go to `settle`, which answers whether there is
  // now. Those of a stream that has none keep their order. Answers how many have gone.
  template <class Settle>
  std::size_t give_held_by(Settle&& settle);
  // All but dropped_oldest.
  [[nodiscard]] LossCounters losses() const;

  const std::vector<std::byte> arguments_;
  const RingKind kind_;

  std::atomic<std::uint64_t> rejected_{0};
  std::atomic<std::uint64_t> dropped_new_{0};
  std::atomic<std::uint64_t> expired_{0};
  std::atomic<std::uint64_t> dead_letters_{0};
  std::atomic<std::uint64_t> discarded_{0};
  std::atomic<std::uint64_t> late_replies_{0};
  RequestLatency request_latency_;

  mutable std::mutex output_mutex_;  // guards what follows, and whatever the outputs come from
  std::deque<Message> queue_;
  std::deque<Message> held_;  // answers for which there was no room in their streams
  bool leaving_ = false;      // the actor ends: streams take all that is left, whatever their windows
};

// Launches the actor and gives it to the runtime; one that the runtime does not take is ended.
[[nodiscard]] Result<ActorHandle> launch_and_adopt(Runtime& runtime, const ActorHandle& actor);

// The actors that are still there.
template <class A>
std::vector<std::shared_ptr<A>> living(const std::vector<std::weak_ptr<A>>& actors) {
  std::vector<std::shared_ptr<A>> found;
  for (const auto& each : actors) {
    if (auto actor = each.lock()) found.push_back(std::move(actor));
  }
  return found;
}

template <class TryPut>
PutStatus RemoteActor::put_by(TryPut&& try_put, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                              const std::atomic<bool>* stop) {
  LookAgain again(options().waiting);
  for (;;) {
    const PutStatus status = try_put();
    if (status == PutStatus::stored) return status;
    if (status == PutStatus::closed) {
      ++rejected_;
      return status;
    }
    switch (options().inbox_policy) {
      case FullPolicy::reject: ++rejected_; return PutStatus::full;
      case FullPolicy::drop_new: ++dropped_new_; return PutStatus::dropped_new;
      default: break;
    }
    const std::uint64_t now = steady_now_ns();
    if (now >= expires_ns) {
      ++expired_;
      return PutStatus::expired;
    }
    if (now >= deadline_ns || (stop != nullptr && stop->load(std::memory_order_acquire))) {
      ++rejected_;
      return now >= deadline_ns ? PutStatus::timed_out : PutStatus::closed;
    }
    again.pause();
  }
}

template <class Take>
GetStatus RemoteActor::receive_by(Take&& take, std::uint64_t deadline_ns) {
  LookAgain again(options().waiting);
  for (;;) {
    const GetStatus status = take();
    if (status != GetStatus::empty) return status;
    if (again.spins_over() && steady_now_ns() >= deadline_ns) return GetStatus::timed_out;
    again.pause();
  }
}

template <class Settle>
std::size_t RemoteActor::give_held_by(Settle&& settle) {
  std::vector<std::uint64_t> full;
  return std::erase_if(held_, [&](const Message& reply) {
    const std::uint64_t correlation = reply.header.correlation;
    if (std::find(full.begin(), full.end(), correlation) != full.end()) return false;
    if (settle(reply)) return true;
    full.push_back(correlation);
    return false;
  });
}

}  // namespace cingulum::ring
