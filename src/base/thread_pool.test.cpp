#include "base/thread_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>

namespace cingulum {
namespace {

std::unique_ptr<ThreadPool> pool_of(int threads) {
  auto pool = ThreadPool::create(threads);
  EXPECT_TRUE(pool);
  return std::move(*pool);
}

TEST(ThreadPool, visits_every_index_exactly_once_in_pieces_of_at_most_the_grain) {
  for (const int threads : {1, 2, 3, 8}) {
    const auto pool = pool_of(threads);
    EXPECT_EQ(pool->threads(), threads);
    for (const std::size_t count : {0U, 1U, 2U, 7U, 64U, 1000U}) {
      for (const std::size_t grain : {0U, 1U, 3U, 64U, 5000U}) {
        std::vector<std::atomic<int>> visits(count);
        std::atomic<bool> too_large{false};
        pool->parallel_for(count, grain, [&](std::size_t begin, std::size_t end) {
          if (grain != 0 && end - begin > grain) too_large = true;
          for (std::size_t i = begin; i < end; ++i) ++visits[i];
        });
        EXPECT_FALSE(too_large);
        for (const auto& visit : visits) ASSERT_EQ(visit, 1) << threads << " " << count << " " << grain;
      }
    }
  }
}

TEST(ThreadPool, runs_pieces_at_the_same_time) {
  const auto pool = pool_of(2);
  std::atomic<int> inside{0};
  std::atomic<bool> met{false};
  pool->parallel_for(2, 1, [&](std::size_t, std::size_t) {
    ++inside;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (inside < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (inside == 2) met = true;
  });
  EXPECT_TRUE(met);
}

TEST(ThreadPool, throws_the_first_exception_to_the_caller_and_works_on) {
  for (const int threads : {1, 4}) {
    const auto pool = pool_of(threads);
    std::atomic<int> begun{0};
    const auto fail_early = [&] {
      pool->parallel_for(1000000, 1, [&](std::size_t begin, std::size_t) {
        ++begun;
        if (begin == 3) throw std::runtime_error("piece 3");
      });
    };
    EXPECT_THROW(fail_early(), std::runtime_error);
    EXPECT_LT(begun, 1000000);
    std::atomic<std::size_t> sum{0};
    pool->parallel_for(100, 1, [&](std::size_t begin, std::size_t) { sum += begin; });
    EXPECT_EQ(sum, 4950U);
  }
}

TEST(ThreadPool, throws_the_first_of_two_exceptions) {
  const auto pool = pool_of(2);
  const auto caller = std::this_thread::get_id();
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  const auto wait_for_two = [&](std::atomic<int>& inside) {
    ++inside;
    while (inside < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  };
  std::atomic<int> inside{0};
  std::string thrown;
  try {
    pool->parallel_for(2, 1, [&](std::size_t, std::size_t) {
      wait_for_two(inside);
      if (std::this_thread::get_id() != caller) throw std::runtime_error("first");
      // The pool's one worker has left this loop, and its exception is kept, once it takes part in another.
      std::jthread([&] {
        std::atomic<int> inside_another{0};
        pool->parallel_for(2, 1, [&](std::size_t, std::size_t) { wait_for_two(inside_another); });
      }).join();
      throw std::runtime_error("second");
    });
  } catch (const std::runtime_error& error) {
    thrown = error.what();
  }
  EXPECT_EQ(thrown, "first");
}

TEST(ThreadPool, survives_exceptions_in_every_piece) {
  const auto pool = pool_of(4);
  for (int round = 0; round < 200; ++round) {
    EXPECT_THROW(pool->parallel_for(64, 1, [](std::size_t begin, std::size_t) { throw begin; }), std::size_t);
  }
}

TEST(ThreadPool, runs_nested_loops_in_the_thread_of_the_piece) {
  const auto pool = pool_of(4);
  std::atomic<int> foreign{0};
  std::atomic<int> visits{0};
  // Two pieces leave two threads idle, which would take part in the slow inner loops if they could.
  pool->parallel_for(2, 1, [&](std::size_t, std::size_t) {
    const auto outer = std::this_thread::get_id();
    pool->parallel_for(8, 1, [&](std::size_t, std::size_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      if (std::this_thread::get_id() != outer) ++foreign;
      ++visits;
    });
  });
  EXPECT_EQ(foreign, 0);
  EXPECT_EQ(visits, 16);
}

TEST(ThreadPool, returns_only_when_the_last_piece_of_another_thread_is_done) {
  const auto pool = pool_of(2);
  const auto caller = std::this_thread::get_id();
  std::atomic<int> begun{0};
  std::atomic<int> ended{0};
  pool->parallel_for(2, 1, [&](std::size_t, std::size_t) {
    ++begun;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (begun < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
    if (std::this_thread::get_id() != caller) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    ++ended;
  });
  EXPECT_EQ(ended, 2);
}

TEST(ThreadPool, serves_several_callers_at_once) {
  const auto pool = pool_of(3);
  std::vector<std::size_t> sums(4);
  {
    std::vector<std::jthread> callers;
    for (std::size_t caller = 0; caller < sums.size(); ++caller) {
      callers.emplace_back([&, caller] {
        for (int round = 0; round < 200; ++round) {
          std::atomic<std::size_t> sum{0};
          pool->parallel_for(50, 1, [&](std::size_t begin, std::size_t) { sum += begin + caller; });
          sums[caller] += sum;
        }
      });
    }
  }
  for (std::size_t caller = 0; caller < sums.size(); ++caller) EXPECT_EQ(sums[caller], 200 * (1225 + 50 * caller));
}

TEST(ThreadPool, loses_no_wakeup_in_many_short_loops) {
  const auto pool = pool_of(4);
  std::atomic<std::size_t> pieces{0};
  for (int round = 0; round < 20000; ++round) pool->parallel_for(4, 1, [&](std::size_t, std::size_t) { ++pieces; });
  EXPECT_EQ(pieces, 80000U);
}

TEST(ThreadPool, starts_and_ends_cleanly_without_work) {
  for (int round = 0; round < 200; ++round) EXPECT_EQ(pool_of(4)->threads(), 4);
}

TEST(ThreadPool, sees_what_the_pieces_wrote) {
  const auto pool = pool_of(4);
  std::vector<int> values(10000);
  pool->parallel_for(values.size(), 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) values[i] = static_cast<int>(i);
  });
  EXPECT_EQ(std::accumulate(values.begin(), values.end(), 0LL), 49995000LL);
}

TEST(ThreadPool, takes_bodies_that_are_const_or_temporary) {
  const auto pool = pool_of(2);
  std::atomic<int> calls{0};
  const auto body = [&](std::size_t, std::size_t) { ++calls; };
  pool->parallel_for(2, 1, body);
  pool->parallel_for(2, 1, [&](std::size_t, std::size_t) { ++calls; });
  EXPECT_EQ(calls, 4);
}

TEST(ThreadPool, refuses_impossible_numbers_of_threads) {
  for (const int threads : {0, -1, 4097}) {
    const auto pool = ThreadPool::create(threads);
    ASSERT_FALSE(pool);
    EXPECT_EQ(pool.error().message(), std::to_string(threads) + " threads: accepted is 1 to 4096");
  }
}

}  // namespace
}  // namespace cingulum
