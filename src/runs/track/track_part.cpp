#include "runs/track/track_part.hpp"

#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/json_fields.hpp"
#include "base/quantity.hpp"
#include "runs/track/track_result.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

// A sidecar of more would be too large to be read (sidecar.hpp).
constexpr std::uint64_t most_selected_by_parts = 1'000'000;

struct TwoNumbers {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
};

std::optional<TwoNumbers> parse_two(std::string_view text, char between) {
  TwoNumbers numbers;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, numbers.first);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != between) return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, numbers.second);
  if (second.ec != std::errc() || second.ptr != end) return std::nullopt;
  return numbers;
}

// floor(seeds * share / of), of numbers of 32 bits and a bit.
std::uint64_t share_of(std::uint64_t seeds, std::uint64_t share, std::uint64_t of) {
  return seeds / of * share + seeds % of * share / of;
}

Result<SeedRange> range_of_text(const std::string& text, std::uint64_t seeds) {
  const auto numbers = parse_two(text, ':');
  if (!numbers || numbers->first > numbers->second) {
    return fail(ErrorKind::invalid_argument, "{} '{}': accepted is A:B with A not above B", argument_name("seed_range"),
                text);
  }
  if (numbers->second > seeds) {
    return fail(ErrorKind::invalid_argument, "{} {}: the run has {} seeds", argument_name("seed_range"), text, seeds);
  }
  return SeedRange{numbers->first, numbers->second - numbers->first};
}

// The rows of a trail: seed, what was counted since the row before, and the streamline itself.
std::string trail_row(const KeptStreamline& kept) {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {}", kept.seed, kept.seeds_with_streamlines, kept.streamlines,
                     kept.too_short, kept.too_long, kept.too_few_points, kept.too_many_points, kept.refused_by_regions,
                     kept.points, static_cast<unsigned>(kept.start_reason), static_cast<unsigned>(kept.end_reason),
                     kept.length_mm);
}

std::optional<KeptStreamline> parse_trail_row(std::string_view row) {
  KeptStreamline kept;
  std::uint64_t start = 0, end = 0;
  const char* at = row.data();
  const char* const last = row.data() + row.size();
  for (std::uint64_t* const number :
       {&kept.seed, &kept.seeds_with_streamlines, &kept.streamlines, &kept.too_short, &kept.too_long,
        &kept.too_few_points, &kept.too_many_points, &kept.refused_by_regions, &kept.points, &start, &end}) {
    const auto parsed = std::from_chars(at, last, *number);
    if (parsed.ec != std::errc() || parsed.ptr == last || *parsed.ptr != ' ') return std::nullopt;
    at = parsed.ptr + 1;
  }
  const auto parsed = std::from_chars(at, last, kept.length_mm);
  if (parsed.ec != std::errc() || parsed.ptr != last || !(kept.length_mm >= 0) || kept.length_mm > 1e12) {
    return std::nullopt;
  }
  if (start >= end_reason_count || end >= end_reason_count) return std::nullopt;
  kept.start_reason = static_cast<EndReason>(start);
  kept.end_reason = static_cast<EndReason>(end);
  return kept;
}

// Members that are numbers were taken from `name`.
Status check_numbers(const JsonReader& read, std::string_view name) {
  if (read.status()) return {};
  return fail(ErrorKind::corrupt, "its sidecar has no number '{}' in '{}'", read.refused(), name);
}

Status take_result(const Json& json, bool select, TrackingStatistics& statistics) {
  JsonReader numbers(json, "result");
  visit_counts(numbers, statistics);
  if (!select) visit_all_seeds(numbers, statistics);
  CGL_TRY(check_numbers(numbers, "result"));
  JsonReader reasons{JsonView(json)["end_reasons"].json(), "result.end_reasons"};
  visit_end_reasons(reasons, statistics);
  return check_numbers(reasons, "result.end_reasons");
}

// The numbers among the members of `lengths`.
template <class Visit, class Sums>
void visit_sums(Visit& visit, Sums& sums) {
  visit("sum_mm", sums.whole_mm);
  visit("sum_rest", sums.rest);
  visit("smallest_mm", sums.smallest_mm);
  visit("largest_mm", sums.largest_mm);
}

Json lengths_json(const LengthHistogram::Sums& sums) {
  JsonWriter write;
  visit_sums(write, sums);
  std::vector<std::string> bins;
  for (const auto& [bin, count] : sums.bins) bins.push_back(fmt::format("{} {}", bin, count));
  write("bins", bins);
  return write.take();
}

