// Tracking beside DIPY and MRtrix3 on the same data, seeds, mask, stopping map, step and angle, on as many threads:
// every getter in M points per second, with seeds, kept streamlines, mean length, score and field bytes of the same
// run. Data: the phantom `brain` with its FA and CSD of degree 8, made in --data unless it is there already.
//   bench_track [--data DIR] [--out FILE.json] [--seeds N] [--threads N] [--repetitions N] [--voxel-size MM]
//               [--python PROGRAM] [--no-peers] [--only WORD]
// Ceilings, measured in the same run: a step reads eight records, so bytes per step against the rate at which all
// threads read a field from memory; and its multiplications and additions against what all threads reach on registers.
// The lower of both is reported. Rates are of processor time times threads: other work on the machine does not count;
// wall time stands beside it.
#include <cmath>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <optional>

#include "base/atomic_file.hpp"
#include "base/read_file.hpp"
#include "base/thread_pool.hpp"
#include "bench/measure.hpp"
#include "bench/program.hpp"
#include "cli/version.hpp"
#include "dmri/score.hpp"
#include "formats/gradient_table.hpp"
#include "formats/nifti.hpp"
#include "formats/tractogram.hpp"
#include "numerics/pack.hpp"
#include "tract/cpu/track_kernels.hpp"
#include "tract/dwi_preparation.hpp"
#include "tract/file_field.hpp"
#include "tract/seeds.hpp"
#include "tract/tracker.hpp"

namespace cingulum::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
  std::string data;
  std::string out;
  std::string only;
  std::string voxel_size = "2.5";
  std::uint64_t seeds = 20000;
  int threads = 2;
  int repetitions = 3;
  std::string python = CINGULUM_BENCH_PYTHON;
  bool peers = true;
};

constexpr double stop_threshold = 0.1;
constexpr double max_angle_deg = 60;

// What one step of a getter costs at least.
struct Cost {
  double bytes = 0;
  double operations = 0;
};

class TrackBench {
 public:
  explicit TrackBench(Options options)
      : options_(std::move(options)), folder_(options_.data), pool_(require(ThreadPool::create(options_.threads))) {
    prepare_data();
    load();
  }

  int run() {
    measure_ceilings();
    const fs::path sphere = folder_ / "sphere.txt";
    const Sphere peers_sphere = require(read_sphere(sphere, false));
    const auto from_sh = [&](bool amplitudes, const Sphere& directions) {
      const FieldFile file = require(read_field_file(
          {.kind = FieldFileKind::harmonics, .path = folder_ / "csd/fod.nii.gz", .amplitudes = amplitudes}));
      return require(make_file_field(file, stop_map_, mask_, directions, *pool_)).field;
    };
    {
      const Field field = from_sh(true, peers_sphere);
      const double m = static_cast<double>(field.sphere.size());
      const Cost cost{8 * 4 * (m + 1), 16 * (m + 1) + 8 * m};
      track("prob on SF", field, {.getter = Getter::prob}, cost);
      track("det on SF", field, {.getter = Getter::det}, cost);
      track("closest on SF", field, {.getter = Getter::closest}, cost);
      // A probe's point: the frame 60 operations, eight corners 40, the nearest direction 30; the bound takes 32
      // probes.
      const double points = (32 + 2) * 6;
      track("ptt on SF", field, {.getter = Getter::ptt, .ptt_probe_length_mm = 1.5, .ptt_weak_links = true},
            {cost.bytes, cost.operations + 130 * points});
    }
    {
      const Sphere directions = require(named_sphere("mirror321"));
      const Field field = from_sh(false, directions);
      const double orbits = 96, m = 384;
      const Cost cost{8 * 4 * 46, 16 * 46 + orbits * (2 * 45 + 8) + 8 * m};
      track("prob from SH", field, {.getter = Getter::prob}, cost);
      track("det from SH", field, {.getter = Getter::det}, {cost.bytes, cost.operations + 3 * 32 * 280});
      track("det from SH, not refined", field, {.getter = Getter::det, .refine = false}, cost);
      track("closest from SH", field, {.getter = Getter::closest}, cost);
    }
    if (wanted("boot")) {
      const GradientTable table =
          require(read_fsl_gradients(folder_ / "phantom/dwi.bval", folder_ / "phantom/dwi.bvec"));
      DwiSeries series =
          require(read_dwi_series(folder_ / "phantom/dwi.nii.gz", table, table.frame, mask_, default_b0_threshold));
      const double d = 160, c = 15, orbits = 96, m = 384;
      const Field field =
          require(make_dwi_field(
                      std::move(series), stop_map_, nullptr,
                      {.model = FieldModel::opdt, .bootstrap = true, .degree = 4, .stop_threshold = stop_threshold},
                      require(named_sphere("mirror321")), *pool_, {}))
              .field;
      track("boot OPDT order 4", field, {.getter = Getter::boot},
            {8.0 * 4 * (field.channels + 1),
             16.0 * (field.channels + 1) + d * (2 * c + 60) + c * d * 2 + orbits * (2 * c + 8) + 6 * m});
    }
    Json peers = Json::object();
    if (options_.peers) peers = run_peers();
    compare(peers);
    write(peers);
    return 0;
  }

