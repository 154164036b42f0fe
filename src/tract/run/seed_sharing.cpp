#include "tract/run/seed_sharing.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

namespace cingulum {
namespace {

using Clock = std::chrono::steady_clock;

// A range takes long enough to keep a device busy, and short enough to answer to Ctrl-C and to show progress. Among
// several trackers shorter ones let the slow keep up with the fast.
constexpr double good_while_alone_seconds = 0.5;
constexpr double good_while_shared_seconds = 0.1;
constexpr std::uint64_t shared_first_divisor = 8;
// Larger ranges do not make a device with several callers faster; they take memory, and the host waits for the first.
constexpr std::uint64_t most_range_of_callers = 25000;
// Fast trackers may go ahead of a slow one until their finished batches take this much.
constexpr std::uint64_t most_waiting_bytes = std::uint64_t{512} << 20;

class SharedSeeds final : public SeedSharing {
 public:
  SharedSeeds(std::span<Tracker* const> trackers, const SeedSharingOptions& options)
      : options_(options),
        trackers_(trackers.begin(), trackers.end()),
        ending_(options.cancel),
        taken_(options.first),
        delivered_(options.first) {
    std::uint64_t callers = 0;
    for (const Tracker* tracker : trackers_) callers += tracker->hints().callers;
    window_ = options.overlap ? callers + options.held : 1;
    options_.chunk = std::max<std::uint64_t>(options.chunk, 1);
    for (const Tracker* tracker : trackers_) {
      std::uint64_t first = tracker->hints().first_range;
      if (trackers_.size() > 1) first = std::max<std::uint64_t>(first / shared_first_divisor, 1);
      most_range_seeds_.push_back(tracker->hints().callers > 1 ? std::min(options_.chunk, most_range_of_callers)
                                                               : options_.chunk);
      range_seeds_.push_back(options.fixed_chunks ? most_range_seeds_.back()
                                                  : std::min(most_range_seeds_.back(), first));
    }
    seeds_taken_.resize(trackers_.size());
    settled_.resize(trackers_.size());
  }

  ~SharedSeeds() override {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    ending_.cancel();
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Status start_threads() {
    for (std::size_t i = 0; i < trackers_.size(); ++i) {
      for (std::uint32_t caller = 0; caller < trackers_[i]->hints().callers; ++caller) {
        try {
          threads_.emplace_back([this, i] { work(i); });
        } catch (const std::system_error& error) {
          return fail(ErrorKind::unavailable, "starting a thread for tracking on {}: {}", trackers_[i]->name(),
                      error.code().message());
        }
        const std::lock_guard lock(mutex_);
        ++running_;
      }
    }
    {
      const std::lock_guard lock(mutex_);
      started_ = true;
    }
    changed_.notify_all();
    return {};
  }

  [[nodiscard]] Result<std::unique_ptr<StreamlineBatch>> next() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return ready_.contains(delivered_) || running_ == 0 || delivered_ >= options_.total; });
    if (const auto found = ready_.find(delivered_); found != ready_.end()) {
      std::unique_ptr<StreamlineBatch> batch = std::move(found->second);
      ready_.erase(found);
      waiting_bytes_ -= bytes_of(*batch);
      delivered_ += batch->seeds.count;
      return batch;
    }
    if (error_) return tl::make_unexpected(std::move(*error_));
    return nullptr;
  }

  void give_back(std::unique_ptr<StreamlineBatch> batch) override {
    {
      const std::lock_guard lock(mutex_);
      --outstanding_;
      spare_.push_back(std::move(batch));
    }
    changed_.notify_all();
  }

  [[nodiscard]] double tracking_seconds() const override {
    const std::lock_guard lock(mutex_);
    return tracking_seconds_;
  }

  [[nodiscard]] std::vector<std::uint64_t> seeds_of_trackers() const override {
    const std::lock_guard lock(mutex_);
    return seeds_taken_;
  }

 private:
  static std::uint64_t bytes_of(const StreamlineBatch& batch) { return batch.points.size() * sizeof(float); }

  [[nodiscard]] bool may_take() const {
    if (outstanding_ < window_) return true;
    return trackers_.size() > 1 && options_.overlap && waiting_bytes_ < most_waiting_bytes;
  }

