#include "formats/walked_reader.hpp"

#include <algorithm>
#include <limits>

namespace cingulum {

Result<bool> WalkedReader::next(TractogramBatch& batch, std::size_t max_points, bool as_float) {
  return add_file_context(catch_out_of_memory([&] { return read_batch(batch, max_points, as_float); }), "reading",
                          shown_);
}

Status WalkedReader::verify() {
  std::optional<std::size_t> place = known_.front();
  for (std::uint64_t streamline = 0; place; ++streamline) {
    CGL_TRY_ASSIGN(place, add_context(place_after(*place, streamline), "verifying {}", shown_));
  }
  return {};
}

Result<std::uint64_t> WalkedReader::count() {
  return named_walk_to(std::numeric_limits<std::uint64_t>::max());
}

Status WalkedReader::seek(std::uint64_t streamline) {
  CGL_TRY_ASSIGN(const std::uint64_t reached, named_walk_to(streamline));
  if (reached == streamline) return {};
  return fail(ErrorKind::not_found, "{}: there is no streamline {}", shown_, streamline);
}

Result<std::uint64_t> WalkedReader::named_walk_to(std::uint64_t streamline) {
  return add_file_context(catch_out_of_memory([&] { return walk_to(streamline); }), "reading", shown_);
}

Result<std::uint64_t> WalkedReader::walk_to(std::uint64_t streamline) {
  const std::uint64_t step = std::min<std::uint64_t>(streamline / known_step, known_.size() - 1);
  std::uint64_t here = step * known_step;
  std::size_t at = known_[static_cast<std::size_t>(step)];
  while (here < streamline) {
    CGL_TRY_ASSIGN(const std::optional<std::size_t> after, place_after(at, here));
    if (!after) break;
    at = *after;
    ++here;
    if (here == known_.size() * known_step) known_.push_back(at);
  }
  next_place_ = at;
  streamlines_read_ = here;
  ended_ = false;
  return here;
}

}  // namespace cingulum
