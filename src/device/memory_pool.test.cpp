#include "device/memory_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <set>
#include <thread>

#include "support/each_device.hpp"

namespace cingulum {
namespace {

using testing::fails_with;

TEST(PoolSizes, device_blocks_fit_and_waste_at_most_an_eighth) {
  for (std::uint64_t bytes = 1; bytes < (std::uint64_t{1} << 40); bytes = bytes * 9 / 8 + 1) {
    const std::uint64_t block = device_block_bytes(bytes);
    ASSERT_GE(block, bytes);
    ASSERT_LE(block, std::max<std::uint64_t>(512, bytes + bytes / 8));
    ASSERT_EQ(device_block_bytes(block), block);
  }
}

TEST(PoolSizes, pinned_blocks_are_powers_of_two_from_64) {
  EXPECT_EQ(pinned_block_bytes(1), 64u);
  EXPECT_EQ(pinned_block_bytes(64), 64u);
  EXPECT_EQ(pinned_block_bytes(65), 128u);
  EXPECT_EQ(pinned_block_bytes(100000), 131072u);
}

class Pools : public testing::EachDevice {};
CGL_FOR_EACH_DEVICE(Pools);

TEST_P(Pools, a_returned_block_serves_the_next_request_of_its_size) {
  DevicePool pool(device());
  const Buffer* first = nullptr;
  {
    ASSERT_OK_AND_ASSIGN(const auto block, pool.acquire(1000));
    first = block->get();
    EXPECT_GE(first->bytes(), 1000u);
    EXPECT_EQ(pool.statistics().used_blocks, 1u);
  }
  EXPECT_EQ(pool.statistics().kept_bytes, device_block_bytes(1000));
  ASSERT_OK_AND_ASSIGN(const auto again, pool.acquire(990));
  EXPECT_EQ(again->get(), first);
  ASSERT_OK_AND_ASSIGN(const auto other, pool.acquire(1000));
  EXPECT_NE(other->get(), first);
  const PoolStatistics statistics = pool.statistics();
  EXPECT_EQ(statistics.requests, 3u);
  EXPECT_EQ(statistics.reused, 1u);
  EXPECT_EQ(statistics.used_blocks, 2u);
  EXPECT_EQ(statistics.kept_blocks, 0u);
  EXPECT_EQ(statistics.utilisation(), 1.0);
  EXPECT_TRUE(fails_with(pool.acquire(0), ErrorKind::invalid_argument, "at least one byte"));
}

TEST_P(Pools, trimming_gives_memory_back_to_the_device_but_not_while_the_pool_is_held) {
  const std::uint64_t base = device().budget().used_bytes();
  DevicePool pool(device());
  ASSERT_OK(pool.reserve(4096, 3));
  ASSERT_OK(pool.reserve(100000, 1));
  const std::uint64_t kept = 3 * 4096 + device_block_bytes(100000);
  EXPECT_EQ(pool.statistics().kept_bytes, kept);
  EXPECT_EQ(device().budget().used_bytes(), base + kept);
  {
    const PoolHold hold = pool.hold();
    EXPECT_TRUE(fails_with(pool.trim(), ErrorKind::invalid_state, "held still"));
    EXPECT_TRUE(fails_with(pool.acquire(777777), ErrorKind::invalid_state, "reserve before"));
    ASSERT_OK(pool.acquire(4096));
    EXPECT_EQ(device().budget().used_bytes(), base + kept);
  }
  ASSERT_OK_AND_ASSIGN(const std::uint64_t freed, pool.trim(2 * 4096));
  EXPECT_EQ(freed, kept - 2 * 4096);
  EXPECT_EQ(device().budget().used_bytes(), base + 2 * 4096);
  ASSERT_OK(pool.trim());
  EXPECT_EQ(device().budget().used_bytes(), base);
}

TEST_P(Pools, requests_that_no_machine_could_serve_are_refused_with_their_size) {
  DevicePool device_pool(device());
  PinnedPool pinned_pool(device(), HostMemoryKind::pageable);
  for (const std::uint64_t bytes : {(std::uint64_t{1} << 62) + 1, (std::uint64_t{1} << 63) + 1, ~std::uint64_t{0}}) {
    EXPECT_TRUE(fails_with(device_pool.acquire(bytes), ErrorKind::out_of_memory, "in one block"));
    EXPECT_TRUE(fails_with(pinned_pool.acquire(bytes), ErrorKind::out_of_memory, "in one block"));
    EXPECT_TRUE(fails_with(device_pool.reserve(bytes, 1), ErrorKind::out_of_memory, "in one block"));
  }
}

TEST_P(Pools, a_limit_is_kept_and_named) {
  DevicePool pool(device(), 10000);
  ASSERT_OK_AND_ASSIGN(const auto block, pool.acquire(8192));
  EXPECT_TRUE(fails_with(pool.acquire(4096), ErrorKind::out_of_memory, "limit of 9.8 KiB"));
  pool.set_limit(8192 + 4096);
  ASSERT_OK(pool.acquire(4096));
  EXPECT_EQ(pool.statistics().peak_bytes, 8192u + 4096u) << "the limit is reached to the byte";
}

TEST_P(Pools, trimming_leaves_no_more_than_it_was_told_to_keep) {
  DevicePool pool(device());
  ASSERT_OK(pool.reserve(4096, 3));
  ASSERT_OK_AND_ASSIGN(const std::uint64_t freed, pool.trim(2 * 4096 - 1));
  EXPECT_EQ(freed, 2u * 4096u) << "blocks go whole";
  EXPECT_EQ(pool.statistics().kept_bytes, 4096u);
  ASSERT_OK_AND_ASSIGN(const std::uint64_t nothing, pool.trim(4096));
  EXPECT_EQ(nothing, 0u);
  EXPECT_EQ(pool.statistics().peak_bytes, 3u * 4096u) << "the peak is not forgotten";
}

TEST_P(Pools, when_the_device_is_full_what_is_kept_goes_first) {
  const std::uint64_t base = device().budget().used_bytes();
  DevicePool pool(device());
  ASSERT_OK(pool.reserve(8192, 2));
  device().budget().set_limit(base + 20000);
  ASSERT_OK(pool.acquire(16384));
  EXPECT_EQ(device().budget().used_bytes(), base + 16384) << "both of the kept went";
  device().budget().set_limit(std::nullopt);
}

TEST_P(Pools, blocks_may_outlive_their_pool) {
  const std::uint64_t base = device().budget().used_bytes();
  {
    auto pool = std::make_unique<DevicePool>(device());
    ASSERT_OK_AND_ASSIGN(auto block, pool->acquire(1000));
    ASSERT_OK_AND_ASSIGN(auto moved, pool->acquire(1000));
    block = std::move(moved);  // the first goes back
    EXPECT_EQ(pool->statistics().kept_blocks, 1u);
    pool.reset();
    EXPECT_EQ(device().budget().used_bytes(), base + device_block_bytes(1000));
  }
  EXPECT_EQ(device().budget().used_bytes(), base);
}

TEST_P(Pools, pinned_blocks_are_cut_from_arenas_apart_and_usable) {
  const HostMemoryKind kind =
      device().capabilities().pinned_host_memory ? HostMemoryKind::pinned : HostMemoryKind::pageable;
  PinnedPool pool(device(), kind);
  std::vector<PooledBlock<PinnedBlock>> blocks;
  std::set<const std::byte*> starts;
  for (int i = 0; i < 100; ++i) {
    ASSERT_OK_AND_ASSIGN(auto block, pool.acquire(100));
    EXPECT_EQ(block->bytes.size(), 128u);
    std::fill(block->bytes.begin(), block->bytes.end(), static_cast<std::byte>(i));
    starts.insert(block->bytes.data());
    blocks.push_back(std::move(block));
  }
  EXPECT_EQ(starts.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    const auto& bytes = blocks[static_cast<std::size_t>(i)]->bytes;
    EXPECT_TRUE(
        std::all_of(bytes.begin(), bytes.end(), [&](std::byte value) { return value == static_cast<std::byte>(i); }));
  }
  const PoolStatistics statistics = pool.statistics();
  EXPECT_EQ(statistics.used_bytes, 100u * 128u);
  EXPECT_EQ(statistics.used_bytes + statistics.kept_bytes, 2u << 20) << "one arena serves them all";
  ASSERT_OK_AND_ASSIGN(const auto large, pool.acquire(3u << 20));
  EXPECT_EQ(large->bytes.size(), 4u << 20);
  // An arena with a block on loan stays.
  ASSERT_OK_AND_ASSIGN(const std::uint64_t freed_early, pool.trim());
  EXPECT_EQ(freed_early, 0u);
  blocks.clear();
  ASSERT_OK_AND_ASSIGN(const std::uint64_t freed, pool.trim());
  EXPECT_EQ(freed, 2u << 20);
}

TEST_P(Pools, mapped_blocks_have_device_addresses) {
  if (!device().capabilities().mapped_host_memory) {
    PinnedPool pool(device(), HostMemoryKind::mapped);
    EXPECT_TRUE(fails_with(pool.acquire(64), ErrorKind::unavailable, "mapped"));
    return;
  }
  PinnedPool pool(device(), HostMemoryKind::mapped);
  ASSERT_OK_AND_ASSIGN(const auto a, pool.acquire(64));
  ASSERT_OK_AND_ASSIGN(const auto b, pool.acquire(64));
  ASSERT_NE(a->device_pointer, nullptr);
  EXPECT_EQ(static_cast<std::byte*>(a->device_pointer) - static_cast<std::byte*>(b->device_pointer),
            a->bytes.data() - b->bytes.data());
}

TEST_P(Pools, many_threads_take_and_return_blocks_and_the_books_balance) {
  DevicePool pool(device());
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(t);
      std::vector<PooledBlock<DeviceBlock>> held;
      for (int i = 0; i < 300; ++i) {
        auto block = pool.acquire(1 + random() % 5000);
        if (!block) {
          ++failures;
          continue;
        }
        held.push_back(std::move(*block));
        if (held.size() > 8) held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  const PoolStatistics statistics = pool.statistics();
  EXPECT_EQ(statistics.used_bytes, 0u);
  EXPECT_EQ(statistics.used_blocks, 0u);
  EXPECT_EQ(statistics.requests, 1200u);
  ASSERT_OK_AND_ASSIGN(const std::uint64_t freed, pool.trim());
  EXPECT_EQ(freed, statistics.kept_bytes);
}

}  // namespace
}  // namespace cingulum