  void work(std::size_t i) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return started_ || stop_; });
    for (;;) {
      changed_.wait(lock, [&] { return stop_ || error_ || taken_ >= options_.total || may_take(); });
      if (stop_ || error_ || taken_ >= options_.total) break;
      const SeedRange range{.first = taken_, .count = std::min(range_seeds_[i], seeds_of_range(i))};
      taken_ += range.count;
      seeds_taken_[i] += range.count;
      ++outstanding_;
      if (active_++ == 0) active_since_ = Clock::now();
      std::unique_ptr<StreamlineBatch> batch;
      if (!spare_.empty()) {
        batch = std::move(spare_.back());
        spare_.pop_back();
      }
      lock.unlock();

      const auto begin = Clock::now();
      Status outcome = ending_.token().check();
      if (outcome) {
        outcome = catch_out_of_memory([&]() -> Status {
          if (!batch) batch = std::make_unique<StreamlineBatch>();
          return trackers_[i]->track(range, *batch, ending_.token());
        });
      }
      const auto end = Clock::now();
      const double seconds = std::chrono::duration<double>(end - begin).count();

      lock.lock();
      if (--active_ == 0) tracking_seconds_ += std::chrono::duration<double>(end - active_since_).count();
      if (outcome) {
        adapt(i, seconds);
        waiting_bytes_ += bytes_of(*batch);
        outcome = catch_out_of_memory([&]() -> Status {
          ready_.emplace(range.first, std::move(batch));
          return {};
        });
      }
      if (!outcome && !error_) {
        error_ = trackers_.size() > 1 ? std::move(outcome.error()).with_context(trackers_[i]->name())
                                      : std::move(outcome.error());
      }
      changed_.notify_all();
      if (error_) break;
    }
    --running_;
    changed_.notify_all();
  }

  // What is left, for trackers with several callers in shares that shrink towards the end: when one of them brings its
  // last range back, the others still have work, and no large copy is left over.
  [[nodiscard]] std::uint64_t seeds_of_range(std::size_t i) const {
    const std::uint64_t left = options_.total - taken_;
    const TrackerHints hints = trackers_[i]->hints();
    if (options_.fixed_chunks || hints.callers <= 1) return left;
    const std::uint64_t least = std::max<std::uint64_t>(hints.first_range / 2, 1);
    return std::min(left, std::max(left / (2 * hints.callers), least));
  }

  void adapt(std::size_t i, double seconds) {
    if (options_.fixed_chunks) return;
    const double good_while = trackers_.size() > 1 ? good_while_shared_seconds : good_while_alone_seconds;
    // Once a range took long enough, a quick one may be chance. Ranges that grew at each would take the more memory the
    // more of them a run has.
    const double too_quick = settled_[i] ? good_while / 4 : good_while / 2;
    if (seconds < too_quick) range_seeds_[i] = std::min(most_range_seeds_[i], range_seeds_[i] * 2);
    if (seconds >= good_while / 2) settled_[i] = true;
    if (seconds > good_while * 2) range_seeds_[i] = std::max<std::uint64_t>(range_seeds_[i] / 2, 1);
  }

  SeedSharingOptions options_;
  const std::vector<Tracker*> trackers_;
  CancelSource ending_;       // follows the run's token; cancelled when nobody wants more batches
  std::uint64_t window_ = 1;  // ranges that may be out at the same time
  std::vector<std::thread> threads_;

  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  bool started_ = false;
  bool stop_ = false;
  std::optional<Error> error_;  // the first
  std::size_t running_ = 0;     // threads
  std::uint64_t taken_;         // seeds before the next that a tracker gets
  std::uint64_t delivered_;     // seeds before the next that the caller gets
  std::uint64_t outstanding_ = 0;
  std::uint64_t waiting_bytes_ = 0;
  std::map<std::uint64_t, std::unique_ptr<StreamlineBatch>> ready_;
  std::vector<std::unique_ptr<StreamlineBatch>> spare_;
  std::vector<std::uint64_t> range_seeds_;
  std::vector<std::uint64_t> most_range_seeds_;
  std::vector<std::uint64_t> seeds_taken_;
  std::vector<bool> settled_;  // whether a range of the tracker took long enough
  std::uint32_t active_ = 0;
  Clock::time_point active_since_{};
  double tracking_seconds_ = 0;
};

}  // namespace

Result<std::unique_ptr<SeedSharing>> SeedSharing::start(std::span<Tracker* const> trackers,
                                                        const SeedSharingOptions& options) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<SeedSharing>> {
    auto sharing = std::make_unique<SharedSeeds>(trackers, options);
    CGL_TRY(sharing->start_threads());
    return sharing;
  });
}

}  // namespace cingulum
