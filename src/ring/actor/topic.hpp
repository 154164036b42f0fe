// A topic: whatever is published goes to every subscriber's inbox. Made by the runtime; actors reach it by a wire.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "ring/actor/actor.hpp"

namespace cingulum::ring {

class Topic final : public MessageSink {
 public:
  // Twice is once.
  void subscribe(const ActorHandle& actor);
  // False: it was not subscribed.
  bool unsubscribe(const Actor& actor);

  // Puts the message into every subscriber's inbox; each subscriber's own policy decides what happens when it is full.
  // Answers the worst of their answers; `taken` (if given) counts the subscribers that took it.
  PutStatus publish(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                    const std::atomic<bool>* stop, std::uint32_t* taken);
  PutStatus put(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                const std::atomic<bool>* stop) override {
    return publish(message, deadline_ns, expires_ns, stop, nullptr);
  }
  void wake_writers() override;
  void add_receivers(std::vector<const Actor*>& receivers) const override;

 private:
  using Subscribers = std::vector<ActorHandle>;
  [[nodiscard]] std::shared_ptr<const Subscribers> subscribers() const;

  mutable std::mutex mutex_;
  std::shared_ptr<const Subscribers> subscribers_ = std::make_shared<const Subscribers>();
};

}  // namespace cingulum::ring
