#include "base/progress.hpp"

#include "base/progress_drawing.hpp"

namespace cingulum {
namespace {

std::unique_ptr<ProgressObserver> make_drawing(const ProgressOptions& options) {
  if (options.observer != nullptr || options.style == ProgressStyle::silent) return nullptr;
  return std::make_unique<ProgressDrawing>(options.style,
                                           options.stream != nullptr ? *options.stream : TalkStream::standard_error());
}

}  // namespace

Progress::Progress(std::string label, std::uint64_t total, std::string unit, ProgressOptions options)
    : task_{std::move(label), total, std::move(unit)},
      clock_(options.clock ? std::move(options.clock) : [] { return Clock::now(); }),
      drawing_(make_drawing(options)),
      observer_(options.observer != nullptr ? options.observer : drawing_.get()),
      interval_(observer_ != nullptr ? observer_->interval() : Clock::duration{}),
      start_(clock_()),
      next_step_((start_ + interval_).time_since_epoch().count()) {
  if (observer_ == nullptr) return;
  try {
    observer_->begin(task_);
  } catch (...) {
    // A step at which the observer throws is lost; the work goes on. The same holds for the other calls.
  }
}

Progress::~Progress() {
  if (observer_ == nullptr) return;
  try {
    observer_->end(task_);
  } catch (...) {
  }
}

void Progress::advance(std::uint64_t count) noexcept {
  done_.fetch_add(count, std::memory_order_relaxed);
  report_if_due();
}

void Progress::set_note(std::string note) noexcept {
  {
    const std::lock_guard lock(mutex_);
    note_ = std::move(note);
  }
  report_if_due();
}

void Progress::report_if_due() noexcept {
  if (observer_ == nullptr) return;
  const Clock::time_point now = clock_();
  if (now.time_since_epoch().count() < next_step_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  // Another thread may have reported between the two looks at the time.
  if (!lock || finished_ || now.time_since_epoch().count() < next_step_.load(std::memory_order_relaxed)) return;
  next_step_.store((now + interval_).time_since_epoch().count(), std::memory_order_relaxed);
  try {
    observer_->step(task_, step_at(now));
  } catch (...) {
  }
}

void Progress::finish() noexcept {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  finished_ = true;
  if (observer_ == nullptr) return;
  try {
    observer_->finish(task_, step_at(clock_()));
  } catch (...) {
  }
}

}  // namespace cingulum
