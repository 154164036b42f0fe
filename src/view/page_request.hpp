// What a page of `cingulum view` asks for, in the names of `track`: which arguments it may give, what is refused, the
// words of the command that writes the same bytes, and what is said at the end of an answer. Used where a server
// answers (live_tracks.cpp) and where the page answers itself (exported_tracks.cpp).
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runs/argument.hpp"
#include "runs/track/track_request.hpp"
#include "tract/kernel/plan.hpp"
#include "tract/run/tracking_batches.hpp"

namespace cingulum {

// What is tracked: the words of `track` that name it and the arguments that hold for every request.
struct LiveSource {
  std::vector<std::string> data;
  std::vector<ArgumentText> options;
  std::string name;             // of the file, for the page
  std::string hidden_folder;    // of the phantom: shown by its name alone
  std::string before;           // what has to be run before the command: the phantom
  std::filesystem::path truth;  // the folder of a phantom; empty: none
  bool one_field = false;       // for a page that tracks by itself: every command says what is interpolated
};

// The same for a page that leaves this machine: of a name with a whole path the last part alone, no hidden folder, and
// nothing of where this machine computes and keeps fits.
[[nodiscard]] LiveSource shown_elsewhere(const LiveSource& source);

inline constexpr std::int64_t most_live_seeds = 100'000;
inline constexpr std::int64_t default_live_seeds = 200;

[[nodiscard]] const ArgumentText* find_option(const std::vector<ArgumentText>& options, std::string_view name);

// The request in the names of `track`, with what it leaves out. The table of `track` says what it may hold: nothing on
// which the field depends, and nothing that names a file.
[[nodiscard]] Result<std::vector<ArgumentText>> accept_page_request(const std::vector<ArgumentText>& asked,
                                                                    const LiveSource& source,
                                                                    const std::string& first_getter);

// What the source and the request, which goes before it, say together.
[[nodiscard]] std::vector<ArgumentText> joined_request(const LiveSource& source,
                                                       const std::vector<ArgumentText>& asked);

// The command that writes the same; users see no folder of the process in it.
[[nodiscard]] std::string command_of_request(const LiveSource& source, const std::vector<ArgumentText>& asked);

// What a page shows of a failure: the body of an error message.
[[nodiscard]] std::string describe_failure(const Error& error);

// Whether a request asks for a score. That is the viewer's, not an argument of `track`, and is taken out.
bool take_score(std::vector<ArgumentText>& asked);
// Shares of the kept streamlines by ConnectionVerdict, as `cingulum score` tells them; null where nothing was judged.
using VerdictCounts = std::array<std::uint64_t, 4>;
[[nodiscard]] nlohmann::ordered_json score_json(const VerdictCounts& verdicts);

// What the field was prepared for.
struct LiveLimits {
  std::vector<std::string> getters;
  std::optional<double> lowest_threshold;  // none: any
  std::int64_t reach_voxels = 0;

  [[nodiscard]] Status check(const TrackRequest& request) const;
  [[nodiscard]] Status check(const TrackingPlan& plan) const;
};

// The body of the message that ends an answer (docs/view.md, "Protocol").
struct AnswerTimes {
  double first_ms = 0;
  double plan_ms = 0;  // from the request's text to plan and seeds
  double tracking_ms = 0;
  double copies_ms = 0;  // to world space, judging, messages
  double total_ms = 0;
};
[[nodiscard]] nlohmann::ordered_json answer_end(std::uint64_t seeds, const TrackingStatistics& statistics,
                                                const AnswerTimes& times, std::string command);

}  // namespace cingulum
