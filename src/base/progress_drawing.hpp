// Progress on a stream of talk: a bar on a terminal, a plain line every ten seconds elsewhere, or one JSON object per
// line for programs. Made by Progress where a run brings no observer of its own; draws one task.
#pragma once

#include <optional>
#include <string>

#include "base/log.hpp"
#include "base/progress.hpp"

namespace cingulum {

class ProgressDrawing final : public ProgressObserver {
 public:
  // A bar on what is no terminal becomes lines.
  ProgressDrawing(ProgressStyle style, TalkStream& stream);

  [[nodiscard]] std::chrono::steady_clock::duration interval() const override;
  void step(const ProgressTask& task, const ProgressStep& step) override;
  void finish(const ProgressTask& task, const ProgressStep& last) override;
  void end(const ProgressTask& task) override;  // takes the bar away

 private:
  void update_rate(const ProgressStep& step);
  [[nodiscard]] std::optional<double> remaining_seconds(const ProgressTask& task, std::uint64_t done) const;
  [[nodiscard]] std::string counts(const ProgressTask& task, const ProgressStep& step) const;
  [[nodiscard]] std::string bar_text(const ProgressTask& task, const ProgressStep& step) const;
  [[nodiscard]] std::string line_text(const ProgressTask& task, const ProgressStep& step) const;
  [[nodiscard]] std::string json_text(const ProgressTask& task, const ProgressStep& step, bool last) const;

  TalkStream& stream_;
  const ProgressStyle style_;
  std::chrono::steady_clock::duration rate_elapsed_{};
  std::uint64_t rate_done_ = 0;
  double rate_per_s_ = 0;
};

}  // namespace cingulum
