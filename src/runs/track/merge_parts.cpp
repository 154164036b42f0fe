// Nothing is believed: parts of another run, gaps, overlaps, partial and damaged files are refused by name before
// anything is written.
#include "runs/track/merge_parts.hpp"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>

#include "base/argument_name.hpp"
#include "base/elapsed.hpp"
#include "base/json_view.hpp"
#include "base/progress.hpp"
#include "base/quantity.hpp"
#include "formats/output_sidecar.hpp"
#include "formats/sidecar.hpp"
#include "formats/tractogram_join.hpp"
#include "formats/verify.hpp"
#include "runs/layout_parameters.hpp"
#include "runs/track/track_part.hpp"
#include "runs/track/track_result.hpp"
#include "tract/run/run_part.hpp"

namespace cingulum {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct PartFile {
  fs::path path;
  Json sidecar;
  RunPart part;
};

std::string version_of(const Json& sidecar) {
  return JsonView(sidecar)["run"]["version"].text_or("unknown");
}

Result<PartFile> read_part(const fs::path& path) {
  PartFile file;
  file.path = path;
  auto sidecar = read_sidecar(path);
  if (!sidecar && sidecar.error().kind() == ErrorKind::not_found) {
    return fail(ErrorKind::not_found, "it has no sidecar {}, and without it nobody knows which seeds it has",
                sidecar_path(path).filename().string());
  }
  CGL_TRY_ASSIGN(file.sidecar, std::move(sidecar));
  const Json& json = file.sidecar;
  const JsonView said(json);
  if (said["made_by"].json() != "cingulum track") {
    return fail(ErrorKind::corrupt, "its sidecar is not one of `cingulum track`");
  }
  if (said["inputs"].list() == nullptr || said["arguments"]["options"].object() == nullptr) {
    return fail(ErrorKind::corrupt, "its sidecar does not say what the run was made of");
  }
  if (!said["part"].is_there()) {
    return fail(ErrorKind::corrupt, "it is of a whole run, not a part ({} or {})", argument_name("seed_range"),
                argument_name("part"));
  }
  const std::string ours = version_of({{"run", run_facts(0, 0)}});
  if (version_of(json) != ours) {
    return fail(ErrorKind::corrupt, "it is of version {}, and this is {}: numbers may differ between versions",
                version_of(json), ours);
  }
  if (said["result"]["partial"].flag() != false) {
    return fail(ErrorKind::corrupt, "its run was stopped, and it has only some of its seeds; repeat it by {}",
                argument_name("from"));
  }
  CGL_TRY_ASSIGN(file.part, part_of_sidecar(json));
  return file;
}

// Text for a value of a sidecar: short, or only that there is one.
std::string shown(const Json& value) {
  if (value.is_null()) return "not there";
  const std::string text = value.is_string() ? value.get<std::string>() : value.dump();
  return text.size() <= 60 ? text : text.substr(0, 57) + "...";
}

// Sidecars name options with dashes.
std::string argument_of(std::string option) {
  std::replace(option.begin(), option.end(), '-', '_');
  return fmt::format("{}", argument_name(option));
}

// Options that name inputs are compared by the hashes of these: every node has its own paths.
bool names_input(const Json& sidecar, const std::string& option) {
  const Json& inputs = sidecar["inputs"];
  return std::any_of(inputs.begin(), inputs.end(),
                     [&](const Json& input) { return JsonView(input)["option"].json() == option; });
}

Status compare_options(const Json& first, const Json& other) {
  const Json& mine = first["arguments"]["options"];
  const Json& theirs = other["arguments"]["options"];
  const auto compare = [&](const Json& names) -> Status {
    for (const auto& [name, ignored] : names.items()) {
      if (names_input(first, name) && names_input(other, name)) continue;
      const Json a = mine.value(name, Json()), b = theirs.value(name, Json());
      if (a != b) {
        return fail(ErrorKind::corrupt, "it is of another run: {} is {}, in the first part {}", argument_of(name),
                    shown(b), shown(a));
      }
    }
    return {};
  };
  CGL_TRY(compare(mine));
  return compare(theirs);
}

Status compare_inputs(const Json& first, const Json& other) {
  const Json& mine = first["inputs"];
  const Json& theirs = other["inputs"];
  if (mine.size() != theirs.size()) {
    return fail(ErrorKind::corrupt, "it is of another run: it had {} inputs, the first part {}", theirs.size(),
                mine.size());
  }
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const JsonView a(mine[i]), b(theirs[i]);
    const Json& hash = b["xxh3_128"].json();
    if (hash.is_string() && hash == a["xxh3_128"].json() && a["option"].json() == b["option"].json()) continue;
    return fail(ErrorKind::corrupt, "it is of another run: its input {} ({}) is not that of the first part",
                shown(b["path"].json()), shown(hash));
  }
  return {};
}

// Everything that equal runs have in common, but for what belongs to the part.
Status compare_runs(const PartFile& first, const PartFile& other) {
  CGL_TRY(compare_options(first.sidecar, other.sidecar));
  CGL_TRY(compare_inputs(first.sidecar, other.sidecar));
  for (const char* member : {"rules", "phantom", "model", "field", "plan", "end_reason_codes"}) {
    if (first.sidecar.value(member, Json()) == other.sidecar.value(member, Json())) continue;
    return fail(ErrorKind::corrupt, "it is of another run: '{}' of its sidecar is not that of the first part", member);
  }
  if (first.part.run_seeds != other.part.run_seeds) {
    return fail(ErrorKind::corrupt, "it is of a run of {} seeds, the first part of one of {}", other.part.run_seeds,
                first.part.run_seeds);
  }
  return {};
}

