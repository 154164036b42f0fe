#include "base/thread_pool.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>

#include "base/settings.hpp"

namespace cingulum {
namespace {

// True while this thread runs a piece of any pool: a nested loop runs in place, because waiting for a pool from inside
// it could wait for itself.
thread_local bool inside_piece = false;

}  // namespace

struct ThreadPool::Job {
  PieceFunction function;
  void* context;
  std::size_t count;
  std::size_t grain;
  std::size_t pieces;
  std::atomic<std::size_t> next_piece{0};
  std::atomic<bool> failed{false};
  std::exception_ptr failure;  // written by the one thread that set `failed`, read after all have left
  int workers_inside = 0;      // guarded by the pool's mutex

  [[nodiscard]] bool has_pieces() const noexcept { return next_piece.load(std::memory_order_relaxed) < pieces; }
};

Result<std::unique_ptr<ThreadPool>> ThreadPool::create(int threads) {
  return catch_out_of_memory([&]() -> Result<std::unique_ptr<ThreadPool>> {
    if (threads < 1 || threads > max_thread_count) {
      return fail_argument("threads", "{} threads: accepted is 1 to {}", threads, max_thread_count);
    }
    std::unique_ptr<ThreadPool> pool(new ThreadPool);
    pool->workers_.reserve(static_cast<std::size_t>(threads) - 1);
    for (int i = 1; i < threads; ++i) {
      try {
        pool->workers_.emplace_back([raw = pool.get()] { raw->work(); });
      } catch (const std::system_error& error) {
        return fail(ErrorKind::unavailable, "starting thread {} of {}: {}; use {} {} or fewer", i + 1, threads,
                    error.code().message(), argument_name("threads"), i);
      }
    }
    return pool;
  });
}

ThreadPool::~ThreadPool() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  work_changed_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(std::size_t count, std::size_t grain, PieceFunction function, void* context) {
  if (count == 0) return;
  if (grain == 0) {
    // A few pieces per thread even out their differences.
    constexpr std::size_t pieces_per_thread = 8;
    grain = std::max<std::size_t>(1, count / (static_cast<std::size_t>(threads()) * pieces_per_thread));
  }
  if (inside_piece || workers_.empty() || count <= grain) {
    for (std::size_t begin = 0; begin < count;) {
      const std::size_t end = begin + std::min(grain, count - begin);
      function(context, begin, end);
      begin = end;
    }
    return;
  }

  Job job{.function = function,
          .context = context,
          .count = count,
          .grain = grain,
          .pieces = count / grain + (count % grain != 0 ? 1 : 0),
          .failure = nullptr};
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(&job);
  }
  work_changed_.notify_all();
  run_pieces(job);
  {
    // Once the job is off the list no worker can enter it; then wait for those inside.
    std::unique_lock lock(mutex_);
    jobs_.erase(std::find(jobs_.begin(), jobs_.end(), &job));
    job_left_.wait(lock, [&] { return job.workers_inside == 0; });
  }
  if (job.failure) std::rethrow_exception(job.failure);
}

void ThreadPool::run_pieces(Job& job) noexcept {
  inside_piece = true;
  while (true) {
    const std::size_t piece = job.next_piece.fetch_add(1, std::memory_order_relaxed);
    if (piece >= job.pieces) break;
    const std::size_t begin = piece * job.grain;
    const std::size_t end = begin + std::min(job.grain, job.count - begin);
    try {
      job.function(job.context, begin, end);
    } catch (...) {
      if (!job.failed.exchange(true)) job.failure = std::current_exception();
      job.next_piece.store(job.pieces, std::memory_order_relaxed);
    }
  }
  inside_piece = false;
}

ThreadPool::Job* ThreadPool::find_job() noexcept {
  for (Job* job : jobs_) {
    if (job->has_pieces()) return job;
  }
  return nullptr;
}

void ThreadPool::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    Job* job = nullptr;
    work_changed_.wait(lock, [&] { return ending_ || (job = find_job()) != nullptr; });
    if (job == nullptr) return;
    ++job->workers_inside;
    lock.unlock();
    run_pieces(*job);
    lock.lock();
    // All that this worker wrote, `failure` included, is published to the caller by the mutex.
    if (--job->workers_inside == 0) job_left_.notify_all();
  }
}

}  // namespace cingulum
