// A fixed set of threads that share loops: parallel_for splits a range into pieces and hands them to whoever is free,
// the calling thread included. Called by everything that uses the CPU's cores. Order and placement of pieces are not
// fixed, so a body must not let its result depend on them; docs/contract.md, section 2, says how sums stay equal.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <memory>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

#include "base/result.hpp"

namespace cingulum {

class ThreadPool {
 public:
  // A pool of `threads` (1 to max_thread_count), the caller of parallel_for counted: it starts threads - 1 of its own.
  [[nodiscard]] static Result<std::unique_ptr<ThreadPool>> create(int threads);
  ~ThreadPool();  // waits for its threads; no parallel_for may be running
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const noexcept { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(begin, end) over [0, count) in pieces of at most `grain` (0: the pool chooses), each index exactly once,
  // and returns when all are done. The first exception of a body is thrown here after the pieces that had begun ended;
  // pieces that had not begun are left out. A call from inside a body runs at once in the same thread.
  // any thread
  template <class Body>
  void parallel_for(std::size_t count, std::size_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run(
        count, grain,
        [](void* context, std::size_t begin, std::size_t end) { (*static_cast<Plain*>(context))(begin, end); },
        const_cast<void*>(static_cast<const void*>(std::addressof(body))));
  }

 private:
  using PieceFunction = void (*)(void* context, std::size_t begin, std::size_t end);
  struct Job;

  ThreadPool() = default;
  void run(std::size_t count, std::size_t grain, PieceFunction function, void* context);
  void work();
  [[nodiscard]] Job* find_job() noexcept;
  static void run_pieces(Job& job) noexcept;

  std::mutex mutex_;
  std::condition_variable work_changed_;  // a job was added, or the pool is ending
  std::condition_variable job_left_;      // a worker has left a job
  std::vector<Job*> jobs_;                // guarded by mutex_; the jobs live on their callers' stacks
  bool ending_ = false;                   // guarded by mutex_
  std::vector<std::thread> workers_;
};

}  // namespace cingulum
