// Streamlines of a page without a server (`cingulum view --export`): the host part of tracking, from the request of a
// page to the messages that a server would send, byte for byte. Compiled for browsers (web/host), where WebGPU tracks
// and the page carries bytes to and fro; and for the program, which makes the values by which a page checks its
// adapter. Knows no device: the CPU is its own, a GPU is driven by whoever calls.
//
// A request: ask(); then for every range of seeds next_range(), and either track_by_cpu() or the dispatches that
// driven() describes; then end_range(), whose message may be empty; and end() when next_range() has no more.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "dmri/phantom/phantom_description.hpp"
#include "dmri/score/score_streamline.hpp"
#include "formats/tractogram.hpp"
#include "tract/field/field.hpp"
#include "tract/run/driven_tracking.hpp"
#include "tract/run/finisher.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"
#include "tract/session/batch_pace.hpp"
#include "view/page_request.hpp"

namespace cingulum {

// What a page knows of the field besides its bytes: member `tracks` of the exported listing. Nothing in it names a file
// of the machine that exported, but the words of the command, and of those that are absolute only the last part.
struct ExportedFacts {
  LiveSource source;
  std::string first_getter;
  LiveLimits limits;
  double min_signal = 0;
  std::optional<PhantomTruth> truth;  // where streamlines can be scored
  nlohmann::ordered_json model;       // of the sidecar of `track`
  nlohmann::ordered_json arguments;   // of each getter, as arguments_for_sidecar() writes them, complete
};
[[nodiscard]] nlohmann::ordered_json facts_json(const ExportedFacts& facts);
[[nodiscard]] Result<ExportedFacts> facts_of_json(const nlohmann::ordered_json& json);

class ExportedTracks {
 public:
  // The bytes of view/field_bytes.hpp; the records are filled in by the caller before the first request.
  [[nodiscard]] static Result<std::unique_ptr<ExportedTracks>> open(ExportedFacts facts,
                                                                    std::span<const std::byte> field_head);
  [[nodiscard]] std::span<std::byte> records();
  [[nodiscard]] const Field& field() const { return field_; }

  // The next requests are tracked by such an adapter; fails where the field is beyond one of its limits.
  [[nodiscard]] Status use_adapter(const DrivenAdapter& adapter);
  void use_cpu() { driven_.reset(); }
  [[nodiscard]] DrivenTracking* driven() { return driven_.get(); }

  // `saves`: end() gives the TRX in the place of messages.
  [[nodiscard]] Status ask(std::uint32_t number, std::string_view asked, bool saves);
  [[nodiscard]] const TrackingPlan& plan() const { return plan_; }
  // Nothing after the last.
  [[nodiscard]] std::optional<SeedRange> next_range();
  [[nodiscard]] Status track_by_cpu();
  [[nodiscard]] Result<std::span<const std::byte>> begin_dispatches() { return driven_->begin(range_, *seeds_); }
  [[nodiscard]] Result<std::vector<std::byte>> end_range();
  [[nodiscard]] Result<std::vector<std::byte>> end();
  [[nodiscard]] std::string command() const;
  // What `track` writes beside its file of the request that was saved last, as far as a page knows it: not the hashes
  // of inputs, which it has not, nor the member `run`.
  [[nodiscard]] nlohmann::ordered_json sidecar() const;
  // What the request has made so far.
  [[nodiscard]] const TrackingStatistics& statistics() const { return statistics_; }

  // Pictures of a slice: field_glyphs.hpp, field_peaks.hpp.
  [[nodiscard]] Result<std::vector<std::byte>> glyphs(int axis, double mm);
  [[nodiscard]] Result<std::vector<std::byte>> peaks(int axis, double mm);

 private:
  explicit ExportedTracks(ExportedFacts facts);
  [[nodiscard]] Result<TrackRequest> complete(const std::vector<ArgumentText>& asked) const;

  ExportedFacts facts_;
  std::optional<StreamlineJudge> judge_;  // of the truth
  Field field_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<DrivenTracking> driven_;  // null: the CPU tracks
  std::unique_ptr<Tracker> cpu_;            // of the first plan; those of requests share its tables
  BatchPace pace_;

  // The request.
  std::uint32_t number_ = 0;
  bool saves_ = false;
  std::vector<ArgumentText> asked_;
  TrackRequest request_;
  TrackingOptions tracking_options_;
  std::optional<JudgeHistograms> histograms_;  // where it is scored
  VerdictCounts verdicts_{};
  TrackingPlan plan_{};
  std::unique_ptr<Seeds> seeds_;
  std::unique_ptr<Tracker> tracker_;  // where the CPU tracks
  TrackingRunOptions options_;
  TrackingStatistics statistics_;
  std::unique_ptr<Finisher> finisher_;
  StreamlineBatch batch_;
  SeedRange range_;
  std::uint64_t done_ = 0;  // seeds
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin_;
  Clock::time_point range_begin_;
  std::optional<double> first_ms_;
  double plan_ms_ = 0;
  double tracking_ms_ = 0;
  std::unique_ptr<TractogramWriter> writer_;  // where it saves
};

// By which bits are compared: FNV-1a of 64 bits, in hexadecimal.
class BitSum {
 public:
  void add(std::span<const std::byte> bytes);
  [[nodiscard]] std::string hex() const;

 private:
  std::uint64_t sum_ = 0xcbf29ce484222325u;
};

// The sum of a whole request tracked by the CPU: what a page's adapter has to give for the same request.
[[nodiscard]] Result<std::string> sum_by_cpu(ExportedTracks& tracks, std::string_view asked);

}  // namespace cingulum
