#include "view/live_desk.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <string>
#include <thread>

namespace cingulum::view::live_desk_tests {
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
      if (request.wish.size() == 1) return fail(ErrorKind::invalid_argument, "no");
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

TEST(live_desk, a_newer_request_of_a_page_takes_the_place_of_older_ones) {
  StepwiseAnswerer answerer;
  LiveDesk desk(answerer, 1ms);
  const auto sink = std::make_shared<KeptSink>();
  const std::uint32_t page = desk.open_page(sink);
  answerer.steps_ = 2;
  ASSERT_TRUE(desk.ask(page, {1, {}}));
  ASSERT_TRUE(comes_true([&] { return sink->sent().size() == 2; }));
  for (std::uint32_t number = 2; number <= 9; ++number) ASSERT_TRUE(desk.ask(page, {number, {}}));
  EXPECT_LE(desk.counts().waiting, 1u);
  // The one that runs is cancelled, not waited for: nothing lets it go on.
  ASSERT_TRUE(comes_true([&] { return desk.counts().replaced == 8; }));
  answerer.free_ = true;
  ASSERT_TRUE(comes_true([&] { return desk.counts().answered == 1; }));
  const auto sent = sink->sent();
  ASSERT_EQ(sent.size(), 6u);
  EXPECT_EQ(sent[1].request, 1u);
  for (std::size_t i = 2; i < 6; ++i) EXPECT_EQ(sent[i].request, 9u);
  EXPECT_EQ(sent.back().kind, 17);
  EXPECT_EQ(desk.counts().replaced, 8u);
}

TEST(live_desk, a_request_whose_moment_is_not_over_is_answered_before_a_newer_one) {
  StepwiseAnswerer answerer;
  LiveDesk desk(answerer, 1h);
  const auto sink = std::make_shared<KeptSink>();
  const std::uint32_t page = desk.open_page(sink);
  answerer.steps_ = 1;
  ASSERT_TRUE(desk.ask(page, {1, {}}));
  ASSERT_TRUE(comes_true([&] { return sink->sent().size() == 1; }));
  for (std::uint32_t number = 2; number <= 9; ++number) ASSERT_TRUE(desk.ask(page, {number, {}}));
  EXPECT_EQ(desk.counts().running, 1u);
  answerer.free_ = true;
  ASSERT_TRUE(comes_true([&] { return desk.counts().answered == 2; }));
  const auto sent = sink->sent();
  ASSERT_EQ(sent.size(), 8u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(sent[i].request, 1u);
  for (std::size_t i = 4; i < 8; ++i) EXPECT_EQ(sent[i].request, 9u);
  EXPECT_EQ(sent[3].kind, 17);
  EXPECT_EQ(desk.counts().replaced, 7u);
  // What waited of the first for a slow page is taken from its queue when the newer one begins, and not before.
  EXPECT_EQ(sink->forgotten(), (std::vector<std::uint32_t>{1, 9}));
}

TEST(live_desk, numbers_increase) {
  StepwiseAnswerer answerer;
  LiveDesk desk(answerer);
  const std::uint32_t page = desk.open_page(std::make_shared<KeptSink>());
  ASSERT_TRUE(desk.ask(page, {5, {}}));
  EXPECT_FALSE(desk.ask(page, {5, {}}));
  EXPECT_FALSE(desk.ask(page, {4, {}}));
  EXPECT_FALSE(desk.ask(page + 1, {6, {}}));
}

TEST(live_desk, a_cancelled_request_says_so_and_the_next_one_works) {
  StepwiseAnswerer answerer;
  LiveDesk desk(answerer);
  const auto sink = std::make_shared<KeptSink>();
  const std::uint32_t page = desk.open_page(sink);
  ASSERT_TRUE(desk.ask(page, {1, {}}));
  ASSERT_TRUE(comes_true([&] { return desk.counts().running == 1; }));
  desk.cancel(page, 7);
  desk.cancel(page, 1);
  ASSERT_TRUE(comes_true([&] { return sink->sent().size() == 1; }));
  EXPECT_EQ(sink->sent()[0].kind, 18);
  EXPECT_EQ(sink->sent()[0].body, "interrupted");
  answerer.free_ = true;
  ASSERT_TRUE(desk.ask(page, {2, {{"bad", {}, true}}}));
  ASSERT_TRUE(comes_true([&] { return sink->sent().size() == 2; }));
  EXPECT_EQ(sink->sent()[1].body, "invalid argument");
  ASSERT_TRUE(desk.ask(page, {3, {}}));
  ASSERT_TRUE(comes_true([&] { return sink->sent().size() == 6; }));
  const LiveCounts counts = desk.counts();
  EXPECT_EQ(counts.cancelled, 1u);
  EXPECT_EQ(counts.failed, 1u);
  EXPECT_EQ(counts.answered, 1u);
}

TEST(live_desk, a_page_that_closes_ends_its_own_request_and_no_other) {
  StepwiseAnswerer answerer;
  LiveDesk desk(answerer);
  const auto first = std::make_shared<KeptSink>(), second = std::make_shared<KeptSink>();
  const std::uint32_t a = desk.open_page(first), b = desk.open_page(second);
  EXPECT_NE(a, b);
  ASSERT_TRUE(desk.ask(a, {1, {}}));
  ASSERT_TRUE(comes_true([&] { return desk.counts().running == 1; }));
  ASSERT_TRUE(desk.ask(b, {1, {}}));
  desk.close_page(a);
  ASSERT_TRUE(comes_true([&] { return desk.counts().cancelled == 1; }));
  answerer.free_ = true;
  ASSERT_TRUE(comes_true([&] { return second->sent().size() == 4; }));
  EXPECT_TRUE(first->sent().empty());
  EXPECT_EQ(desk.counts().pages, 1u);
}

TEST(live_desk, a_page_that_does_not_read_loses_its_request) {
  StepwiseAnswerer answerer;
  LiveDesk desk(answerer);
  const auto deaf = std::make_shared<KeptSink>(), other = std::make_shared<KeptSink>();
  deaf->refuse();
  answerer.free_ = true;
  ASSERT_TRUE(desk.ask(desk.open_page(deaf), {1, {}}));
  ASSERT_TRUE(desk.ask(desk.open_page(other), {1, {}}));
  ASSERT_TRUE(comes_true([&] { return other->sent().size() == 4; }));
  ASSERT_TRUE(comes_true([&] { return desk.counts().failed == 1; }));
}

TEST(live_desk, pages_that_come_and_go_at_random_leave_nothing_and_mix_nothing) {
  StepwiseAnswerer answerer;
  answerer.free_ = true;
  LiveDesk desk(answerer);
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(seed);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t) {
    threads.emplace_back([&desk, seed, t] {
      std::mt19937 draw(seed + t);
      for (int round = 0; round < 100; ++round) {
        const auto sink = std::make_shared<KeptSink>();
        const std::uint32_t page = desk.open_page(sink);
        const std::uint32_t requests = draw() % 8;
        for (std::uint32_t i = 1; i <= requests; ++i) {
          EXPECT_TRUE(desk.ask(page, {i, {}}));
          if (draw() % 3 == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw() % 200));
          if (draw() % 5 == 0) desk.cancel(page, i);
        }
        desk.close_page(page);
        std::uint32_t newest = 0;
        for (const Sent& one : sink->sent()) {
          EXPECT_GE(one.request, newest);
          newest = one.request;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_TRUE(comes_true([&] { return desk.counts().running == 0; }));
  const LiveCounts counts = desk.counts();
  EXPECT_EQ(counts.pages, 0u);
  EXPECT_EQ(counts.waiting, 0u);
  EXPECT_EQ(counts.requests, counts.answered + counts.replaced + counts.cancelled + counts.failed);
}

}  // namespace
}  // namespace cingulum::view::live_desk_tests
