#include "measure/typed_runs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

#include "base/interrupt.hpp"
#include "base/read_file.hpp"
#include "measure/child_program.hpp"

namespace cingulum::measure {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

// What the run says of itself.
Status take_sidecar(const fs::path& out, Json& row) {
  CGL_TRY_ASSIGN(const std::string text, read_text_file(out.string() + ".json"));
  const Json sidecar = Json::parse(text, nullptr, false);
  if (!sidecar.is_object() || !sidecar.contains("result") || !sidecar.contains("run")) {
    return fail(ErrorKind::corrupt, "{}.json is no sidecar", out.string());
  }
  for (const char* name : {"kept", "points", "mean_length_mm", "median_length_mm"}) {
    row[name] = sidecar["result"].value(name, 0.0);
  }
  for (const char* name : {"prepare_seconds", "tracking_seconds"}) row[name] = sidecar["run"].value(name, 0.0);
  return {};
}

}  // namespace

std::string typed_run_name(Getter getter) {
  return fmt::format("typed {}", getter_name(getter));
}

Result<Json> measure_typed_run(const BenchData& data, Getter getter, const std::string& device,
                               const std::string& frame, const BenchMeasures& measures, ThreadPool& pool) {
  CGL_TRY_ASSIGN(const ScratchFolder folder, ScratchFolder::create(measures.folder));
  const fs::path out = folder.path() / "tracks.trx", log = folder.path() / "log";
  const std::string stem = stem_of_series(data.dwi());
  std::vector<std::string> typed = {"track",   data.dwi().string(),
                                    "--bvals", stem + ".bval",
                                    "--bvecs", stem + ".bvec",
                                    "--mask",  data.mask().string(),
                                    "--dg",    std::string(getter_name(getter))};
  if (!frame.empty()) typed.insert(typed.end(), {"--bvec-frame", frame});
  const std::vector<std::string> set = {"--nseeds",  std::to_string(data.seeds().count()), "--device", device,
                                        "--threads", std::to_string(pool.threads())};
  typed.insert(typed.end(), set.begin(), set.end());
  std::vector<std::string> words = {own_program().string()};
  words.insert(words.end(), typed.begin(), typed.end());
  words.insert(words.end(), {"--out", out.string(), "--force", "--quiet", "--progress", "none"});
  Json row = {{"scenario", typed_run_name(getter)},
              {"device", device},
              {"command", fmt::format("cingulum {} --out tracks.trx", fmt::join(typed, " "))},
              {"seeds", data.seeds().count()}};
  std::vector<double> seconds;
  for (std::int64_t i = 0; i < measures.repetitions; ++i) {
    const ChildRun run = run_child(words, log, ChildErrors::with_output);
    CGL_TRY(check_interrupt());
    if (!run.succeeded) {
      CGL_TRY_ASSIGN(const std::string said, read_text_file(log));
      return fail(ErrorKind::io, "{} failed: {}", fmt::join(words, " "), said);
    }
    seconds.push_back(run.seconds);
    if (run.seconds > *std::min_element(seconds.begin(), seconds.end())) continue;
    row["processor_seconds"] = run.processor_seconds;
    row["host_peak_bytes"] = run.peak_bytes;
    CGL_TRY(take_sidecar(out, row));
  }
  row["seconds"] = *std::min_element(seconds.begin(), seconds.end());
  row["seconds_each"] = seconds;
  CGL_TRY_ASSIGN(Json score, score_of_file(out, data, pool));
  if (!score.empty()) row["score"] = std::move(score);
  return row;
}

}  // namespace cingulum::measure