Result<LengthHistogram> lengths_of(const Json& json) {
  LengthHistogram::Sums sums;
  JsonReader numbers(json, "part.lengths");
  visit_sums(numbers, sums);
  CGL_TRY(check_numbers(numbers, "part.lengths"));
  const auto wrong = [] { return fail(ErrorKind::corrupt, "the lengths in its sidecar are not those of streamlines"); };
  std::vector<std::string> bins;
  if (!read_json(JsonView(json)["bins"].json(), "bins", bins)) return wrong();
  for (const std::string& text : bins) {
    const auto bin = parse_two(text, ' ');
    if (!bin || bin->first > 0xffffffffU) return wrong();
    sums.bins.emplace_back(static_cast<std::uint32_t>(bin->first), bin->second);
  }
  const auto lengths = LengthHistogram::of_sums(sums);
  if (!lengths) return wrong();
  return *lengths;
}

Status take_trail(const Json& json, TrackingStatistics& statistics) {
  if (!json.is_array() || json.size() != statistics.kept) {
    return fail(ErrorKind::corrupt, "its sidecar does not list the {} streamlines that it kept", statistics.kept);
  }
  for (const Json& row : json) {
    const auto kept = parse_trail_row(JsonView(row).text_or(""));
    if (!kept || (!statistics.trail.empty() && kept->seed < statistics.trail.back().seed)) {
      return fail(ErrorKind::corrupt, "row {} of the streamlines in its sidecar cannot be read",
                  statistics.trail.size());
    }
    statistics.trail.push_back(*kept);
  }
  return {};
}

}  // namespace

Result<SeedRange> range_of_share(std::string_view option, const std::string& text, std::uint64_t total) {
  constexpr std::uint64_t most_parts = 1'000'000;
  const auto numbers = parse_two(text, '/');
  if (!numbers || numbers->first < 1 || numbers->first > numbers->second || numbers->second > most_parts) {
    return fail(ErrorKind::invalid_argument, "{} '{}': accepted is I/N with I from 1 to N, and N up to {}",
                argument_name(option), text, format_count(most_parts));
  }
  const std::uint64_t first = share_of(total, numbers->first - 1, numbers->second);
  return SeedRange{first, share_of(total, numbers->first, numbers->second) - first};
}

Result<std::optional<SeedRange>> seed_range_of_part(const TrackRequest& request, const Seeds& seeds,
                                                    const TrackingRunOptions& options) {
  const bool range = request.seed_range.given(), share = request.part.given();
  if (!range && !share) return std::nullopt;
  if (range && share)
    return fail(ErrorKind::invalid_argument, "{} and {} exclude each other", argument_name("seed_range"),
                argument_name("part"));
  if (options.select > most_selected_by_parts) {
    return fail(ErrorKind::invalid_argument, "{} {}: parts of a run select at most {} streamlines",
                argument_name("select"), format_count(options.select), format_count(most_selected_by_parts));
  }
  if (share && options.select > 0 && options.max_seeds == 0) {
    return fail(ErrorKind::invalid_argument, "{} with {} needs {}, whose share it is; or give {}",
                argument_name("part"), argument_name("select"), argument_name("max_seeds"),
                argument_name("seed_range"));
  }
  const std::uint64_t total = seeds_of_run(seeds, options);
  if (range) return range_of_text(request.seed_range.value(), total);
  return range_of_share("part", request.part.value(), total);
}

Json part_json(const RunPart& part) {
  Json json = {{"first", part.seeds.first},
               {"last", part.seeds.first + part.seeds.count},
               {"of", part.run_seeds},
               {"lengths", lengths_json(part.statistics.lengths.sums())}};
  if (!part.statistics.trail.empty()) {
    Json rows = Json::array();
    for (const KeptStreamline& kept : part.statistics.trail) rows.push_back(trail_row(kept));
    json["kept"] = std::move(rows);
  }
  return json;
}

Result<RunPart> part_of_sidecar(const Json& sidecar) {
  RunPart part;
  std::uint64_t last = 0;
  const JsonView json = JsonView(sidecar)["part"];
  JsonReader numbers(json.json(), "part");
  numbers("first", part.seeds.first);
  numbers("last", last);
  numbers("of", part.run_seeds);
  CGL_TRY(check_numbers(numbers, "part"));
  if (part.seeds.first > last || last > part.run_seeds) {
    return fail(ErrorKind::corrupt, "its sidecar says seeds {} to {} of {}", part.seeds.first, last, part.run_seeds);
  }
  part.seeds.count = last - part.seeds.first;
  const JsonView result = JsonView(sidecar)["result"];
  const bool select = result["select_reached"].is_there();
  CGL_TRY(take_result(result.json(), select, part.statistics));
  CGL_TRY_ASSIGN(part.statistics.lengths, lengths_of(json["lengths"].json()));
  if (part.statistics.lengths.count() != part.statistics.kept) {
    return fail(ErrorKind::corrupt, "its sidecar has lengths of {} streamlines and {} were kept",
                part.statistics.lengths.count(), part.statistics.kept);
  }
  const JsonView kept = json["kept"];
  if (select) CGL_TRY(take_trail(kept.is_there() ? kept.json() : Json::array(), part.statistics));
  return part;
}

}  // namespace cingulum
