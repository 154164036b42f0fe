#include "cli/live_wish.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/shell_word.hpp"
#include "streamlines/sphere_text.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;
using view::WishedOption;

constexpr std::string_view options_of_requests[] = {"dg",
                                                    "nseeds",
                                                    "seed",
                                                    "seed-seed",
                                                    "step-size",
                                                    "max-angle",
                                                    "fa-threshold",
                                                    "stop-threshold",
                                                    "relative-peak-threshold",
                                                    "min-separation-angle",
                                                    "pmf-threshold",
                                                    "pmf-threshold-absolute",
                                                    "max-directions",
                                                    "start",
                                                    "one-sided",
                                                    "second-half",
                                                    "angular-weight",
                                                    "no-refine",
                                                    "rk4",
                                                    "boot-attempts",
                                                    "boot-retry",
                                                    "boot-seed",
                                                    "ptt-probe-length",
                                                    "ptt-probe-radius",
                                                    "ptt-probe-quality",
                                                    "ptt-probe-count",
                                                    "ptt-exponent",
                                                    "ptt-min-radius",
                                                    "ptt-weak",
                                                    "ptt-tries",
                                                    "ptt-bound-interval",
                                                    "ptt-substeps",
                                                    "min-length",
                                                    "max-length",
                                                    "min-points",
                                                    "max-points",
                                                    "include",
                                                    "include-ordered",
                                                    "exclude",
                                                    "stop"};
// Which peaks of a file there are is settled when it is read.
constexpr std::string_view settled_by_peaks[] = {"relative-peak-threshold", "min-separation-angle",
                                                 "pmf-threshold-absolute"};

bool is_one_of(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

LiveSource shown_elsewhere(const LiveSource& source) {
  LiveSource shown = source;
  const auto shorten = [&source](std::string& text) {
    if (!source.hidden_folder.empty() && text.starts_with(source.hidden_folder)) {
      text.erase(0, source.hidden_folder.size());
    } else if (text.starts_with('/')) {
      text.erase(0, text.find_last_of('/') + 1);
    }
  };
  std::erase_if(shown.options,
                [](const WishedOption& option) { return option.name == "device" || option.name == "cache-dir"; });
  for (std::string& file : shown.data) shorten(file);
  for (WishedOption& option : shown.options) std::for_each(option.texts.begin(), option.texts.end(), shorten);
  shown.hidden_folder.clear();
  shown.truth.clear();
  return shown;
}

std::span<const std::string_view> live_options() {
  return options_of_requests;
}

const WishedOption* find_option(const std::vector<WishedOption>& options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const auto& one) { return one.name == name; });
  return found == options.end() ? nullptr : &*found;
}

Result<std::vector<WishedOption>> accept_wish(const std::vector<WishedOption>& wish, const LiveSource& source,
                                              const std::string& first_getter, std::span<const Argument> known) {
  std::vector<WishedOption> accepted;
  for (const WishedOption& option : wish) {
    if (option.name == "sphere") {
      if (option.texts.size() != 1) return fail_argument("seed_sphere", "a request has one sphere");
      accepted.push_back({"seed-sphere", option.texts, false});
      continue;
    }
    const bool accepts = is_one_of(options_of_requests, option.name);
    const bool settled = find_option(source.options, "peaks") != nullptr && is_one_of(settled_by_peaks, option.name);
    if (!accepts || settled) {
      return fail(ErrorKind::invalid_argument,
                  "'{}' cannot be changed while the field stays; start `cingulum view` with it", option.name);
    }
    if (option.name == "include" || option.name == "include-ordered" || option.name == "exclude" ||
        option.name == "stop") {
      for (const std::string& text : option.texts) {
        if (!parse_sphere(text))
          return fail(ErrorKind::invalid_argument, "--{} '{}': accepted is a sphere x,y,z,r", option.name, text);
      }
    }
    const auto argument =
        std::find_if(known.begin(), known.end(), [&](const Argument& one) { return one.name == option.name; });
    if (argument == known.end() || (argument->type == ArgumentType::flag) != option.is_flag) {
      return fail(ErrorKind::invalid_argument, "--{} {}", option.name,
                  option.is_flag ? "needs a value" : "takes no value");
    }
    accepted.push_back(option);
  }
  if (find_option(accepted, "seed-sphere") == nullptr) return fail_argument("seed_sphere", "a request has a sphere");
  if (find_option(accepted, "dg") == nullptr) accepted.insert(accepted.begin(), {"dg", {first_getter}, false});
  if (find_option(accepted, "nseeds") == nullptr) {
    accepted.push_back({"nseeds", {fmt::format("{}", default_live_seeds)}, false});
  }
  return accepted;
}

