// The rule about calls that block while a persistent kernel runs. Freeing device or pinned memory, unloading code and
// synchronising the whole device wait until every kernel has ended; a persistent kernel ends when it is told to, so
// such a call can wait for ever. A device's BlockingCalls knows whether one runs. Calls that answer are refused with a
// reason (check), frees by destructors are put off until the last persistent kernel has ended (free_or_keep), and each
// is a mistake that is reported: whoever works beside persistent kernels takes memory from pools (memory_pool.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace cingulum {

// All members: any thread
class BlockingCalls {
 public:
  // What a forbidden call does after it was reported. Debug builds end the program, so that the mistake is found where
  // it is made; release builds go on, the call having been refused or put off.
  enum class Reaction { go_on, abort };

  explicit BlockingCalls(std::string device_id);
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;
  ~BlockingCalls();

  // A persistent kernel runs for as long as the token lives; the last one to go frees what was put off.
  [[nodiscard]] std::shared_ptr<void> persistent_kernel_runs(std::string name);
  [[nodiscard]] bool forbidden() const;

  // Whether `call` ("synchronising the device") may be made now.
  [[nodiscard]] Status check(std::string_view call) const;

  using Free = void (*)(void*);
  // Calls free(what) now, or at the end of the persistent kernels.
  void free_or_keep(std::string_view call, Free free, void* what) noexcept;

  void set_reaction(Reaction reaction);
  // Forbidden calls so far, and frees that wait.
  [[nodiscard]] std::uint64_t forbidden_calls() const;
  [[nodiscard]] std::size_t kept() const;

 private:
  struct Kept {
    Free free;
    void* what;
  };
  void kernel_ended(const std::string& name) noexcept;
  void report(const std::string& message) const;

  std::string device_id_;
  mutable std::mutex mutex_;
  std::vector<std::string> running_;
  std::vector<Kept> kept_;
  mutable std::uint64_t forbidden_calls_ = 0;
  Reaction reaction_;
};

}  // namespace cingulum
