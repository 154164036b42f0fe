#include "base/bulk_memory.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>

namespace cingulum {
namespace {

TEST(BulkMemory, a_count_whose_bytes_do_not_fit_is_refused_and_does_not_wrap_round) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / sizeof(double);
  // Their bytes wrap round to 8 and to 64.
  EXPECT_THROW((void)BulkAllocator<double>().allocate(most + 2), std::bad_array_new_length);
  EXPECT_THROW((void)BulkAllocator<double>().allocate(most + 9), std::bad_array_new_length);
}

TEST(BulkMemory, begins_on_a_cache_line_and_if_large_on_a_large_page) {
  for (const std::size_t bytes : {1U, 63U, 4096U, (1U << 22U) - 1, 1U << 22U, (1U << 22U) + 1}) {
    const BulkVector<char> memory(bytes);
    const std::uintptr_t alignment = bytes >= 1U << 22U ? 1U << 21U : 64U;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % alignment, 0U) << bytes;
  }
}

}  // namespace
}  // namespace cingulum
