#include "runs/background_hash.hpp"

#include <chrono>
#include <utility>

namespace cingulum {

BackgroundHash::BackgroundHash(std::string hex) {
  std::promise<Result<std::string>> known;
  known.set_value(std::move(hex));
  hex_ = known.get_future().share();
}

// Where no thread can be had, whoever asks for the hash makes it.
BackgroundHash::BackgroundHash(const VolumeArray& numbers)
    : hex_(std::async(std::launch::async | std::launch::deferred,
                      [numbers, cancel = ending_.token()] { return numbers.hash(cancel); })) {}

Result<std::string> BackgroundHash::hex(const CancelToken& cancel) const {
  constexpr std::chrono::milliseconds between_looks(20);
  while (hex_.wait_for(between_looks) == std::future_status::timeout) CGL_TRY(cancel.check());
  return hex_.get();
}

BackgroundHash::~BackgroundHash() {
  ending_.cancel();
  hex_.wait();
}

}  // namespace cingulum
