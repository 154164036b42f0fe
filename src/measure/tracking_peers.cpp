#include "measure/tracking_peers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/interrupt.hpp"
#include "base/log.hpp"
#include "base/read_file.hpp"
#include "measure/child_program.hpp"
#include "measure/tracking_rows.hpp"

namespace cingulum {

std::string_view embedded_peer(std::string_view file_name);

namespace measure {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Status write_scratch(const fs::path& path, std::string_view text) {
  return write_file_atomically(path, text, {.force = true, .sync = false});
}

// The b-vectors as FSL writes them, x negated where the determinant is positive, whatever axes they were given in.
std::string fsl_vectors(const BenchData& data) {
  const double sign = data.geometry().voxel_to_world.determinant() > 0 ? -1 : 1;
  std::string rows[3];
  for (const numerics::Vec3d& d : data.directions()) {
    rows[0] += fmt::format("{:.9g} ", sign * d.x);
    rows[1] += fmt::format("{:.9g} ", d.y);
    rows[2] += fmt::format("{:.9g} ", d.z);
  }
  return rows[0] + '\n' + rows[1] + '\n' + rows[2] + '\n';
}

}  // namespace

Status fit_for_peers(const fs::path& program, const fs::path& folder, const fs::path& series, const fs::path& mask) {
  const std::string stem = stem_of_series(series);
  const fs::path log = folder / "log";
  for (const std::string model : {"csd", "dti"}) {
    std::error_code ignored;
    if (fs::exists(folder / model / "fit.json", ignored)) continue;
    log_info("making {}", (folder / model).string());
    if (!run_child({program.string(), "fit", "--model", model, series.string(), "--bvals", stem + ".bval", "--bvecs",
                    stem + ".bvec", "--mask", mask.string(), "--out", (folder / model).string(), "--force", "--quiet"},
                   log, ChildErrors::with_output)
             .succeeded) {
      CGL_TRY_ASSIGN(const std::string said, read_text_file(log));
      return fail(ErrorKind::io, "{} fit --model {} failed: {}", program.string(), model, said);
    }
  }
  return {};
}

Result<fs::path> write_peer_script(const fs::path& folder) {
  CGL_TRY(write_scratch(folder / "track.py", embedded_peer("track.py")));
  return folder / "track.py";
}

Status write_vectors(const fs::path& path, std::span<const numerics::Vec3> vectors) {
  std::string text;
  for (const numerics::Vec3& v : vectors) text += fmt::format("{:.9g} {:.9g} {:.9g}\n", v.x, v.y, v.z);
  return write_scratch(path, text);
}

Status write_seeds(const fs::path& path, const Seeds& seeds) {
  std::vector<numerics::Vec3> positions(static_cast<std::size_t>(seeds.count()));
  seeds.fill(0, positions);
  return write_vectors(path, positions);
}

Status fill_peer_folder(const fs::path& folder, const BenchData& data) {
  std::error_code problem;
  fs::create_directories(folder / "phantom", problem);
  const fs::path series = folder / "phantom" / (data.dwi().extension() == ".gz" ? "dwi.nii.gz" : "dwi.nii");
  const fs::path mask = folder / "phantom/mask.nii.gz";
  for (const auto& [from, to] : {std::pair<fs::path, fs::path>{data.dwi(), series},
                                 {stem_of_series(data.dwi()) + ".bval", folder / "phantom/dwi.bval"},
                                 {data.mask(), mask}}) {
    fs::create_symlink(fs::absolute(from), to, problem);
    if (problem) return fail(ErrorKind::io, "{}: a link to {} cannot be made", to.string(), from.string());
  }
  CGL_TRY(write_scratch(folder / "phantom/dwi.bvec", fsl_vectors(data)));
  CGL_TRY(fit_for_peers(own_program(), folder, series, mask));
  return write_seeds(folder / "seeds.txt", data.seeds());
}

namespace {

// The names of all peers that the script knows and that are wanted, in its order.
Result<std::vector<std::string>> wanted_peers(const fs::path& folder, const fs::path& script,
                                              const PeerOptions& options) {
  const fs::path list = folder / "names";
  std::vector<std::string> names;
  if (!run_child({options.python, script.string(), "names"}, list).succeeded) {
    log_warning("no peers: {} does not run, or has no numpy", options.python);
    return names;
  }
  CGL_TRY_ASSIGN(const std::string text, read_text_file(list));
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string name = text.substr(at, end - at);
    if (!name.empty() && name.find(options.only) != std::string::npos) names.push_back(std::move(name));
    at = end + 1;
  }
  return names;
}

// Nothing, with a warning, where it is not there, fails or takes too long.
Result<Json> run_peer(const std::string& name, const fs::path& folder, const fs::path& script,
                      const PeerOptions& options, const ThreadPool& pool) {
  const fs::path log = folder / "log", result = folder / "peers.json";
  std::vector<std::string> words = {options.python,
                                    script.string(),
                                    "track",
                                    folder.string(),
                                    std::to_string(pool.threads()),
                                    std::to_string(max_angle_deg),
                                    std::to_string(stop_threshold),
                                    std::to_string(options.few_steps),
                                    std::to_string(options.many_steps),
                                    result.string(),
                                    name};
  if (options.seeds != 0) words.push_back(std::to_string(options.seeds));
  const ChildRun run = run_child(words, log, ChildErrors::with_output, options.limit_seconds);
  CGL_TRY(check_interrupt());
  if (run.too_long) {
    log_warning("no row of {}: it took more than {} s", name, options.limit_seconds);
    return Json();
  }
  CGL_TRY_ASSIGN(const std::string said, read_text_file(log));
  if (!run.succeeded) {
    log_warning("no row of {}: {} failed: {}", name, options.python, said);
    return Json();
  }
  // What the script says of a peer that is not there or fails.
  if (const std::size_t at = said.find("no rows of "); at != std::string::npos) {
    log_warning("{}: {}", name, std::string_view(said).substr(at, said.find('\n', at) - at));
  }
  CGL_TRY_ASSIGN(const std::string text, read_text_file(result));
  const Json rows = Json::parse(text, nullptr, false);
  if (!rows.is_object()) return fail(ErrorKind::corrupt, "what the script of peers wrote is not JSON");
  return rows.contains(name) ? rows[name] : Json();
}

}  // namespace

Result<Json> run_tracking_peers(const fs::path& folder, const BenchData& data, const PeerOptions& options,
                                ThreadPool& pool) {
  CGL_TRY_ASSIGN(const fs::path script, write_peer_script(folder));
  CGL_TRY_ASSIGN(const std::vector<std::string> names, wanted_peers(folder, script, options));
  Json peers = Json::object();
  for (const std::string& name : names) {
    CGL_TRY_ASSIGN(Json row, run_peer(name, folder, script, options, pool));
    if (row.is_null()) continue;
    Result<Json> score = score_of_file(row.value("file", std::string()), data, pool);
    if (!score) log_warning("{} is not scored: {}", name, score.error());
    if (score && !score->empty()) row["score"] = std::move(*score);
    if (options.on_row) options.on_row(name, row);
    peers[name] = std::move(row);
  }
  return peers;
}

}  // namespace measure
}  // namespace cingulum
