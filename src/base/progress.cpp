#include "base/progress.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/quantity.hpp"

namespace cingulum {
namespace {

using namespace std::chrono_literals;

// The rate follows the last seconds of work: a sample of age t weighs exp(-t / 15 s).
constexpr double rate_memory_s = 15;

ProgressStyle resolve(ProgressStyle style, const TalkStream& stream) {
  if (style == ProgressStyle::automatic) return stream.is_terminal() ? ProgressStyle::bar : ProgressStyle::lines;
  if (style == ProgressStyle::bar && !stream.is_terminal()) return ProgressStyle::lines;
  return style;
}

std::chrono::steady_clock::duration interval_of(ProgressStyle style) {
  switch (style) {
    case ProgressStyle::bar: return 100ms;
    case ProgressStyle::json: return 1s;
    default: return 10s;
  }
}

// Three significant digits: 8.13, 81.3, 813, 8 130.
std::string format_rate(double rate) {
  if (rate >= 999.5) {
    const double scale = std::pow(10.0, std::floor(std::log10(rate)) - 2);
    const double rounded = std::round(rate / scale) * scale;
    return rounded < 1e18 ? format_count(static_cast<std::uint64_t>(std::llround(rounded)))
                          : fmt::format("{:.3g}", rate);
  }
  return fmt::format("{:.3g}", rate);
}

}  // namespace

Progress::Progress(std::string task, std::uint64_t total, std::string unit, ProgressOptions options)
    : task_(std::move(task)),
      total_(total),
      unit_(std::move(unit)),
      stream_(options.stream != nullptr ? *options.stream : TalkStream::standard_error()),
      clock_(options.clock ? std::move(options.clock) : [] { return Clock::now(); }),
      style_(resolve(options.style, stream_)),
      interval_(interval_of(style_)),
      start_(clock_()),
      next_draw_((start_ + interval_).time_since_epoch().count()),
      rate_time_(start_) {}

Progress::~Progress() {
  if (style_ == ProgressStyle::bar) stream_.clear_status();
}

void Progress::advance(std::uint64_t count) noexcept {
  done_.fetch_add(count, std::memory_order_relaxed);
  draw_if_due();
}

void Progress::set_note(std::string note) noexcept {
  {
    const std::lock_guard lock(mutex_);
    note_ = std::move(note);
  }
  draw_if_due();
}

void Progress::draw_if_due() noexcept {
  if (style_ == ProgressStyle::silent) return;
  const Clock::time_point now = clock_();
  if (now.time_since_epoch().count() < next_draw_.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  // Another thread may have drawn between the two looks at the time.
  if (!lock || finished_ || now.time_since_epoch().count() < next_draw_.load(std::memory_order_relaxed)) return;
  next_draw_.store((now + interval_).time_since_epoch().count(), std::memory_order_relaxed);
  try {
    draw(now, false);
  } catch (...) {
    // Out of memory: this drawing is left out.
  }
}

void Progress::finish() noexcept {
  const std::lock_guard lock(mutex_);
  if (finished_) return;
  finished_ = true;
  if (style_ == ProgressStyle::silent) return;
  if (style_ == ProgressStyle::bar) stream_.clear_status();
  try {
    draw(clock_(), true);
  } catch (...) {
  }
}

void Progress::draw(Clock::time_point now, bool last) {
  const std::uint64_t done = this->done();
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  update_rate(now, done);
  if (style_ == ProgressStyle::json) {
    stream_.write_line(json_text(done, elapsed, last));
  } else if (last) {
    stream_.write_line(last_line_text(done, elapsed));
  } else if (style_ == ProgressStyle::bar) {
    stream_.set_status(bar_text(done));
  } else {
    stream_.write_line(line_text(done));
  }
}

void Progress::update_rate(Clock::time_point now, std::uint64_t done) {
  const double passed = std::chrono::duration<double>(now - rate_time_).count();
  if (passed <= 0) return;
  const double rate = static_cast<double>(done - rate_done_) / passed;
  const bool first = rate_time_ == start_;
  const double weight = first ? 1 : 1 - std::exp(-passed / rate_memory_s);
  rate_per_s_ += weight * (rate - rate_per_s_);
  rate_time_ = now;
  rate_done_ = done;
}

std::optional<double> Progress::remaining_seconds(std::uint64_t done) const {
  if (total_ == 0 || rate_per_s_ <= 0) return std::nullopt;
  return static_cast<double>(total_ - std::min(done, total_)) / rate_per_s_;
}

std::string Progress::counts(std::uint64_t done) const {
  std::string text =
      total_ == 0 ? format_count(done) : fmt::format("{} of {}", format_count(done), format_count(total_));
  text += fmt::format(" {}", unit_);
  if (rate_per_s_ > 0) text += fmt::format(", {}/s", format_rate(rate_per_s_));
  if (const auto remaining = remaining_seconds(done)) {
    text += fmt::format(", {} left", format_duration(std::chrono::duration<double>(*remaining)));
  }
  if (!note_.empty()) text += fmt::format(", {}", note_);
  return text;
}

std::string Progress::bar_text(std::uint64_t done) const {
  if (total_ == 0) return fmt::format("{}: {}", task_, counts(done));
  constexpr std::size_t cells = 24;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  const auto filled = static_cast<std::size_t>(share * cells);
  return fmt::format("{} [{}{}] {:3.0f}% {}", task_, std::string(filled, '#'), std::string(cells - filled, '.'),
                     std::floor(share * 100), counts(done));
}

std::string Progress::line_text(std::uint64_t done) const {
  if (total_ == 0) return fmt::format("{}: {}", task_, counts(done));
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total_));
  return fmt::format("{}: {:.0f}% {}", task_, std::floor(share * 100), counts(done));
}

std::string Progress::last_line_text(std::uint64_t done, double elapsed) const {
  std::string text = fmt::format("{}: {} {} in {}", task_, format_count(done), unit_,
                                 format_duration(std::chrono::duration<double>(elapsed)));
  if (elapsed > 0 && done > 0) text += fmt::format(", {}/s", format_rate(static_cast<double>(done) / elapsed));
  if (!note_.empty()) text += fmt::format(", {}", note_);
  return text;
}

std::string Progress::json_text(std::uint64_t done, double elapsed, bool last) const {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  object["event"] = "progress";
  object["task"] = task_;
  object["done"] = done;
  object["total"] = total_ == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(total_);
  object["unit"] = unit_;
  object["elapsed_s"] = elapsed;
  object["rate_per_s"] = last && elapsed > 0 ? static_cast<double>(done) / elapsed : rate_per_s_;
  const auto remaining = last ? std::optional(0.0) : remaining_seconds(done);
  object["remaining_s"] = remaining ? nlohmann::ordered_json(*remaining) : nlohmann::ordered_json(nullptr);
  if (!note_.empty()) object["note"] = note_;
  object["finished"] = last;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace cingulum
