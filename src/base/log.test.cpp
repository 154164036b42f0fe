#include "base/log.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>
#include <vector>

#include "base/result.hpp"

namespace cingulum {
namespace {

// A stream into a string, with the pieces that single writes carried.
struct Captured {
  explicit Captured(bool terminal = false, std::size_t columns = 80)
      : stream([this](std::string_view text) { pieces.emplace_back(text); }, terminal, [columns] { return columns; }) {}

  [[nodiscard]] std::string text() const {
    std::string all;
    for (const std::string& piece : pieces) all += piece;
    return all;
  }

  std::vector<std::string> pieces;  // guarded by the stream's own lock
  TalkStream stream;
};

TEST(Log, prefixes_lines_and_names_warnings_and_debugging) {
  Captured captured;
  Log log(captured.stream);
  log.set_level(LogLevel::debug);
  log.set_prefix("cingulum track");
  log.print(LogLevel::error, "a {}", 1);
  log.print(LogLevel::warning, "b");
  log.print(LogLevel::info, "c");
  log.print(LogLevel::debug, "d");
  EXPECT_EQ(captured.text(),
            "cingulum track: a 1\ncingulum track: warning: b\ncingulum track: c\ncingulum track: debug: d\n");
}

TEST(Log, shows_only_its_level_and_what_is_graver) {
  Captured captured;
  Log log(captured.stream);
  log.set_level(LogLevel::warning);
  log.print(LogLevel::info, "hidden");
  log.print(LogLevel::warning, "shown");
  log.print(LogLevel::error, "shown too");
  EXPECT_EQ(captured.text(), "cingulum: warning: shown\ncingulum: shown too\n");
}

TEST(Log, lets_no_control_character_reach_the_terminal) {
  Captured captured;
  Log log(captured.stream);
  log.print(LogLevel::error, "reading {}", "a\x1b[2J\rb\x7f");
  EXPECT_EQ(captured.text(), "cingulum: reading a\\x1b[2J\\x0db\\x7f\n");
}

TEST(Log, writes_whole_lines_from_many_threads) {
  Captured captured;
  Log log(captured.stream);
  {
    std::vector<std::jthread> threads;
    for (int thread = 0; thread < 4; ++thread) {
      threads.emplace_back([&log, thread] {
        for (int i = 0; i < 500; ++i) log.print(LogLevel::info, "thread {} line {} end", thread, i);
      });
    }
  }
  EXPECT_EQ(captured.pieces.size(), 2000U);
  EXPECT_EQ(std::set<std::string>(captured.pieces.begin(), captured.pieces.end()).size(), 2000U) << "each line once";
  for (const std::string& piece : captured.pieces) {
    EXPECT_TRUE(piece.starts_with("cingulum: thread ") && piece.ends_with(" end\n")) << piece;
  }
}

TEST(TalkStream, moves_the_status_line_out_of_the_way_of_lines) {
  Captured captured(true);
  captured.stream.set_status("50%");
  captured.stream.write_line("hello");
  captured.stream.set_status("60%");
  captured.stream.clear_status();
  captured.stream.write_line("bye");
  EXPECT_EQ(captured.pieces,
            (std::vector<std::string>{"50%", "\r\x1b[Khello\n50%", "\r\x1b[K60%", "\r\x1b[K", "bye\n"}));
}

TEST(TalkStream, cuts_the_status_to_the_width_less_one_column) {
  Captured captured(true, 10);
  captured.stream.set_status("0123456789abc");
  EXPECT_EQ(captured.text(), "012345678");
}

TEST(TalkStream, shows_no_status_where_there_is_no_terminal) {
  Captured captured(false);
  captured.stream.set_status("50%");
  captured.stream.clear_status();
  EXPECT_EQ(captured.text(), "");
}

int signal_pipe = -1;

// A pipe that nobody empties holds the line up until signals have come, each of which ends the system call.
TEST(TalkStream, that_is_standard_error_loses_nothing_to_signals) {
  int talk[2], signals[2];
  ASSERT_EQ(::pipe(talk), 0);
  ASSERT_EQ(::pipe(signals), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(talk[0]);
    ::dup2(talk[1], STDERR_FILENO);
    ::close(talk[1]);
    signal_pipe = signals[1];
    ::fcntl(STDERR_FILENO, F_SETFL, O_NONBLOCK);
    while (::write(STDERR_FILENO, "x", 1) == 1) continue;
    ::fcntl(STDERR_FILENO, F_SETFL, 0);
    struct sigaction action {};  // without SA_RESTART
    action.sa_handler = [](int) { static_cast<void>(!::write(signal_pipe, "s", 1)); };
    ::sigaction(SIGALRM, &action, nullptr);
    const itimerval every_5_ms = {{0, 5000}, {0, 5000}};
    ::setitimer(ITIMER_REAL, &every_5_ms, nullptr);
    TalkStream::standard_error().write_line("a line");
    ::_exit(0);
  }
  ::close(talk[1]);
  ::close(signals[1]);
  char byte = 0;
  for (int i = 0; i < 10; ++i) ASSERT_EQ(::read(signals[0], &byte, 1), 1) << "the child ended before its line was read";
  std::string text;
  while (::read(talk[0], &byte, 1) == 1) text.push_back(byte);
  ::close(talk[0]);
  ::close(signals[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(text.ends_with("xa line\n")) << text.substr(text.size() - std::min<std::size_t>(text.size(), 20));
}

TEST(LogLevel, names_lead_back_to_levels) {
  for (const LogLevel level : {LogLevel::error, LogLevel::warning, LogLevel::info, LogLevel::debug}) {
    EXPECT_EQ(log_level_from_name(log_level_name(level)), level);
  }
  EXPECT_EQ(log_level_from_name("loud"), std::nullopt);
}

std::string as_keyword(std::string_view name) {
  return std::string(name) + "=";
}

TEST(Log, spells_the_arguments_that_a_message_mentions_as_it_was_told) {
  Captured captured;
  Log log(captured.stream);
  log.print(LogLevel::info, "no {} given", argument_name("mask"));
  log.set_argument_naming(as_keyword);
  log.print(LogLevel::info, "no {} given", argument_name("mask"));
  log.print(LogLevel::info, "{}", fail(ErrorKind::io, "use {} cpu", argument_name("device")).value());
  EXPECT_EQ(captured.text(), "cingulum: no mask given\ncingulum: no mask= given\ncingulum: use device= cpu\n");
}

TEST(Log, gives_its_messages_to_a_sink_where_there_is_one) {
  struct Kept final : LogSink {
    void write(LogLevel level, std::string_view text) override {
      lines.push_back(fmt::format("{}|{}", log_level_name(level), text));
      if (text == "bad") throw std::bad_alloc();
    }
    std::vector<std::string> lines;
  };
  Kept kept, own;
  Captured captured;
  Log log(captured.stream);
  log.set_sink(&kept);
  log.print(LogLevel::warning, "a {}", argument_name("mask"));
  log.print(LogLevel::debug, "hidden");
  log.print(LogLevel::info, "bad");
  log.set_sink(nullptr);
  log.print(LogLevel::info, "b");
  Log another(own);
  another.print(LogLevel::info, "c");
  EXPECT_EQ(kept.lines, (std::vector<std::string>{"warning|a mask", "info|bad"}));
  EXPECT_EQ(own.lines, std::vector<std::string>{"info|c"});
  EXPECT_EQ(captured.text(), "bad\ncingulum: b\n");
}

}  // namespace
}  // namespace cingulum
