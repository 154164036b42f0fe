#include "view/request_queue.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>

namespace cingulum::view::request_queue_tests {
namespace {

using namespace std::chrono_literals;

struct Sent {
  std::uint16_t kind = 0;
  std::uint32_t request = 0;
  std::string body;
};

class KeptSink final : public LiveSink {
 public:
  Status send(std::uint32_t request, std::vector<std::byte> message) override {
    const std::lock_guard lock(mutex_);
    if (refuses_) return fail(ErrorKind::full, "full");
    Sent one;
    std::memcpy(&one.kind, message.data() + 4, 2);
    std::memcpy(&one.request, message.data() + 8, 4);
    EXPECT_EQ(one.request, request);
    one.body.assign(reinterpret_cast<const char*>(message.data()) + 12, message.size() - 12);
    sent_.push_back(one);
    return {};
  }
  void forget_before(std::uint32_t request) override {
    const std::lock_guard lock(mutex_);
    forgotten_.push_back(request);
  }
  [[nodiscard]] std::vector<std::uint32_t> forgotten() const {
    const std::lock_guard lock(mutex_);
    return forgotten_;
  }
  [[nodiscard]] std::vector<Sent> sent() const {
    const std::lock_guard lock(mutex_);
    return sent_;
  }
  void refuse() {
    const std::lock_guard lock(mutex_);
    refuses_ = true;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<Sent> sent_;
  std::vector<std::uint32_t> forgotten_;
  bool refuses_ = false;
};

// Sends three parts and an end, waits before each until it may go on, or is cancelled.
class StepwiseAnswerer final : public Answerer {
 public:
  Status answer(const LiveRequest& request, std::uint32_t, const CancelToken& cancel, const LiveSend& send) override {
    for (int part = 0; part < 4; ++part) {
      while (!free_ && steps_ == 0) {
        CGL_TRY(cancel.check());
        std::this_thread::sleep_for(1ms);
      }
      CGL_TRY(cancel.check());
      if (!free_) --steps_;
      if (request.arguments.size() == 1) return fail(ErrorKind::invalid_argument, "no");
      CGL_TRY(send(make_message(part < 3 ? MessageKind::batch : MessageKind::end, request.number, "")));
    }
    return {};
  }
  std::string describe(const Error& error) const override { return std::string(error_kind_name(error.kind())); }

