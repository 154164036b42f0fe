// A task beside the work of its owner, one at a time: the next tile is read, or the last slice is written, while this
// one is made. One thread, which the first task starts, takes all tasks of its owner; where the system gives no thread
// each is done when it is begun. Memory that runs out in a task is its failure. Called by runs that overlap stages;
// loops are shared by a ThreadPool instead.
#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "base/result.hpp"

namespace cingulum {

// one caller at a time
template <class Value>
class SideTask {
 public:
  using Task = std::function<Result<Value>()>;

  SideTask() = default;
  SideTask(const SideTask&) = delete;
  SideTask& operator=(const SideTask&) = delete;
  // Waits for a task that was begun.
  ~SideTask() {
    if (!thread_.joinable()) return;
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  // The task that was begun before has been ended.
  void begin(Task task) {
    if (!thread_.joinable()) {
      try {
        thread_ = std::thread([this] { work(); });
      } catch (const std::system_error&) {
        answer_.emplace(catch_out_of_memory(task));
        return;
      }
    }
    {
      const std::lock_guard lock(mutex_);
      task_ = std::move(task);
    }
    changed_.notify_all();
  }

  // Waits for the task that was begun, and gives its answer; where none was, an empty one.
  [[nodiscard]] Result<Value> end() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !task_; });
    Result<Value> answer = answer_ ? std::move(*answer_) : Result<Value>();
    answer_.reset();
    return answer;
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return closing_ || task_; });
      if (!task_) return;
      lock.unlock();
      answer_.emplace(catch_out_of_memory(task_));
      lock.lock();
      task_ = nullptr;  // frees what it holds before its owner goes on
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  Task task_;                            // empty: none is to be done; set, and emptied, under mutex_
  std::optional<Result<Value>> answer_;  // the thread's while there is a task, else the owner's
  bool closing_ = false;                 // guarded by mutex_
  std::thread thread_;
};

}  // namespace cingulum