 private:
  bool wanted(std::string_view name) const {
    return options_.only.empty() || name.find(options_.only) != std::string_view::npos;
  }

  void prepare_data() {
    const fs::path program = own_program().parent_path() / "cingulum";
    fs::create_directories(folder_);
    const auto make = [&](const fs::path& result, std::vector<std::string> words) {
      if (fs::exists(result)) return;
      words.insert(words.begin(), program.string());
      fmt::print("making {}\n", result.string());
      if (!run_child(words, folder_ / "stdout").succeeded) {
        give_up(fmt::format("{} failed", fmt::join(words, " ")));
      }
    };
    const std::string phantom = (folder_ / "phantom").string();
    make(folder_ / "phantom/phantom.json",
         {"phantom", "--preset", "brain", "--out", phantom, "--voxel-size", options_.voxel_size, "--force", "--quiet"});
    for (const char* model : {"csd", "dti"}) {
      make(folder_ / model / "fit.json",
           {"fit", "--model", model, phantom + "/dwi.nii.gz", "--bvals", phantom + "/dwi.bval", "--bvecs",
            phantom + "/dwi.bvec", "--mask", phantom + "/mask.nii.gz", "--out", (folder_ / model).string(), "--force",
            "--quiet"});
    }
    // The directions that DIPY tracks on: its own half sphere, or ours where there is no DIPY.
    const fs::path script = fs::path(CINGULUM_BENCH_SOURCE) / "peers" / "track.py";
    if (!fs::exists(folder_ / "sphere.txt") &&
        !run_child({options_.python, script.string(), "sphere", folder_.string()}, folder_ / "stdout").succeeded) {
      std::string text;
      for (const numerics::Vec3d& v : require(named_sphere("repulsion724")).directions) {
        text += fmt::format("{:.17g} {:.17g} {:.17g}\n", v.x, v.y, v.z);
      }
      write_text(folder_ / "sphere.txt", text);
    }
  }

  static void write_text(const fs::path& path, const std::string& text) {
    require(write_file_atomically(path, text, {.force = true, .sync = false}));
  }

  void load() {
    const Image fa = require(read_image(folder_ / "dti/fa.nii.gz"));
    const Image mask = require(read_image(folder_ / "phantom/mask.nii.gz"));
    geometry_ = fa.geometry;
    stop_map_ = fa.values;
    mask_.resize(mask.values.size());
    std::vector<std::uint8_t> start(mask_.size());
    for (std::size_t i = 0; i < mask_.size(); ++i) {
      mask_[i] = mask.values[i] > 0 ? 1 : 0;
      start[i] = mask_[i] != 0 && static_cast<double>(stop_map_[i]) > stop_threshold ? 1 : 0;
    }
    seeds_ = require(random_seeds(geometry_, start, options_.seeds, numerics::philox_key(0)));
    std::vector<numerics::Vec3> positions(options_.seeds);
    seeds_->fill(0, positions);
    std::string text;
    for (const numerics::Vec3& p : positions) {
      text += fmt::format("{:.9g} {:.9g} {:.9g}\n", p.x, p.y, p.z);
    }
    write_text(folder_ / "seeds.txt", text);
  }

