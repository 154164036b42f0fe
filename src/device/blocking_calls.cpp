#include "device/blocking_calls.hpp"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/log.hpp"

namespace cingulum {
namespace {

#ifdef NDEBUG
constexpr auto default_reaction = BlockingCalls::Reaction::go_on;
#else
constexpr auto default_reaction = BlockingCalls::Reaction::abort;
#endif

}  // namespace

BlockingCalls::BlockingCalls(std::string device_id) : device_id_(std::move(device_id)), reaction_(default_reaction) {}

BlockingCalls::~BlockingCalls() {
  for (const Kept& each : kept_) each.free(each.what);
}

std::shared_ptr<void> BlockingCalls::persistent_kernel_runs(std::string name) {
  {
    const std::lock_guard lock(mutex_);
    running_.push_back(name);
  }
  return std::shared_ptr<void>(nullptr, [this, name = std::move(name)](void*) { kernel_ended(name); });
}

void BlockingCalls::kernel_ended(const std::string& name) noexcept {
  std::vector<Kept> freed;
  {
    const std::lock_guard lock(mutex_);
    running_.erase(std::find(running_.begin(), running_.end(), name));
    if (running_.empty()) freed.swap(kept_);
  }
  for (const Kept& each : freed) each.free(each.what);
}

bool BlockingCalls::forbidden() const {
  const std::lock_guard lock(mutex_);
  return !running_.empty();
}

void BlockingCalls::report(const std::string& message) const {
  ++forbidden_calls_;
  log_error("{}", message);
  if (reaction_ == Reaction::abort) std::abort();
}

Status BlockingCalls::check(std::string_view call) const {
  const std::lock_guard lock(mutex_);
  if (running_.empty()) return {};
  const std::string message =
      fmt::format("device {}: {} would block until persistent kernel '{}' ends; do it before actors are launched",
                  device_id_, call, running_.front());
  report(message);
  return tl::make_unexpected(Error(ErrorKind::invalid_state, message));
}

void BlockingCalls::free_or_keep(std::string_view call, Free free, void* what) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (!running_.empty()) {
      try {
        kept_.push_back({free, what});
        report(
            fmt::format("device {}: {} would block until persistent kernel '{}' ends and is put off until then; "
                        "take memory from a pool while actors run",
                        device_id_, call, running_.front()));
      } catch (const std::bad_alloc&) {
        // The memory stays allocated: better than a call that never returns.
      }
      return;
    }
  }
  free(what);
}

void BlockingCalls::set_reaction(Reaction reaction) {
  const std::lock_guard lock(mutex_);
  reaction_ = reaction;
}

std::uint64_t BlockingCalls::forbidden_calls() const {
  const std::lock_guard lock(mutex_);
  return forbidden_calls_;
}

std::size_t BlockingCalls::kept() const {
  const std::lock_guard lock(mutex_);
  return kept_.size();
}

}  // namespace cingulum
