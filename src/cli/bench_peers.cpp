#include "cli/bench_peers.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/log.hpp"
#include "base/quantity.hpp"
#include "base/read_file.hpp"
#include "cli/bench_measures.hpp"
#include "cli/table.hpp"

namespace cingulum {

std::string_view embedded_peer(std::string_view file_name);

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Removed at the end with all that is in it.
class PeerFolder {
 public:
  [[nodiscard]] Status make() {
    std::string name = (fs::temp_directory_path() / "cingulum-peers-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) return fail(ErrorKind::io, "making a folder for peers: {} failed", name);
    path_ = name;
    return {};
  }
  PeerFolder() = default;
  PeerFolder(const PeerFolder&) = delete;
  PeerFolder& operator=(const PeerFolder&) = delete;
  ~PeerFolder() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

// Waits for it; its output goes to `log`.
bool run_program(const std::vector<std::string>& words, const fs::path& log) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    const int file = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file >= 0) {
      ::dup2(file, STDOUT_FILENO);
      ::dup2(file, STDERR_FILENO);
    }
    ::execvp(arguments[0], arguments.data());
    ::_exit(127);
  }
  int status = 0;
  return child > 0 && ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

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

// The folder as bench/peers/track.py wants it: the series, its FA and its FOD, the seeds.
Status fill_folder(const fs::path& folder, const BenchData& data, const fs::path& log) {
  std::error_code problem;
  fs::create_directories(folder / "phantom", problem);
  std::string stem = data.dwi().string();
  for (const std::string_view ending : {".gz", ".nii"}) {
    if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
  }
  const fs::path series = folder / "phantom" / (data.dwi().extension() == ".gz" ? "dwi.nii.gz" : "dwi.nii");
  for (const auto& [from, to] : {std::pair<fs::path, fs::path>{data.dwi(), series},
                                 {stem + ".bval", folder / "phantom/dwi.bval"},
                                 {data.mask(), folder / "phantom/mask.nii.gz"}}) {
    fs::create_symlink(fs::absolute(from), to, problem);
    if (problem) return fail(ErrorKind::io, "{}: a link to {} cannot be made", to.string(), from.string());
  }
  CGL_TRY(write_scratch(folder / "phantom/dwi.bvec", fsl_vectors(data)));
  const std::string program = fs::read_symlink("/proc/self/exe", problem).string();
  for (const std::string model : {"csd", "dti"}) {
    if (!run_program(
            {program, "fit", "--model", model, series.string(), "--bvals", (folder / "phantom/dwi.bval").string(),
             "--bvecs", (folder / "phantom/dwi.bvec").string(), "--mask", (folder / "phantom/mask.nii.gz").string(),
             "--out", (folder / model).string(), "--quiet"},
            log)) {
      return fail(ErrorKind::io, "{} fit --model {} failed: see {}", program, model, log.string());
    }
  }
  std::vector<numerics::Vec3> positions(static_cast<std::size_t>(data.seeds().count()));
  data.seeds().fill(0, positions);
  std::string text;
  for (const numerics::Vec3& p : positions) text += fmt::format("{:.9g} {:.9g} {:.9g}\n", p.x, p.y, p.z);
  CGL_TRY(write_scratch(folder / "seeds.txt", text));
  return write_scratch(folder / "track.py", embedded_peer("track.py"));
}

}  // namespace

Result<Json> run_bench_peers(const BenchData& data, const PeerOptions& options, ThreadPool& pool) {
  if (data.dwi().empty()) {
    log_warning("no peers: they need a series, and a file of spherical harmonics was given");
    return Json::object();
  }
  PeerFolder folder;
  CGL_TRY(folder.make());
  const fs::path log = folder.path() / "log", result = folder.path() / "peers.json";
  CGL_TRY(fill_folder(folder.path(), data, log));
  log_info("running peers on {} seeds, those on a GPU on {}", options.seeds, data.seeds().count());
  if (!run_program(
          {options.python, (folder.path() / "track.py").string(), "track", folder.path().string(),
           std::to_string(pool.threads()), std::to_string(bench_max_angle_deg), std::to_string(bench_stop_threshold),
           "0", "0", result.string(), options.only, std::to_string(options.seeds)},
          log)) {
    CGL_TRY_ASSIGN(const std::string said, read_text_file(log));
    log_warning("no peers: {} failed: {}", options.python, said);
    return Json::object();
  }
  // What the script says of a peer that is not there or fails.
  CGL_TRY_ASSIGN(const std::string said, read_text_file(log));
  for (std::size_t at = said.find("no rows of "); at != std::string::npos; at = said.find("no rows of ", at + 1)) {
    log_warning("{}", std::string_view(said).substr(at, said.find('\n', at) - at));
  }
  CGL_TRY_ASSIGN(const std::string text, read_text_file(result));
  Json peers = Json::parse(text, nullptr, false);
  if (!peers.is_object()) return fail(ErrorKind::corrupt, "what the script of peers wrote is not JSON");
  for (auto& [name, row] : peers.items()) {
    CGL_TRY_ASSIGN(Json score, bench_score(row.value("file", std::string()), data, pool));
    if (!score.empty()) row["score"] = std::move(score);
    row.erase("file");
  }
  return peers;
}

std::string table_of_peers(const Json& peers) {
  Table table({{"peer"},
               {"threads", Align::right},
               {"seeds", Align::right},
               {"tracking s", Align::right},
               {"M points/s", Align::right},
               {"streamlines", Align::right},
               {"mean mm", Align::right},
               {"median mm", Align::right},
               {"commissural", Align::right},
               {"F1", Align::right}});
  for (const auto& [name, row] : peers.items()) {
    const Json score = row.value("score", Json::object());
    const double wall = row.value("wall_s", 0.0);
    table.add_row(
        {name, std::to_string(row.value("threads", 0)), format_count(row.value("seeds", std::uint64_t{0})),
         fmt::format("{:.3f}", wall), fmt::format("{:.4f}", wall > 0 ? 1e-6 * row.value("points", 0.0) / wall : 0),
         format_count(row.value("kept", std::uint64_t{0})), fmt::format("{:.2f}", row.value("mean_length_mm", 0.0)),
         fmt::format("{:.1f}", row.value("median_length_mm", 0.0)),
         score.contains("commissural") ? format_count(score["commissural"].get<std::uint64_t>()) : "",
         score.contains("f1") ? fmt::format("{:.3f}", score["f1"].get<double>()) : ""});
  }
  return table.text(2);
}

}  // namespace cingulum
