// Streamlines of a file for a page, batch after batch: the file is read once from front to back, whoever goes on where
// the last batch ended. Points that a line does not need are left out (linearise.hpp), since a page draws and does not
// measure. Called by the server of `cingulum view`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/tractogram.hpp"

namespace cingulum::view {

class ShownLines {
 public:
  // The pool may be null and outlives it.
  explicit ShownLines(ThreadPool* pool) : pool_(pool) {}

  // The batch that begins with streamline `first`, as the message of a batch (view_messages.hpp) of request 0 in which
  // seeds are places in the file; without streamlines at the end of the file. Batches begin where the one before ended:
  // at another streamline there is none. any thread
  [[nodiscard]] Result<std::vector<std::byte>> message(const std::filesystem::path& path, std::uint64_t first);

 private:
  struct Place {
    std::unique_ptr<TractogramReader> reader;
    std::uint64_t next = 0;  // streamline
  };
  [[nodiscard]] Result<std::vector<std::byte>> next_message(Place& place);

  ThreadPool* pool_;
  std::mutex mutex_;
  std::map<std::filesystem::path, Place> places_;
};

}  // namespace cingulum::view
