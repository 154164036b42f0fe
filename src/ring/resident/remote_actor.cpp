#include "ring/resident/remote_actor.hpp"

#include <utility>

#include "ring/actor/runtime.hpp"

namespace cingulum::ring {

RemoteActor::RemoteActor(std::string name, std::uint16_t number, std::span<const std::byte> arguments, RingKind kind,
                         const ActorOptions& options, RuntimeServices services)
    : Actor(std::move(name), number, options, std::move(services)),
      arguments_(arguments.begin(), arguments.end()),
      kind_(kind),
      request_latency_(options.latency_sample_interval) {}

LossCounters RemoteActor::losses() const {
  LossCounters losses;
  losses.rejected = rejected_;
  losses.dropped_new = dropped_new_;
  losses.expired = expired_;
  losses.dead_letters = dead_letters_;
  losses.discarded = discarded_;
  losses.late_replies = late_replies_;
  return losses;
}

Result<ActorHandle> launch_and_adopt(Runtime& runtime, const ActorHandle& actor) {
  CGL_TRY(actor->launch());
  auto adopted = runtime.adopt(actor);
  if (!adopted) static_cast<void>(actor->terminate(Termination::discard()));
  return adopted;
}

}  // namespace cingulum::ring
