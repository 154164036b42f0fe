#include "runs/machine.hpp"

namespace cingulum {

ProgressOptions RunMachine::progress_options() const {
  ProgressOptions options;
  options.style = options_.progress;
  options.stream = &log_.stream();
  options.observer = observer_;
  return options;
}

WriteOptions RunMachine::write_options() const {
  WriteOptions options;
  options.force = options_.force;
  // A malformed setting was refused before the run began.
  options.sync = !settings_.no_sync().value_or(false);
  options.cancel = cancel_;
  return options;
}

Result<ThreadPool*> RunMachine::pool() {
  if (shared_pool_ != nullptr) return shared_pool_;
  if (!pool_) {
    CGL_TRY_ASSIGN(pool_, ThreadPool::create(options_.threads));
  }
  return pool_.get();
}

}  // namespace cingulum
