#include "view/page_request.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>

#include "base/option_name.hpp"
#include "base/shell_word.hpp"
#include "runs/track/field_limits.hpp"
#include "runs/track/track_fields.hpp"
#include "streamlines/sphere_text.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

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
                [](const ArgumentText& option) { return option.name == "device" || option.name == "cache-dir"; });
  for (std::string& file : shown.data) shorten(file);
  for (ArgumentText& option : shown.options) std::for_each(option.texts.begin(), option.texts.end(), shorten);
  shown.hidden_folder.clear();
  shown.truth.clear();
  return shown;
}

const ArgumentText* find_option(const std::vector<ArgumentText>& options, std::string_view name) {
  const auto found = std::find_if(options.begin(), options.end(), [&](const auto& one) { return one.name == name; });
  return found == options.end() ? nullptr : &*found;
}

Result<std::vector<ArgumentText>> accept_page_request(const std::vector<ArgumentText>& asked, const LiveSource& source,
                                                      const std::string& first_getter) {
  std::vector<ArgumentText> accepted;
  for (const ArgumentText& option : asked) {
    if (option.name == "sphere") {
      if (option.texts.size() != 1) return fail_argument("seed_sphere", "a request has one sphere");
      accepted.push_back({"seed-sphere", option.texts, false});
      continue;
    }
    const TrackField* const field = find_field(track_fields(), option.name);
    const bool is_sphere = option.name == "seed-sphere";  // which is asked for by its short name
    const bool settled =
        field != nullptr && field->traits.decides_peaks && find_option(source.options, "peaks") != nullptr;
    if (field == nullptr || is_sphere || settled || !may_change_per_answer(*field)) {
      return fail(ErrorKind::invalid_argument,
                  "'{}' cannot be changed while the field stays; start `cingulum view` with it", option.name);
    }
    const Argument& argument = field->argument;
    for (const std::string& text : option.texts) {
      if (argument.metavar != region_metavar || parse_sphere(text)) continue;
      return fail(ErrorKind::invalid_argument, "{} '{}': accepted is a sphere x,y,z,r", argument_name(option.name),
                  text);
    }
    if ((argument.type == ArgumentType::flag) != option.is_flag) {
      return fail(ErrorKind::invalid_argument, "{} {}", argument_name(option.name),
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

std::vector<ArgumentText> joined_request(const LiveSource& source, const std::vector<ArgumentText>& asked) {
  std::vector<ArgumentText> joined;
  if (!source.data.empty()) joined.push_back({"data", source.data, false});
  for (const ArgumentText& option : source.options) {
    if (find_option(asked, option.name) == nullptr) joined.push_back(option);
  }
  joined.insert(joined.end(), asked.begin(), asked.end());
  return joined;
}

std::string command_of_request(const LiveSource& source, const std::vector<ArgumentText>& asked) {
  const auto shown_text = [&](const std::string& text) {
    if (source.hidden_folder.empty() || !text.starts_with(source.hidden_folder)) return text;
    return text.substr(source.hidden_folder.size());
  };
  std::string command = source.before + "cingulum track";
  for (const ArgumentText& one : joined_request(source, asked)) {
    const std::string option = "--" + one.name;
    if (one.is_flag) command += " " + option;
    for (const std::string& text : one.texts) {
      // In one word: a text never becomes a word of its own, which could name a file.
      command += " " + shell_word(one.name == "data" ? shown_text(text) : option + "=" + shown_text(text));
    }
  }
  return command + " --out tracks.trx";
}

Status LiveLimits::check(const TrackRequest& request) const {
  const std::string& name = request.dg.value();
  if (std::find(getters.begin(), getters.end(), name) == getters.end()) {
    return fail_argument("dg", "{} {}: the field that is tracked has {}", argument_name("dg"), name,
                         fmt::join(getters, ", "));
  }
  if (request.nseeds.value() > most_live_seeds) {
    return fail_argument("nseeds", "{} {}: a request has at most {}", argument_name("nseeds"), request.nseeds.value(),
                         most_live_seeds);
  }
  return {};
}

std::string describe_failure(const Error& error) {
  std::string argument(error.argument());
  std::replace(argument.begin(), argument.end(), '_', '-');
  return Json({{"kind", error_kind_name(error.kind())},
               {"message", with_option_names(error)},
               {"argument", std::move(argument)}})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

bool take_score(std::vector<ArgumentText>& asked) {
  return std::erase_if(asked, [](const ArgumentText& option) { return option.name == "score" && option.is_flag; }) > 0;
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
  return FieldLimits{.lowest_threshold = lowest_threshold, .reach_voxels = reach_voxels}.check(plan);
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
