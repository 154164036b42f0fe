#include "base/progress_drawing.hpp"

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

double seconds_of(const ProgressStep& step) {
  return std::chrono::duration<double>(step.elapsed).count();
}

std::string last_line_text(const ProgressTask& task, const ProgressStep& step) {
  const double elapsed = seconds_of(step);
  std::string text = fmt::format("{}: {} {} in {}", task.label, format_count(step.done), task.unit,
                                 format_duration(std::chrono::duration<double>(elapsed)));
  if (elapsed > 0 && step.done > 0)
    text += fmt::format(", {}/s", format_rate(static_cast<double>(step.done) / elapsed));
  if (!step.note.empty()) text += fmt::format(", {}", step.note);
  return text;
}

}  // namespace

ProgressDrawing::ProgressDrawing(ProgressStyle style, TalkStream& stream)
    : stream_(stream), style_(resolve(style, stream)) {}

std::chrono::steady_clock::duration ProgressDrawing::interval() const {
  switch (style_) {
    case ProgressStyle::bar: return 100ms;
    case ProgressStyle::json: return 1s;
    default: return 10s;
  }
}

void ProgressDrawing::step(const ProgressTask& task, const ProgressStep& step) {
  update_rate(step);
  switch (style_) {
    case ProgressStyle::silent: return;
    case ProgressStyle::json: return stream_.write_line(json_text(task, step, false));
    case ProgressStyle::bar: return stream_.set_status(bar_text(task, step));
    default: return stream_.write_line(line_text(task, step));
  }
}

void ProgressDrawing::finish(const ProgressTask& task, const ProgressStep& last) {
  if (style_ == ProgressStyle::silent) return;
  end(task);
  update_rate(last);
  stream_.write_line(style_ == ProgressStyle::json ? json_text(task, last, true) : last_line_text(task, last));
}

void ProgressDrawing::end(const ProgressTask& /*task*/) {
  if (style_ == ProgressStyle::bar) stream_.clear_status();
}

void ProgressDrawing::update_rate(const ProgressStep& step) {
  const double passed = std::chrono::duration<double>(step.elapsed - rate_elapsed_).count();
  if (passed <= 0) return;
  const double rate = static_cast<double>(step.done - rate_done_) / passed;
  const bool first = rate_elapsed_ == std::chrono::steady_clock::duration{};
  const double weight = first ? 1 : 1 - std::exp(-passed / rate_memory_s);
  rate_per_s_ += weight * (rate - rate_per_s_);
  rate_elapsed_ = step.elapsed;
  rate_done_ = step.done;
}

std::optional<double> ProgressDrawing::remaining_seconds(const ProgressTask& task, std::uint64_t done) const {
  if (task.total == 0 || rate_per_s_ <= 0) return std::nullopt;
  return static_cast<double>(task.total - std::min(done, task.total)) / rate_per_s_;
}

std::string ProgressDrawing::counts(const ProgressTask& task, const ProgressStep& step) const {
  std::string text = task.total == 0 ? format_count(step.done)
                                     : fmt::format("{} of {}", format_count(step.done), format_count(task.total));
  text += fmt::format(" {}", task.unit);
  if (rate_per_s_ > 0) text += fmt::format(", {}/s", format_rate(rate_per_s_));
  if (const auto remaining = remaining_seconds(task, step.done)) {
    text += fmt::format(", {} left", format_duration(std::chrono::duration<double>(*remaining)));
  }
  if (!step.note.empty()) text += fmt::format(", {}", step.note);
  return text;
}

std::string ProgressDrawing::bar_text(const ProgressTask& task, const ProgressStep& step) const {
  if (task.total == 0) return fmt::format("{}: {}", task.label, counts(task, step));
  constexpr std::size_t cells = 24;
  const double share = std::min(1.0, static_cast<double>(step.done) / static_cast<double>(task.total));
  const auto filled = static_cast<std::size_t>(share * cells);
  return fmt::format("{} [{}{}] {:3.0f}% {}", task.label, std::string(filled, '#'), std::string(cells - filled, '.'),
                     std::floor(share * 100), counts(task, step));
}

std::string ProgressDrawing::line_text(const ProgressTask& task, const ProgressStep& step) const {
  if (task.total == 0) return fmt::format("{}: {}", task.label, counts(task, step));
  const double share = std::min(1.0, static_cast<double>(step.done) / static_cast<double>(task.total));
  return fmt::format("{}: {:.0f}% {}", task.label, std::floor(share * 100), counts(task, step));
}

std::string ProgressDrawing::json_text(const ProgressTask& task, const ProgressStep& step, bool last) const {
  const double elapsed = seconds_of(step);
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  object["event"] = "progress";
  object["task"] = task.label;
  object["done"] = step.done;
  object["total"] = task.total == 0 ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(task.total);
  object["unit"] = task.unit;
  object["elapsed_s"] = elapsed;
  object["rate_per_s"] = last && elapsed > 0 ? static_cast<double>(step.done) / elapsed : rate_per_s_;
  const auto remaining = last ? std::optional(0.0) : remaining_seconds(task, step.done);
  object["remaining_s"] = remaining ? nlohmann::ordered_json(*remaining) : nlohmann::ordered_json(nullptr);
  if (!step.note.empty()) object["note"] = step.note;
  object["finished"] = last;
  return object.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace cingulum
