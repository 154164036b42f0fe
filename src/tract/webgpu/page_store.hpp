// The points that the kernel wrote to pages, on the host, and their assembly into a batch in the order of the seeds.
// Pages come in any order; each entry says what it holds (streamline_words.hpp). Called by the WebGPU tracker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/result.hpp"
#include "tract/run/tracker.hpp"
#include "tract/webgpu/streamline_words.hpp"

namespace cingulum {

// Pages that were downloaded together, in memory that may be larger: it is used again, since the system takes longer to
// hand out so much than a download takes.
struct PageBlock {
  std::size_t pages = 0;
  std::vector<PageEntryWords> entries;
  std::vector<float> points;  // page_words each

  // Sets `pages` and makes the memory large enough for them. What it held is lost.
  void reallocate(std::size_t count);
};

struct SeedCounts {
  std::uint64_t outside = 0;
  std::uint64_t without_direction = 0;
};

// The memory of `batch` is used again. `positions` are those of the range's seeds. Fails where the pages contradict
// each other: a defect of kernel or driver.
[[nodiscard]] Status assemble_pages(const std::vector<PageBlock>& blocks, SeedRange range,
                                    const std::vector<numerics::Vec3>& positions, const SeedCounts& counts,
                                    StreamlineBatch& batch);

}  // namespace cingulum
