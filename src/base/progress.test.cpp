#include "base/progress.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>
#include <vector>

namespace cingulum {
namespace {

using namespace std::chrono_literals;

struct Stage {
  explicit Stage(bool terminal)
      : stream([this](std::string_view text) { pieces.emplace_back(text); }, terminal,
               [] { return std::size_t{120}; }) {}

  [[nodiscard]] ProgressOptions options(ProgressStyle style = ProgressStyle::automatic) {
    return {.style = style, .stream = &stream, .clock = [this] { return now; }};
  }

  std::chrono::steady_clock::time_point now{1000s};
  std::vector<std::string> pieces;
  TalkStream stream;
};

TEST(Progress, shows_plain_lines_every_ten_seconds_where_there_is_no_terminal) {
  Stage stage(false);
  Progress progress("tracking", 1000, "seeds", stage.options());
  for (int i = 0; i < 250; ++i) {  // 25 s at 10 seeds each
    stage.now += 100ms;
    progress.advance();
  }
  ASSERT_EQ(stage.pieces.size(), 2U);
  EXPECT_EQ(stage.pieces[0], "tracking: 10% 100 of 1 000 seeds, 10/s, 1 min 30 s left\n");
  EXPECT_EQ(stage.pieces[1], "tracking: 20% 200 of 1 000 seeds, 10/s, 1 min 20 s left\n");
  progress.finish();
  ASSERT_EQ(stage.pieces.size(), 3U);
  EXPECT_EQ(stage.pieces[2], "tracking: 250 seeds in 25.0 s, 10/s\n");
  progress.finish();
  progress.advance();
  EXPECT_EQ(stage.pieces.size(), 3U);
}

TEST(Progress, shows_a_bar_on_a_terminal_and_takes_it_away) {
  Stage stage(true);
  {
    Progress progress("tracking", 200, "seeds", stage.options());
    stage.now += 2s;
    progress.advance(100);
  }
  EXPECT_EQ(stage.pieces,
            (std::vector<std::string>{"tracking [############............]  50% 100 of 200 seeds, 50/s, 2.0 s left",
                                      "\r\x1b[K"}));
}

TEST(Progress, draws_the_bar_ten_times_a_second_at_most) {
  Stage stage(true);
  Progress progress("tracking", 100000, "seeds", stage.options());
  for (int i = 0; i < 10000; ++i) {
    stage.now += 1ms;
    progress.advance();
  }
  EXPECT_EQ(stage.pieces.size(), 100U);
}

TEST(Progress, prints_one_json_object_a_line_for_programs) {
  Stage stage(true);
  Progress progress("tra\"cking", 1000, "seeds", stage.options(ProgressStyle::json));
  stage.now += 2s;
  progress.advance(100);
  progress.set_note("12 kept");
  stage.now += 2s;
  progress.finish();
  ASSERT_EQ(stage.pieces.size(), 2U);
  const auto first = nlohmann::json::parse(stage.pieces[0]);
  EXPECT_EQ(first, (nlohmann::json{{"event", "progress"},
                                   {"task", "tra\"cking"},
                                   {"done", 100},
                                   {"total", 1000},
                                   {"unit", "seeds"},
                                   {"elapsed_s", 2.0},
                                   {"rate_per_s", 50.0},
                                   {"remaining_s", 18.0},
                                   {"finished", false}}));
  const auto last = nlohmann::json::parse(stage.pieces[1]);
  EXPECT_EQ(last["finished"], true);
  EXPECT_EQ(last["note"], "12 kept");
  EXPECT_EQ(last["rate_per_s"], 25.0);
  for (const std::string& piece : stage.pieces) EXPECT_EQ(std::count(piece.begin(), piece.end(), '\n'), 1);
}

TEST(Progress, tells_programs_the_rate_of_all_that_was_done_at_the_end) {
  Stage stage(true);
  Progress progress("tracking", 20, "seeds", stage.options(ProgressStyle::json));
  stage.now += 1s;
  progress.advance(10);
  progress.advance(10);  // no time passes: the rate of the last second does not see them
  progress.finish();
  ASSERT_EQ(stage.pieces.size(), 2U);
  EXPECT_EQ(nlohmann::json::parse(stage.pieces[0])["rate_per_s"], 10.0);
  EXPECT_EQ(nlohmann::json::parse(stage.pieces[1])["rate_per_s"], 20.0);
}

TEST(Progress, has_no_rate_where_no_time_has_passed) {
  Stage stage(false);
  Progress progress("tracking", 20, "seeds", stage.options(ProgressStyle::lines));
  progress.advance(20);
  progress.finish();
  ASSERT_EQ(stage.pieces.size(), 1U);
  EXPECT_EQ(stage.pieces[0].find("/s"), std::string::npos) << stage.pieces[0];
  EXPECT_NE(stage.pieces[0].find("20 seeds in 0 ms"), std::string::npos) << stage.pieces[0];
}

TEST(Progress, says_nothing_when_silent) {
  Stage stage(true);
  {
    Progress progress("tracking", 10, "seeds", stage.options(ProgressStyle::silent));
    stage.now += 100s;
    progress.advance(10);
    progress.finish();
  }
  EXPECT_TRUE(stage.pieces.empty());
}

TEST(Progress, falls_back_from_a_bar_to_lines_where_there_is_no_terminal) {
  Stage stage(false);
  Progress progress("tracking", 10, "seeds", stage.options(ProgressStyle::bar));
  stage.now += 11s;
  progress.advance();
  ASSERT_EQ(stage.pieces.size(), 1U);
  EXPECT_TRUE(stage.pieces[0].ends_with('\n'));
}

TEST(Progress, without_a_total_shows_no_share_and_no_remaining_time) {
  Stage stage(false);
  Progress progress("reading", 0, "chunks", stage.options());
  stage.now += 10s;
  progress.advance(12345);
  EXPECT_EQ(stage.pieces, std::vector<std::string>{"reading: 12 345 chunks, 1 230/s\n"});
}

TEST(Progress, follows_the_recent_rate_more_than_the_old_one) {
  Stage stage(false);
  Progress progress("tracking", 1000000, "seeds", stage.options());
  stage.now += 10s;
  progress.advance(10000);  // 1000/s
  for (int i = 0; i < 10; ++i) {
    stage.now += 10s;
    progress.advance(1000);  // 100/s
  }
  EXPECT_NE(stage.pieces.back().find(", 101/s, "), std::string::npos) << stage.pieces.back();
}

TEST(Progress, says_a_hundred_percent_only_when_all_is_done) {
  for (const bool terminal : {true, false}) {
    Stage stage(terminal);
    Progress progress("tracking", 1000, "seeds", stage.options());
    stage.now += 10s;
    progress.advance(999);
    ASSERT_EQ(stage.pieces.size(), 1U);
    EXPECT_NE(stage.pieces[0].find(" 99% 999 of 1 000 seeds"), std::string::npos) << stage.pieces[0];
  }
}

TEST(Progress, shows_more_than_all_as_all) {
  Stage stage(true);
  Progress progress("tracking", 10, "seeds", stage.options());
  stage.now += 1s;
  progress.advance(20);
  EXPECT_NE(stage.pieces[0].find("[########################] 100% 20 of 10 seeds, 20/s, 0 ms left"), std::string::npos)
      << stage.pieces[0];
}

TEST(Progress, counts_exactly_from_many_threads) {
  Stage stage(true);
  Progress progress("tracking", 40000, "seeds",
                    {.stream = &stage.stream, .clock = [] { return std::chrono::steady_clock::now(); }});
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int k = 0; k < 10000; ++k) progress.advance();
        progress.set_note("note");
      });
    }
  }
  progress.finish();
  EXPECT_EQ(progress.done(), 40000U);
  EXPECT_TRUE(stage.pieces.back().starts_with("tracking: 40 000 seeds in ")) << stage.pieces.back();
}

