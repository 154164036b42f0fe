// The hash of an array that a thread of its own makes while the run goes on: it is long to read, and wanted only where
// the sidecar is written. Called by Python's arrays. What is hashed stays until hex() has answered or this ends.
#pragma once

#include <future>
#include <string>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "formats/volume_array.hpp"

namespace cingulum {

class BackgroundHash {
 public:
  // One that is known.
  explicit BackgroundHash(std::string hex);
  explicit BackgroundHash(const VolumeArray& numbers);
  ~BackgroundHash();  // ends the thread
  BackgroundHash(const BackgroundHash&) = delete;
  BackgroundHash& operator=(const BackgroundHash&) = delete;

  // Waits for it. any thread
  [[nodiscard]] Result<std::string> hex(const CancelToken& cancel = {}) const;

 private:
  CancelSource ending_;
  std::shared_future<Result<std::string>> hex_;
};

}  // namespace cingulum
