#include "base/bulk_memory.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <limits>

namespace cingulum {
namespace {

TEST(BulkMemory, a_count_whose_bytes_do_not_fit_is_refused_and_does_not_wrap_round) {
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max() / sizeof(double);
  // Their bytes wrap round to 8 and to 64.
  EXPECT_THROW((void)BulkAllocator<double>().allocate(most + 2), std::bad_array_new_length);
  EXPECT_THROW((void)BulkAllocator<double>().allocate(most + 9), std::bad_array_new_length);
  EXPECT_THROW((void)MappedAllocator<double>().allocate(most + 2), std::bad_array_new_length);
}

TEST(BulkMemory, begins_on_a_cache_line_and_if_large_on_a_large_page) {
  for (const std::size_t bytes : {1U, 63U, 4096U, (1U << 22U) - 1, 1U << 22U, (1U << 22U) + 1}) {
    const BulkVector<char> memory(bytes);
    const std::uintptr_t alignment = bytes >= 1U << 22U ? 1U << 21U : 64U;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % alignment, 0U) << bytes;
    const MappedVector<char> mapped(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(mapped.data()) % alignment, 0U) << bytes;
  }
}

TEST(BulkMemory, what_is_mapped_can_be_written_to_its_end_and_keeps_its_content_as_it_grows) {
  MappedVector<char> memory;
  for (const std::size_t bytes : {1U, (1U << 20U) - 1, 1U << 20U, (1U << 21U) + 1, 5U << 21U}) {
    const std::size_t before = memory.size();
    memory.resize(bytes);
    std::fill(memory.begin() + static_cast<std::ptrdiff_t>(before), memory.end(), 'a');
    EXPECT_EQ(std::count(memory.begin(), memory.end(), 'a'), bytes);
  }
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
TEST(BulkMemory, bytes_that_do_not_fit_when_they_are_rounded_to_pages_are_refused) {
  EXPECT_THROW((void)map_bulk_memory(std::numeric_limits<std::size_t>::max()), std::bad_alloc);
}

TEST(BulkMemory, what_is_mapped_goes_back_to_the_system_with_all_that_was_mapped_for_it) {
  const auto mapped_bytes = [] {
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;
    file >> pages;
    return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  };
  constexpr std::size_t bytes = (std::size_t{1} << 24U) + 1;
  (void)mapped_bytes();  // its own buffers
  const std::size_t before = mapped_bytes();
  {
    const MappedVector<char> memory(bytes);
    EXPECT_GE(mapped_bytes(), before + bytes);
    EXPECT_LE(mapped_bytes(), before + bytes + (std::size_t{1} << 21U));
  }
  EXPECT_EQ(mapped_bytes(), before);
}
#endif

TEST(BulkMemory, room_for_what_is_overwritten_has_some_to_spare_and_is_kept) {
  MappedVector<float> numbers;
  make_room(numbers, 800);
  EXPECT_EQ(numbers.size(), 800U);
  EXPECT_EQ(numbers.capacity(), 900U);
  const float* const place = numbers.data();
  make_room(numbers, 900);
  EXPECT_EQ(numbers.size(), 900U);
  make_room(numbers, 3);
  EXPECT_EQ(numbers.size(), 3U);
  EXPECT_EQ(numbers.data(), place);
}

}  // namespace
}  // namespace cingulum