  void measure_ceilings() {
    std::vector<float> memory(std::size_t{1} << 27, 1.0f);  // 512 MiB, beyond every cache
    double sum = 0;
    std::vector<double> reading;
    for (int repetition = 0; repetition < 4; ++repetition) {
      const double begun = processor_seconds();
      std::mutex mutex;
      pool_->parallel_for(memory.size(), std::size_t{1} << 20, [&](std::size_t begin, std::size_t end) {
        float part[16] = {};
        for (std::size_t i = begin; i + 16 <= end; i += 16) {
          for (std::size_t k = 0; k < 16; ++k) part[k] += memory[i + k];
        }
        const std::lock_guard lock(mutex);
        sum += static_cast<double>(std::accumulate(part, part + 16, 0.0f));
      });
      reading.push_back((processor_seconds() - begun) / options_.threads);
    }
    read_bytes_per_second_ = 4.0 * static_cast<double>(memory.size()) / spread_of(reading).low;
    double operations = 0;
    double keep = 0;
    const double start = processor_seconds();
    numerics::with_packs<float>([&]<class Number>() {
      Number sums[16];
      for (int i = 0; i < 16; ++i) sums[i] = Number(static_cast<float>(i));
      const Number factor(0.999f), term(0.001f);
      for (int round = 0; round < 20'000'000; ++round) {
        for (int i = 0; i < 16; ++i) sums[i] = sums[i] * factor + term;
      }
      operations = 20e6 * 16 * 2 * Number::width;
      float lanes[64];
      for (const Number& s : sums) {
        s.store(lanes);
        keep += static_cast<double>(lanes[0]);
      }
    });
    operations_per_second_ = options_.threads * operations / (processor_seconds() - start);
    fmt::print("kernels {}, {} threads; memory is read at {:.1f} GB/s, registers reach {:.0f} G operations/s{}\n",
               best_cpu_kernels().name, options_.threads, read_bytes_per_second_ * 1e-9, operations_per_second_ * 1e-9,
               keep + sum < 0 ? " " : "");
  }