// Writes down every call that it gets.
struct Observed final : ProgressObserver {
  [[nodiscard]] std::chrono::steady_clock::duration interval() const override { return 1s; }
  void begin(const ProgressTask& task) override {
    events.push_back(fmt::format("begin {} {} {}", task.label, task.total, task.unit));
  }
  void step(const ProgressTask& task, const ProgressStep& step) override {
    events.push_back(fmt::format("{} {} {}", task.label, step.done, step.note));
    if (step.done == 30) throw std::runtime_error("the observer has a fault");
  }
  void finish(const ProgressTask&, const ProgressStep& last) override {
    events.push_back(fmt::format("finish {} after {} s", last.done, last.elapsed / 1s));
  }
  void end(const ProgressTask& task) override { events.push_back("end " + task.label); }

  std::vector<std::string> events;
};

TEST(Progress, tells_an_observer_of_the_run_and_draws_nothing) {
  Stage stage(true);
  Observed observed;
  ProgressOptions options = stage.options();
  options.observer = &observed;
  {
    Progress progress("tracking", 100, "seeds", options);
    for (int i = 0; i < 4; ++i) {
      stage.now += 500ms;
      progress.set_note(fmt::format("{} kept", i));
      progress.advance(10);
    }
    progress.finish();
    progress.advance();
  }
  { const Progress fails("fitting", 0, "voxels", options); }
  EXPECT_EQ(observed.events,
            (std::vector<std::string>{"begin tracking 100 seeds", "tracking 10 1 kept", "tracking 30 3 kept",
                                      "finish 40 after 2 s", "end tracking", "begin fitting 0 voxels", "end fitting"}));
  EXPECT_TRUE(stage.pieces.empty());
}

}  // namespace
}  // namespace cingulum
