#include "ring/actor/buffer_table.hpp"

#include <gtest/gtest.h>

namespace cingulum::ring {
namespace {

TEST(buffer_table, a_handle_gives_the_bytes_until_it_is_released) {
  BufferTable table(2);
  const BufferHandle handle = table.add(100).value();
  const auto bytes = table.get(handle).value();
  EXPECT_EQ(bytes.size(), 100u);
  EXPECT_EQ(bytes[99], std::byte{0});
  bytes[3] = std::byte{42};
  EXPECT_EQ(table.get(handle).value()[3], std::byte{42});
  EXPECT_EQ(find_buffer<HostAtomics>(table.entries().data(), 2, table.number(), handle), bytes.data());
  EXPECT_EQ(table.release(handle).value(), 0u);
}

// The faults to catch: a released array is read as zeros, and nothing is ever freed.
TEST(buffer_table, a_stale_handle_is_an_error_also_when_the_slot_is_used_again) {
  BufferTable table(1);
  const BufferHandle first = table.add(8).value();
  EXPECT_TRUE(table.release(first));
  EXPECT_EQ(table.statistics().live, 0u);
  EXPECT_EQ(table.statistics().live_bytes, 0u);
  const BufferHandle second = table.add(8).value();
  EXPECT_EQ(second.slot, first.slot);
  const auto stale = table.get(first);
  ASSERT_FALSE(stale);
  EXPECT_EQ(stale.error().kind(), ErrorKind::not_found);
  EXPECT_NE(stale.error().message().find("stale"), std::string::npos) << stale.error().message();
  EXPECT_FALSE(table.release(first));
  EXPECT_FALSE(table.retain(first));
  EXPECT_EQ(find_buffer<HostAtomics>(table.entries().data(), 1, table.number(), first), nullptr);
  EXPECT_EQ(find_buffer<HostAtomics>(table.entries().data(), 1, table.number(), BufferHandle{}), nullptr);
  EXPECT_EQ(find_buffer<HostAtomics>(table.entries().data(), 1, table.number(),
                                     BufferHandle{9, 1, 8, table.number() & 0xffffu}),
            nullptr);
  EXPECT_TRUE(table.get(second));
  EXPECT_EQ(table.statistics().stale_lookups, 3u);
}

// {slot 0, generation 1} of one table was read as {slot 0, generation 1} of the other.
TEST(buffer_table, a_handle_of_another_table_is_refused) {
  BufferTable one(2);
  BufferTable other(2);
  const BufferHandle handle = one.add(8).value();
  ASSERT_TRUE(other.add(8));
  const auto wrong = other.get(handle);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().kind(), ErrorKind::not_found);
  EXPECT_NE(wrong.error().message().find("is of table"), std::string::npos) << wrong.error().message();
  EXPECT_FALSE(other.release(handle));
  EXPECT_EQ(find_buffer<HostAtomics>(other.entries().data(), 2, other.number(), handle), nullptr);
  EXPECT_NE(find_buffer<HostAtomics>(one.entries().data(), 2, one.number(), handle), nullptr);
}

TEST(buffer_table, the_last_reference_frees_and_tells_the_owner) {
  BufferTable table(4);
  int freed = 0;
  char bytes[4] = {};
  const BufferHandle handle = table.add_borrowed(bytes, sizeof(bytes), 0, [&] { ++freed; }).value();
  EXPECT_TRUE(table.retain(handle));
  EXPECT_EQ(table.release(handle).value(), 1u);
  EXPECT_EQ(freed, 0);
  EXPECT_EQ(table.release(handle).value(), 0u);
  EXPECT_EQ(freed, 1);
}

TEST(buffer_table, a_full_table_says_so) {
  BufferTable table(1);
  EXPECT_TRUE(table.add(1));
  const auto second = table.add(1);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().kind(), ErrorKind::full);
}

}  // namespace
}  // namespace cingulum::ring
