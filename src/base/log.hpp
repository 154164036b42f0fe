// Messages to people: log lines with levels on stderr, in whole lines, and the one place where a progress bar may stand
// below them; or whatever a LogSink makes of them. The program's entry sets the level, the prefix ("cingulum track")
// and how arguments are spelled; everybody else calls log_info(...) and its siblings, or the log of its RunContext.
// Results never go here: they belong on stdout.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/argument_name.hpp"

namespace cingulum {

enum class LogLevel { error, warning, info, debug };

[[nodiscard]] std::string_view log_level_name(LogLevel level);
[[nodiscard]] std::optional<LogLevel> log_level_from_name(std::string_view name);

// A stream of whole lines with at most one status line (the progress bar) below them. The status line is erased before
// a line is written and drawn again after it, so that neither tears the other. Nothing here throws or fails: under
// memory exhaustion and on a closed stream talk is dropped, work goes on.
class TalkStream {
 public:
  using Write = std::function<void(std::string_view)>;

  // `terminal` says whether a status line can be shown at all; `width` is asked at every drawing.
  TalkStream(Write write, bool terminal, std::function<std::size_t()> width);
  TalkStream(const TalkStream&) = delete;
  TalkStream& operator=(const TalkStream&) = delete;

  // The process's stderr.
  [[nodiscard]] static TalkStream& standard_error();

  // any thread
  void write_line(std::string_view line) noexcept;
  // Cut to the width; nothing where there is no terminal. any thread
  void set_status(std::string_view text) noexcept;
  // any thread
  void clear_status() noexcept;
  [[nodiscard]] bool is_terminal() const noexcept { return terminal_; }
  [[nodiscard]] std::size_t width() const { return width_(); }

 private:
  void write_with_status(std::string_view line, bool status_was_shown);

  std::mutex mutex_;
  Write write_;
  bool terminal_;
  std::function<std::size_t()> width_;
  std::string status_;
};

// Takes the messages of a Log in the place of its stream: a logger of Python, a list in a test. Called by one thread at
// a time, with the log's lock held: it must not log to the same Log. What it throws on goes to the stream.
class LogSink {
 public:
  virtual ~LogSink() = default;
  // One message, without prefix and level, its arguments spelled as the Log was set to.
  virtual void write(LogLevel level, std::string_view text) = 0;
};

class Log {
 public:
  explicit Log(TalkStream& stream) : stream_(stream) {}
  // `sink` outlives the log; progress that is drawn beside such a log goes to stderr.
  explicit Log(LogSink& sink) : stream_(TalkStream::standard_error()), sink_(&sink) {}

  // The process's log, on stderr.
  [[nodiscard]] static Log& standard();

  void set_level(LogLevel level) noexcept { level_.store(level, std::memory_order_relaxed); }
  [[nodiscard]] LogLevel level() const noexcept { return level_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool shows(LogLevel level) const noexcept { return level <= this->level(); }
  // any thread
  void set_prefix(std::string prefix);
  // How the arguments that a message mentions are spelled; plainly unless set. any thread
  void set_argument_naming(ArgumentNaming naming) noexcept { naming_.store(naming, std::memory_order_relaxed); }
  // Null: the stream again. When it returns, the sink before is not being called any more. any thread
  void set_sink(LogSink* sink) noexcept;
  [[nodiscard]] TalkStream& stream() noexcept { return stream_; }

  // "cingulum track: text", with "warning: " or "debug: " before the text at those levels. any thread
  void write(LogLevel level, std::string_view text) noexcept;

  // any thread
  template <class... Args>
  void print(LogLevel level, fmt::format_string<Args...> text, Args&&... args) noexcept {
    if (!shows(level)) return;
    try {
      write(level, fmt::format(text, std::forward<Args>(args)...));
    } catch (...) {
      write(level, "a message could not be formatted (out of memory)");
    }
  }

 private:
  TalkStream& stream_;
  std::atomic<LogLevel> level_{LogLevel::info};
  std::atomic<ArgumentNaming> naming_{plain_argument_name};
  std::mutex mutex_;  // guards what follows
  std::string prefix_ = "cingulum";
  LogSink* sink_ = nullptr;
};

// To the process's log. any thread
template <class... Args>
void log_error(fmt::format_string<Args...> text, Args&&... args) noexcept {
  Log::standard().print(LogLevel::error, text, std::forward<Args>(args)...);
}
template <class... Args>
void log_warning(fmt::format_string<Args...> text, Args&&... args) noexcept {
  Log::standard().print(LogLevel::warning, text, std::forward<Args>(args)...);
}
template <class... Args>
void log_info(fmt::format_string<Args...> text, Args&&... args) noexcept {
  Log::standard().print(LogLevel::info, text, std::forward<Args>(args)...);
}
template <class... Args>
void log_debug(fmt::format_string<Args...> text, Args&&... args) noexcept {
  Log::standard().print(LogLevel::debug, text, std::forward<Args>(args)...);
}

}  // namespace cingulum
