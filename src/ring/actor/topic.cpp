#include "ring/actor/topic.hpp"

#include <algorithm>

namespace cingulum::ring {

std::shared_ptr<const Topic::Subscribers> Topic::subscribers() const {
  const std::lock_guard lock(mutex_);
  return subscribers_;
}

void Topic::subscribe(const ActorHandle& actor) {
  const std::lock_guard lock(mutex_);
  if (std::find(subscribers_->begin(), subscribers_->end(), actor) != subscribers_->end()) return;
  Subscribers changed = *subscribers_;
  changed.push_back(actor);
  subscribers_ = std::make_shared<const Subscribers>(std::move(changed));
}

bool Topic::unsubscribe(const Actor& actor) {
  const std::lock_guard lock(mutex_);
  Subscribers changed = *subscribers_;
  const std::size_t removed = std::erase_if(changed, [&](const ActorHandle& one) { return one.get() == &actor; });
  if (removed == 0) return false;
  subscribers_ = std::make_shared<const Subscribers>(std::move(changed));
  return true;
}

PutStatus Topic::publish(const Message& message, std::uint64_t deadline_ns, std::uint64_t expires_ns,
                         const std::atomic<bool>* stop, std::uint32_t* taken) {
  PutStatus worst = PutStatus::stored;
  const std::shared_ptr<const Subscribers> all = subscribers();  // held: who subscribes meanwhile makes another list
  for (const ActorHandle& actor : *all) {
    const PutStatus status = actor->put(message, deadline_ns, expires_ns, stop);
    if (status != PutStatus::stored) {
      worst = status;
    } else if (taken != nullptr) {
      ++*taken;
    }
  }
  return worst;
}

void Topic::wake_writers() {
  const std::shared_ptr<const Subscribers> all = subscribers();
  for (const ActorHandle& actor : *all) actor->wake_writers();
}

void Topic::add_receivers(std::vector<const Actor*>& receivers) const {
  const std::shared_ptr<const Subscribers> all = subscribers();
  for (const ActorHandle& actor : *all) receivers.push_back(actor.get());
}

}  // namespace cingulum::ring
