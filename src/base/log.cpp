#include "base/log.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/log_subject.hpp"
#include "base/terminal.hpp"

namespace cingulum {
namespace {

constexpr std::array<std::string_view, 4> level_names = {"error", "warning", "info", "debug"};

// Back to the first column, then erase to the end of the line.
constexpr std::string_view erase_status = "\r\x1b[K";

// "sub-01: ", or empty.
thread_local std::string subject_of_thread;

void write_to_stderr(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

}  // namespace

std::string_view log_level_name(LogLevel level) {
  return level_names[static_cast<std::size_t>(level)];
}

std::optional<LogLevel> log_level_from_name(std::string_view name) {
  for (std::size_t i = 0; i < level_names.size(); ++i) {
    if (level_names[i] == name) return static_cast<LogLevel>(i);
  }
  return std::nullopt;
}

TalkStream::TalkStream(Write write, bool terminal, std::function<std::size_t()> width)
    : write_(std::move(write)), terminal_(terminal), width_(std::move(width)) {}

TalkStream& TalkStream::standard_error() {
  // Never destroyed: threads may still talk while the process ends.
  static TalkStream& stream = *new TalkStream(write_to_stderr, cingulum::is_terminal(STDERR_FILENO),
                                              [] { return terminal_width(STDERR_FILENO); });
  return stream;
}

void TalkStream::write_line(std::string_view line) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    try {
      write_with_status(line, !status_.empty());
    } catch (...) {
      // No memory to join the pieces: the line alone, in two writes.
      write_(line);
      write_("\n");
    }
  } catch (...) {
    // Talk is dropped rather than work disturbed.
  }
}

// One write call carries the line and the status: other processes on the same terminal cannot come between.
void TalkStream::write_with_status(std::string_view line, bool status_was_shown) {
  std::string text;
  text.reserve(line.size() + status_.size() + 2 * erase_status.size());
  if (status_was_shown) text += erase_status;
  text += line;
  if (!line.empty() && !line.ends_with('\n')) text += '\n';
  text += status_;
  write_(text);
}

void TalkStream::set_status(std::string_view text) noexcept {
  if (!terminal_) return;
  try {
    const std::lock_guard lock(mutex_);
    const bool shown = !status_.empty();
    // The last column stays free: some terminals wrap when it is filled.
    const std::size_t columns = width_();
    status_ = truncate_to_width(text, columns > 1 ? columns - 1 : 1);
    write_with_status({}, shown);
  } catch (...) {
  }
}

void TalkStream::clear_status() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    if (status_.empty()) return;
    status_.clear();
    write_(erase_status);
  } catch (...) {
  }
}

Log& Log::standard() {
  static Log& log = *new Log(TalkStream::standard_error());
  return log;
}

void Log::set_prefix(std::string prefix) {
  const std::lock_guard lock(mutex_);
  prefix_ = std::move(prefix);
}

void Log::set_sink(LogSink* sink) noexcept {
  const std::lock_guard lock(mutex_);
  sink_ = sink;
}

void Log::write(LogLevel level, std::string_view text) noexcept {
  if (!shows(level)) return;
  try {
    const std::string spelled = spell_argument_names(text, naming_.load(std::memory_order_relaxed));
    std::string line;
    {
      const std::lock_guard lock(mutex_);
      if (sink_ != nullptr) return sink_->write(level, subject_of_thread + spelled);
      line = prefix_;
    }
    line += ": ";
    if (level == LogLevel::warning || level == LogLevel::debug) line.append(log_level_name(level)).append(": ");
    line += escape_control_characters(subject_of_thread + spelled);
    stream_.write_line(line);
  } catch (...) {
    // The text itself needs no memory; it is better bare than lost.
    stream_.write_line(text);
  }
}

LogSubject::LogSubject(std::string subject) : before_(std::exchange(subject_of_thread, std::move(subject) + ": ")) {}

LogSubject::~LogSubject() {
  subject_of_thread = std::move(before_);
}

}  // namespace cingulum
