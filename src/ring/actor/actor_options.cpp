#include "ring/actor/actor_options.hpp"

namespace cingulum::ring {
namespace {

constexpr std::uint32_t max_capacity = 1u << 20;

Status check_capacity(std::string_view actor, std::string_view what, std::uint32_t capacity) {
  if (is_power_of_two(capacity) && capacity <= max_capacity) return {};
  return fail(ErrorKind::invalid_argument, "actor '{}': {} {} is not a power of two from 1 to {}", actor, what,
              capacity, max_capacity);
}

Status check_duration(std::string_view actor, std::string_view what, Nanoseconds duration) {
  if (duration > Nanoseconds::zero()) return {};
  return fail(ErrorKind::invalid_argument, "actor '{}': {} of {} ns is not above 0", actor, what, duration.count());
}

}  // namespace

Status check_options(std::string_view actor, const ActorOptions& options) {
  if (actor.empty()) return fail(ErrorKind::invalid_argument, "an actor needs a name");
  CGL_TRY(check_capacity(actor, "inbox_capacity", options.inbox_capacity));
  CGL_TRY(check_capacity(actor, "outbox_capacity", options.outbox_capacity));
  CGL_TRY(check_duration(actor, "stall_limit", options.stall_limit));
  CGL_TRY(check_duration(actor, "restart.window", options.restart.window));
  CGL_TRY(check_duration(actor, "restart.back_off", options.restart.back_off));
  CGL_TRY(check_duration(actor, "restart.max_back_off", options.restart.max_back_off));
  CGL_TRY(check_duration(actor, "restart.cool_down", options.restart.cool_down));
  if (options.fairness_interval == 0) {
    return fail(ErrorKind::invalid_argument, "actor '{}': fairness_interval 0 is not at least 1", actor);
  }
  if (options.seats == 0) return fail(ErrorKind::invalid_argument, "actor '{}': seats 0 is not at least 1", actor);
  if (options.reply_buffers != 0) {
    CGL_TRY(check_capacity(actor, "reply_buffers", options.reply_buffers));
    if (options.reply_buffer_bytes == 0) {
      return fail(ErrorKind::invalid_argument, "actor '{}': reply_buffer_bytes 0 is not at least 1", actor);
    }
  }
  return {};
}

}  // namespace cingulum::ring