  void track(const std::string& name, const Field& field, TrackingOptions options, const Cost& cost) {
    if (!wanted(name)) return;
    options.max_angle_deg = max_angle_deg;
    options.stop_threshold = stop_threshold;
    options.max_directions = 1;  // as DIPY's trackers
    const TrackingPlan plan = require(make_tracking_plan(options, geometry_));
    const std::unique_ptr<Tracker> tracker = make_cpu_tracker(*pool_);
    require(tracker->prepare(plan, field, *seeds_, nullptr));
    StreamlineBatch batch;
    std::vector<double> rates, walls;
    for (int i = 0; i <= options_.repetitions; ++i) {
      const double start = processor_seconds();
      const auto wall = std::chrono::steady_clock::now();
      require(tracker->track({0, options_.seeds}, batch));
      const double seconds = (processor_seconds() - start) / options_.threads;
      if (i == 0) continue;
      rates.push_back(1e-6 * static_cast<double>(batch.points.size()) / 3 / seconds);
      walls.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - wall).count());
    }
    const double by_memory = read_bytes_per_second_ / cost.bytes * 1e-6;
    const double by_arithmetic = operations_per_second_ / cost.operations * 1e-6;
    const Row row{name, "M/s", spread_of(rates),
                  by_memory < by_arithmetic ? fmt::format("{:.0f} B per step from memory", cost.bytes)
                                            : fmt::format("{:.0f} operations per step", cost.operations),
                  std::min(by_memory, by_arithmetic)};
    fmt::print("{}\n", to_text(row));
    Json json = to_json(row);
    json["ceiling_memory"] = by_memory;
    json["ceiling_arithmetic"] = by_arithmetic;
    json["wall_s"] = spread_of(walls).median;
    json["steps"] = batch.steps;
    json["steps_per_s_M"] =
        row.value.median * static_cast<double>(batch.steps) / (static_cast<double>(batch.points.size()) / 3);
    json["field_bytes"] = field.records.size() * 4 + field.record_of_voxel.size() * 4;
    if (options.getter == Getter::ptt) {
      json["probe_quality"] = plan.ptt_probe_quality;
      json["probe_length_mm"] = plan.ptt_probe_length_mm;
      json["bound_candidates_per_step"] = 32;
    }
    describe(batch, json);
    rows_.push_back(std::move(json));
  }

  // Streamlines of at least 2 mm are kept, as the command line does, and scored.
  void describe(const StreamlineBatch& batch, Json& json) {
    TractogramBatch kept;
    double total = 0;
    for (std::size_t i = 0; i < batch.streamline_count(); ++i) {
      std::vector<float> world;
      double length = 0;
      numerics::Vec3d last{0, 0, 0};
      for (std::uint64_t p = batch.offsets[i]; p < batch.offsets[i + 1]; ++p) {
        const float* at = &batch.points[3 * p];
        const numerics::Vec3d point = geometry_.voxel_to_world.apply(
            {static_cast<double>(at[0]), static_cast<double>(at[1]), static_cast<double>(at[2])});
        if (p > batch.offsets[i]) length += numerics::length(point - last);
        last = point;
        world.insert(world.end(),
                     {static_cast<float>(point.x), static_cast<float>(point.y), static_cast<float>(point.z)});
      }
      if (length < 2) continue;
      kept.positions.insert(kept.positions.end(), world.begin(), world.end());
      kept.offsets.push_back(kept.positions.size() / 3);
      total += length;
    }
    json["seeds"] = options_.seeds;
    json["kept"] = kept.streamline_count();
    json["points"] = kept.point_count();
    json["mean_length_mm"] = kept.streamline_count() > 0 ? total / static_cast<double>(kept.streamline_count()) : 0;
    Scorer scorer = require(Scorer::create(folder_ / "phantom", {.bootstrap = 0}));
    scorer.add(kept, *pool_);
    add_score(scorer.finish(*pool_), json);
    fmt::print(
        "      {} of {} seeds' streamlines kept, mean {:.1f} mm, valid {:.3f}, invalid {:.3f}, overlap {:.3f}, "
        "F1 {:.3f}, field {:.0f} MB\n",
        kept.streamline_count(), options_.seeds, json["mean_length_mm"].get<double>(),
        json["score"]["valid"].get<double>(), json["score"]["invalid"].get<double>(),
        json["score"]["overlap"].get<double>(), json["score"]["f1"].get<double>(),
        static_cast<double>(json["field_bytes"].get<std::uint64_t>()) * 1e-6);
  }

  static void add_score(const Score& score, Json& json) {
    json["score"] = {{"valid", score.valid.value},
                     {"invalid", score.invalid.value},
                     {"no_connection", score.no_connection.value},
                     {"overlap", score.any.overlap.value},
                     {"overreach", score.any.overreach.value},
                     {"f1", score.any.f1.value}};
  }

  Json run_peers() {
    const fs::path script = fs::path(CINGULUM_BENCH_SOURCE) / "peers" / "track.py";
    const fs::path result = folder_ / "peers.json";
    if (!run_child({options_.python, script.string(), "track", folder_.string(), std::to_string(options_.threads),
                    std::to_string(max_angle_deg), std::to_string(stop_threshold), result.string(), options_.only},
                   folder_ / "stdout")
             .succeeded) {
      fmt::print("  no peers: {} {} failed\n", options_.python, script.string());
      return Json::object();
    }
    Json peers = Json::parse(require(read_text_file(result)), nullptr, false);
    if (!peers.is_object()) return Json::object();
    for (auto& [name, row] : peers.items()) {
      const fs::path file = row.value("file", std::string());
      const Result<Score> score = score_tractogram(file, folder_ / "phantom", {.bootstrap = 0}, *pool_, {});
      if (score) add_score(*score, row);
      fmt::print("  {:<52} {:>10.4f} M/s    {} streamlines, mean {:.1f} mm{}\n", name, row.value("points_per_s_M", 0.0),
                 row.value("kept", 0), row.value("mean_length_mm", 0.0),
                 score ? fmt::format(", valid {:.3f}, invalid {:.3f}, overlap {:.3f}, F1 {:.3f}", score->valid.value,
                                     score->invalid.value, score->any.overlap.value, score->any.f1.value)
                       : ", not scored: " + score.error().message());
    }
    return peers;
  }

  void compare(const Json& peers) {
    struct Pair {
      const char* ours;
      const char* peer;
      double wanted;
    };
    for (const Pair& pair : {Pair{"prob on SF", "DIPY prob on SF", 10}, Pair{"ptt on SF", "DIPY ptt on SF", 20},
                             Pair{"boot OPDT order 4", "DIPY boot OPDT order 4", 50},
                             Pair{"det from SH", "MRtrix3 SD_STREAM", 3}, Pair{"prob from SH", "MRtrix3 iFOD1", 3}}) {
      for (Json& row : rows_) {
        if (row["scenario"] != pair.ours || !peers.contains(pair.peer)) continue;
        const Json& peer = peers[pair.peer];
        const double ratio = row["median"].get<double>() / peer["points_per_s_M"].get<double>();
        const double lengths = row["mean_length_mm"].get<double>() / peer["mean_length_mm"].get<double>();
        row["peer"] = pair.peer;
        row["times_peer"] = ratio;
        row["mean_length_ratio"] = lengths;
        fmt::print("  {} is {:.1f} times {} per point (goal {}); mean lengths differ by {:+.1f} %\n", pair.ours, ratio,
                   pair.peer, pair.wanted, 100 * (lengths - 1));
      }
    }
  }

  void write(const Json& peers) {
    const Json json = {{"bench", "track"},
                       {"version", Json::parse(version_json(), nullptr, false)},
                       {"kernels", best_cpu_kernels().name},
                       {"threads", options_.threads},
                       {"voxel_size_mm", options_.voxel_size},
                       {"max_angle_deg", max_angle_deg},
                       {"stop_threshold", stop_threshold},
                       {"read_gb_per_s", read_bytes_per_second_ * 1e-9},
                       {"operations_g_per_s", operations_per_second_ * 1e-9},
                       {"rows", rows_},
                       {"peers", peers}};
    write_report(options_.out, json);
  }

  Options options_;
  fs::path folder_;
  std::unique_ptr<ThreadPool> pool_;
  ImageGeometry geometry_;
  std::vector<float> stop_map_;
  std::vector<std::uint8_t> mask_;
  std::unique_ptr<Seeds> seeds_;
  double read_bytes_per_second_ = 0;
  double operations_per_second_ = 0;
  std::vector<Json> rows_;
};

Options parse(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--no-peers") {
      options.peers = false;
      continue;
    }
    const std::string value = i + 1 < count ? words[++i] : "";
    if (word == "--data")
      options.data = value;
    else if (word == "--out")
      options.out = value;
    else if (word == "--seeds")
      options.seeds = std::stoull(value);
    else if (word == "--threads")
      options.threads = std::stoi(value);
    else if (word == "--repetitions")
      options.repetitions = std::stoi(value);
    else if (word == "--voxel-size")
      options.voxel_size = value;
    else if (word == "--python")
      options.python = value;
    else if (word == "--only")
      options.only = value;
    else {
      fmt::print(stderr,
                 "usage: bench_track [--data DIR] [--out FILE.json] [--seeds N] [--threads N] [--repetitions N] "
                 "[--voxel-size MM] [--python PROGRAM] [--no-peers] [--only WORD]\n");
      std::exit(2);
    }
  }
  if (options.data.empty()) options.data = (fs::temp_directory_path() / "cingulum-bench-track").string();
  return options;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  return cingulum::bench::TrackBench(cingulum::bench::parse(count, words)).run();
}