std::string seeds_text(const RunPart& part) {
  return fmt::format("{}:{}", part.seeds.first, part.seeds.first + part.seeds.count);
}

// The parts in the order of their seeds. Empty ones may lie anywhere.
Status order_parts(std::vector<PartFile>& files, std::uint64_t select) {
  std::stable_sort(files.begin(), files.end(), [](const PartFile& a, const PartFile& b) {
    return std::pair(a.part.seeds.first, a.part.seeds.count) < std::pair(b.part.seeds.first, b.part.seeds.count);
  });
  std::uint64_t next = 0;
  std::vector<RunPart> before;
  const PartFile* last = nullptr;
  for (const PartFile& file : files) {
    const SeedRange& seeds = file.part.seeds;
    if (seeds.count == 0) continue;
    if (seeds.first < next) {
      return fail(ErrorKind::corrupt, "{} (seeds {}) and {} (seeds {}) have seeds in common", last->path.string(),
                  seeds_text(last->part), file.path.string(), seeds_text(file.part));
    }
    if (seeds.first > next && !is_reached(before, select)) {
      return fail(ErrorKind::corrupt, "the seeds {}:{} are missing: no part has them", next, seeds.first);
    }
    next = seeds.first + seeds.count;
    last = &file;
    before.push_back(file.part);
  }
  const std::uint64_t all = files.front().part.run_seeds;
  if (next < all && !is_reached(before, select)) {
    return fail(ErrorKind::corrupt, "the seeds {}:{} are missing: no part has them", next, all);
  }
  return {};
}

Result<std::uint64_t> select_of(const Json& sidecar) {
  const JsonView select = JsonView(sidecar)["arguments"]["options"]["select"];
  if (select.json().is_null()) return 0;
  const auto number = parse_integer(select.text_or(""));
  if (!number || *number < 1)
    return fail(ErrorKind::corrupt, "{} in its sidecar is no number", argument_name("select"));
  return static_cast<std::uint64_t>(*number);
}

Status compare_parts(const std::vector<PartFile>& files, const CancelToken& cancel) {
  for (const PartFile& file : files) {
    CGL_TRY_ASSIGN(const bool compared, compare_with_sidecar(file.path, cancel));
    if (!compared) return fail(ErrorKind::corrupt, "{}: its sidecar has no hash of it", file.path.string());
  }
  return {};
}

}  // namespace

Result<MergeOutcome> merge_parts(const std::vector<fs::path>& paths, fs::path out, RunMachine& machine) {
  const auto start = std::chrono::steady_clock::now();
  CGL_TRY_ASSIGN(const TractogramFormat format, format_of_name(out));
  if (!out.has_filename()) out = out.parent_path();
  WriteOptions options = machine.write_options();
  CGL_TRY(check_tractogram_output(out, format, options));
  CGL_TRY_ASSIGN(options.pool, machine.pool());
  if (paths.empty()) return fail_argument("parts", "there is nothing to merge: no part is named");

  std::vector<PartFile> files;
  for (const fs::path& path : paths) {
    CGL_TRY_ASSIGN(PartFile file, add_context(read_part(path), "{}", path.string()));
    if (!files.empty()) CGL_TRY(add_context(compare_runs(files.front(), file), "{}", path.string()));
    files.push_back(std::move(file));
  }
  CGL_TRY_ASSIGN(const std::uint64_t select,
                 add_context(select_of(files.front().sidecar), "{}", files.front().path.string()));
  CGL_TRY(order_parts(files, select));
  // Whether the parts are as they were written is found out while they are joined, and asked before the whole gets its
  // name; a damaged part may be met by the joining first.
  const std::shared_future<Status> unchanged =
      std::async(std::launch::async | std::launch::deferred,
                 [&files, cancel = options.cancel] { return compare_parts(files, cancel); });

  std::vector<RunPart> parts;
  for (const PartFile& file : files) parts.push_back(file.part);
  JoinedParts joined = join_parts(parts, select);
  std::vector<TractogramPart> taken;
  for (std::size_t i = 0; i < files.size(); ++i) taken.push_back({files[i].path, joined.take[i]});
  const auto sidecar = std::make_shared<OutputSidecar>(out, options);
  MergeOutcome outcome{.path = out, .parts = files.size()};
  JoinedTractogram written;
  Json& merged = outcome.sidecar = std::move(files.front().sidecar);
  for (const char* member : {"part", "run", "file", "bytes", "xxh3_128"}) merged.erase(member);
  sidecar->describe([&] {
    joined.statistics.points_written = written.points;
    merged["result"] = result_json(joined.statistics, select > 0);
    merged["run"] = run_facts(machine.threads(), seconds_since(start));
    merged["run"]["merged_parts"] = files.size();
    return merged;
  });
  Progress progress("merging", joined.statistics.kept, "streamlines", machine.progress_options());
  const Status whole =
      join_tractograms(taken, out, with_sidecar(options, sidecar), written, &progress, [&] { return unchanged.get(); });
  CGL_TRY(unchanged.get());
  CGL_TRY(whole);
  progress.finish();
  if (!joined.statistics.select_reached) {
    log_warning("{} {}: {} streamlines kept after {} seeds", argument_name("select"), format_count(select),
                format_count(joined.statistics.kept), format_count(joined.statistics.seeds));
  }
  outcome.seeds = joined.statistics.seeds;
  outcome.streamlines = written.streamlines;
  outcome.points = written.points;
  return outcome;
}

}  // namespace cingulum