std::vector<std::string> words_of_wish(const LiveSource& source, const std::vector<WishedOption>& wish, bool shown) {
  std::vector<std::string> words;
  const auto shown_text = [&](const std::string& text) {
    if (!shown || source.hidden_folder.empty() || !text.starts_with(source.hidden_folder)) return text;
    return text.substr(source.hidden_folder.size());
  };
  for (const std::string& file : source.data) words.push_back(shown_text(file));
  const auto add = [&](const WishedOption& option) {
    if (option.is_flag) words.push_back("--" + option.name);
    // In one word: a text never becomes a word of its own, which could name a file.
    for (const std::string& text : option.texts) words.push_back(fmt::format("--{}={}", option.name, shown_text(text)));
  };
  for (const WishedOption& option : source.options) {
    if (find_option(wish, option.name) == nullptr) add(option);
  }
  for (const WishedOption& option : wish) add(option);
  return words;
}

std::string command_of_wish(const LiveSource& source, const std::vector<WishedOption>& wish) {
  std::string command = source.before + "cingulum track";
  for (const std::string& word : words_of_wish(source, wish, true)) command += " " + shell_word(word);
  return command + " --out tracks.trx";
}

Status LiveLimits::check(const ParsedArguments& arguments) const {
  const std::string& name = arguments.text("dg");
  if (std::find(getters.begin(), getters.end(), name) == getters.end()) {
    return fail_argument("dg", "{} {}: the field that is tracked has {}", argument_name("dg"), name,
                         fmt::join(getters, ", "));
  }
  if (arguments.integer("nseeds") > most_live_seeds) {
    return fail_argument("nseeds", "{} {}: a request has at most {}", argument_name("nseeds"),
                         arguments.integer("nseeds"), most_live_seeds);
  }
  return {};
}

bool take_score(std::vector<WishedOption>& wish) {
  return std::erase_if(wish, [](const WishedOption& option) { return option.name == "score" && option.is_flag; }) > 0;
}

Json score_json(const VerdictCounts& verdicts) {
  const std::uint64_t all = std::accumulate(verdicts.begin(), verdicts.end(), std::uint64_t{0});
  if (all == 0) return {};
  constexpr std::string_view names[] = {"valid", "wrong_path", "invalid", "no_connection"};  // ConnectionVerdict
  Json score = Json::object();
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    score[std::string(names[i])] = static_cast<double>(verdicts[i]) / static_cast<double>(all);
  }
  return score;
}

Status LiveLimits::check(const TrackingPlan& plan) const {
  // The session refuses it as well, without knowing who asks.
  if (lowest_threshold && plan.stop_threshold < static_cast<float>(*lowest_threshold)) {
    return fail_argument("stop_threshold", "{} {}: the field was prepared for {} and higher",
                         argument_name("stop_threshold"), plan.stop_threshold, *lowest_threshold);
  }
  if (plan.reach_voxels > reach_voxels) {
    return fail(ErrorKind::invalid_argument, "this plan reads {} voxels about a point, the field was prepared for {}",
                plan.reach_voxels, reach_voxels);
  }
  return {};
}

Json answer_end(std::uint64_t seeds, const TrackingStatistics& statistics, const AnswerTimes& times,
                std::string command) {
  Json reasons = Json::object();
  for (std::size_t i = 0; i < end_reason_count; ++i) {
    if (statistics.end_reasons[i] == 0) continue;
    reasons[std::string(end_reason_name(static_cast<EndReason>(i)))] = statistics.end_reasons[i];
  }
  return {{"seeds", seeds},
          {"seeds_outside", statistics.seeds_outside},
          {"streamlines", statistics.streamlines},
          {"kept", statistics.kept},
          {"points", statistics.points},
          {"mean_mm", statistics.kept > 0 ? statistics.lengths.mean_mm() : 0.0},
          {"milliseconds",
           {{"first", times.first_ms},
            {"plan", times.plan_ms},
            {"tracking", times.tracking_ms},
            {"copies", times.copies_ms},
            {"total", times.total_ms}}},
          {"end_reasons", std::move(reasons)},
          {"command", std::move(command)},
          {"score", nullptr}};
}

}  // namespace cingulum