  std::atomic<int> steps_{0};
  std::atomic<bool> free_{false};
};

template <class Condition>
bool comes_true(const Condition& condition) {
  for (int i = 0; i < 5000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(1ms);
  }
  return false;
}

TEST(request_queue, a_newer_request_of_a_page_takes_the_place_of_older_ones) {
  StepwiseAnswerer answerer;
  RequestQueue queue(answerer, 1ms);
  const auto sink = std::make_shared<KeptSink>();
  const std::uint32_t page = queue.open_page(sink);
  answerer.steps_ = 2;
  ASSERT_TRUE(queue.ask(page, {1, {}}));
  ASSERT_TRUE(comes_true([&] { return sink->sent().size() == 2; }));
  for (std::uint32_t number = 2; number <= 9; ++number) ASSERT_TRUE(queue.ask(page, {number, {}}));
  EXPECT_LE(queue.counts().waiting, 1u);
  // The one that runs is cancelled, not waited for: nothing lets it go on.
  ASSERT_TRUE(comes_true([&] { return queue.counts().replaced == 8; }));
  answerer.free_ = true;
  ASSERT_TRUE(comes_true([&] { return queue.counts().answered == 1; }));
  const auto sent = sink->sent();
  ASSERT_EQ(sent.size(), 6u);
  EXPECT_EQ(sent[1].request, 1u);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_EQ(sent[i].request, 9u);
  EXPECT_EQ(sent.back().kind, 17);
  EXPECT_EQ(queue.counts().replaced, 8u);
}

TEST(request_queue, a_request_whose_moment_is_not_over_is_answered_before_a_newer_one) {
  StepwiseAnswerer answerer;
  RequestQueue queue(answerer, 1h);
  const auto sink = std::make_shared<KeptSink>();
  const std::uint32_t page = queue.open_page(sink);
  answerer.steps_ = 1;
  ASSERT_TRUE(queue.ask(page, {1, {}}));
  ASSERT_TRUE(comes_true([&] { return sink->sent().size() == 1; }));
  for (std::uint32_t number = 2; number <= 9; ++number) ASSERT_TRUE(queue.ask(page, {number, {}}));
  EXPECT_EQ(queue.counts().running, 1u);
  answerer.free_ = true;
  ASSERT_TRUE(comes_true([&] { return queue.counts().answered == 2; }));
  const auto sent = sink->sent();
  ASSERT_EQ(sent.size(), 8u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(sent[i].request, 1u);
  for (std::size_t i = 4; i < 8; ++i) EXPECT_EQ(sent[i].request, 9u);
  EXPECT_EQ(sent[3].kind, 17);
  EXPECT_EQ(queue.counts().replaced, 7u);
  // What waited of the first for a slow page is taken from its queue when the newer one begins, and not before.
  EXPECT_EQ(sink->forgotten(), (std::vector<std::uint32_t>{1, 9}));
}

TEST(request_queue, numbers_increase) {
  StepwiseAnswerer answerer;
  RequestQueue queue(answerer);
  const std::uint32_t page = queue.open_page(std::make_shared<KeptSink>());
  ASSERT_TRUE(queue.ask(page, {5, {}}));
  EXPECT_FALSE(queue.ask(page, {5, {}}));
  EXPECT_FALSE(queue.ask(page, {4, {}}));
  EXPECT_FALSE(queue.ask(page + 1, {6, {}}));
}

TEST(request_queue, a_cancelled_request_says_so_and_the_next_one_works) {
  StepwiseAnswerer answerer;
  RequestQueue queue(answerer);
  const auto sink = std::make_shared<KeptSink>();
  const std::uint32_t page = queue.open_page(sink);
  ASSERT_TRUE(queue.ask(page, {1, {}}));
  ASSERT_TRUE(comes_true([&] { return queue.counts().running == 1; }));
  queue.cancel(page, 7);
  queue.cancel(page, 1);
  ASSERT_TRUE(comes_true([&] { return sink->sent().size() == 1; }));
  EXPECT_EQ(sink->sent()[0].kind, 18);
  EXPECT_EQ(sink->sent()[0].body, "interrupted");
  answerer.free_ = true;
  ASSERT_TRUE(queue.ask(page, {2, {{"bad", {}, true}}}));
  ASSERT_TRUE(comes_true([&] { return sink->sent().size() == 2; }));
  EXPECT_EQ(sink->sent()[1].body, "invalid argument");
  ASSERT_TRUE(queue.ask(page, {3, {}}));
  ASSERT_TRUE(comes_true([&] { return sink->sent().size() == 6; }));
  const LiveCounts counts = queue.counts();
  EXPECT_EQ(counts.cancelled, 1u);
  EXPECT_EQ(counts.failed, 1u);
  EXPECT_EQ(counts.answered, 1u);
}

TEST(request_queue, a_page_that_closes_ends_its_own_request_and_no_other) {
  StepwiseAnswerer answerer;
  RequestQueue queue(answerer);
  const auto first = std::make_shared<KeptSink>(), second = std::make_shared<KeptSink>();
  const std::uint32_t a = queue.open_page(first), b = queue.open_page(second);
  EXPECT_NE(a, b);
  ASSERT_TRUE(queue.ask(a, {1, {}}));
  ASSERT_TRUE(comes_true([&] { return queue.counts().running == 1; }));
  ASSERT_TRUE(queue.ask(b, {1, {}}));
  queue.close_page(a);
  ASSERT_TRUE(comes_true([&] { return queue.counts().cancelled == 1; }));
  answerer.free_ = true;
  ASSERT_TRUE(comes_true([&] { return second->sent().size() == 4; }));
  EXPECT_TRUE(first->sent().empty());
  EXPECT_EQ(queue.counts().pages, 1u);
}

TEST(request_queue, a_page_that_does_not_read_loses_its_request) {
  StepwiseAnswerer answerer;
  RequestQueue queue(answerer);
  const auto deaf = std::make_shared<KeptSink>(), other = std::make_shared<KeptSink>();
  deaf->refuse();
  answerer.free_ = true;
  ASSERT_TRUE(queue.ask(queue.open_page(deaf), {1, {}}));
  ASSERT_TRUE(queue.ask(queue.open_page(other), {1, {}}));
  ASSERT_TRUE(comes_true([&] { return other->sent().size() == 4; }));
  ASSERT_TRUE(comes_true([&] { return queue.counts().failed == 1; }));
}

TEST(request_queue, pages_that_come_and_go_at_random_leave_nothing_and_mix_nothing) {
  StepwiseAnswerer answerer;
  answerer.free_ = true;
  RequestQueue queue(answerer);
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&queue, seed, t] {
      std::mt19937 draw(seed + t);
      for (int round = 0; round < 100; ++round) {
        const auto sink = std::make_shared<KeptSink>();
        const std::uint32_t page = queue.open_page(sink);
        const std::uint32_t requests = draw() % 8;
        for (std::uint32_t i = 1; i <= requests; ++i) {
          EXPECT_TRUE(queue.ask(page, {i, {}}));
          if (draw() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw() % 200));
          if (draw() % 5 == 0) queue.cancel(page, i);
        }
        queue.close_page(page);
        std::uint32_t newest = 0;
        for (const Sent& one : sink->sent()) {
          EXPECT_GE(one.request, newest);
          newest = one.request;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(comes_true([&] { return queue.counts().running == 0; }));
  const LiveCounts counts = queue.counts();
  EXPECT_EQ(counts.pages, 0u);
  EXPECT_EQ(counts.waiting, 0u);
  EXPECT_EQ(counts.requests, counts.answered + counts.replaced + counts.cancelled + counts.failed);
}

}  // namespace
}  // namespace cingulum::view::request_queue_tests
