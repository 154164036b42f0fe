// The models beside DIPY and MRtrix3 on the same data and as many threads: constrained spherical deconvolution at
// degree 8 and tensors by weighted least squares, in voxels per second; and the peak memory of `cingulum fit` beside
// twice its input plus output. Then every fit of the preparation on the CPU and on each device of CUDA, memory to
// memory. Data: crossings of two fibres with Rician noise (SNR 30), 64 directions at b = 3000 and 3 b0.
//   bench_models [--out FILE.json] [--voxels N] [--threads N] [--repetitions N] [--python PROGRAM] [--no-peers]
//                [--devices-only [--only TEXT]]
// DIPY's fit alone is timed, as ours; MRtrix3 can be timed only from file to file, and so is `cingulum fit` for it.
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <random>

#include "base/atomic_file.hpp"
#include "base/read_file.hpp"
#include "base/settings.hpp"
#include "base/thread_pool.hpp"
#include "bench/program.hpp"
#include "device/registry.hpp"
#include "dmri/models/bootstrap.hpp"
#include "dmri/models/csd.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/q_ball.hpp"
#include "dmri/models/response.hpp"
#include "dmri/models/spherical_function.hpp"
#include "dmri/models/tensor.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/nifti.hpp"
#include "measure/bench_report.hpp"
#include "measure/repetitions.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using numerics::Vec3d;

struct Options {
  std::string out;
  std::int64_t voxels = 30000;
  int threads = 2;
  int repetitions = 5;
  std::string python = CINGULUM_BENCH_PYTHON;
  bool peers = true;
  bool devices_only = false;
  std::string only;  // of the fits on devices, those whose name holds this
};

struct Scene {
  DwiSignals signals;
  std::vector<double> b_values;
  std::vector<Vec3d> directions;  // zero for b0
  std::vector<Vec3d> weighted_directions;
  std::vector<std::uint32_t> weighted, b0;
  std::vector<double> zonal;
};

constexpr int b0_count = 3;
constexpr int direction_count = 64;
constexpr double b_value = 3000;
constexpr int degree = 8;

double fibre_signal(Vec3d gradient, Vec3d fibre) {
  const double cosine = dot(gradient, fibre);
  return std::exp(-b_value * (0.3e-3 + 1.4e-3 * cosine * cosine));
}

Scene make_scene(std::int64_t voxels) {
  Scene scene;
  for (int i = 0; i < b0_count; ++i) {
    scene.b0.push_back(static_cast<std::uint32_t>(i));
    scene.b_values.push_back(0);
    scene.directions.push_back({0, 0, 0});
  }
  const double golden = 3.141592653589793 * (3 - std::sqrt(5.0));
  for (int i = 0; i < direction_count; ++i) {
    const double z = 1 - (i + 0.5) / direction_count;
    const double r = std::sqrt(1 - z * z);
    scene.weighted.push_back(static_cast<std::uint32_t>(scene.directions.size()));
    scene.b_values.push_back(b_value);
    scene.directions.push_back({r * std::cos(golden * i), r * std::sin(golden * i), z});
    scene.weighted_directions.push_back(scene.directions.back());
  }
  FibreResponse response;
  response.eigenvalues = {1.7e-3, 0.3e-3, 0.3e-3};
  response.s0 = 300;
  scene.zonal = require(
      zonal_response(response, std::vector<double>(direction_count, b_value), scene.weighted_directions, degree));
  scene.signals.geometry.size = {voxels / 100, 10, 10};
  scene.signals.volumes = scene.directions.size();
  std::mt19937_64 random(1);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> uniform(0.3, 1);
  const auto direction = [&] { return normalise(Vec3d{normal(random), normal(random), normal(random)}); };
  for (std::int64_t v = 0; v < scene.signals.geometry.voxel_count(); ++v) {
    scene.signals.voxels.push_back(static_cast<std::uint32_t>(v));
    const Vec3d first = direction();
    const Vec3d second = direction();
    const double share = uniform(random);
    for (std::size_t i = 0; i < scene.directions.size(); ++i) {
      const Vec3d g = scene.directions[i];
      const double signal =
          i < b0_count ? 300 : 300 * (share * fibre_signal(g, first) + (1 - share) * fibre_signal(g, second));
      const double real = signal + 10 * normal(random);
      const double imaginary = 10 * normal(random);
      scene.signals.values.push_back(static_cast<float>(std::sqrt(real * real + imaginary * imaginary)));
    }
  }
  return scene;
}

void write_scene(const Scene& scene, const fs::path& folder) {
  const auto voxels = static_cast<std::size_t>(scene.signals.geometry.voxel_count());
  std::vector<float> volumes(voxels * scene.signals.volumes);
  for (std::size_t v = 0; v < voxels; ++v) {
    for (std::size_t i = 0; i < scene.signals.volumes; ++i) {
      volumes[i * voxels + v] = scene.signals.values[v * scene.signals.volumes + i];
    }
  }
  NiftiWriteOptions options;
  options.file.force = true;
  require(write_image(folder / "dwi.nii", scene.signals.geometry, static_cast<std::int64_t>(scene.signals.volumes),
                      volumes, options));
  require(write_image(folder / "mask.nii", scene.signals.geometry, 1, std::vector<float>(voxels, 1.0f), options));
  std::string table;
  for (std::size_t i = 0; i < scene.directions.size(); ++i) {
    const Vec3d g = scene.directions[i];
    table += fmt::format("{} {} {} {}\n", g.x, g.y, g.z, scene.b_values[i]);
  }
  require(write_file_atomically(folder / "gradients.b", table));
  require(write_file_atomically(folder / "response.txt", format_zonal_response(scene.zonal)));
}

struct Times {
  measure::Spread elapsed;
  measure::Spread processor;
};

Times times_of(const measure::Seconds& seconds) {
  return {measure::spread_of(seconds.elapsed), measure::spread_of(seconds.processor)};
}

template <class Body>
Times measure_times(int repetitions, Body&& body) {
  return times_of(measure::measure_repetitions(1, repetitions, body));
}

class ModelsBench {
 public:
  explicit ModelsBench(Options options)
      : options_(std::move(options)),
        scene_(make_scene(options_.voxels)),
        pool_(require(ThreadPool::create(options_.threads))) {
    write_scene(scene_, folder_);
    program_ = measure::own_program().parent_path() / "cingulum";
  }

  Json run() {
    fmt::print("{} voxels, {} directions at b = {} and {} b0, {} threads\n", voxels(), direction_count, b_value,
               b0_count, options_.threads);
    Json report = {{"voxels", voxels()},
                   {"directions", direction_count},
                   {"b_value", b_value},
                   {"degree", degree},
                   {"threads", options_.threads}};
    compare_devices(report);
    if (options_.devices_only) {
      report["rows"] = rows_;
      return report;
    }
    const Times csd = measure_csd();
    const Times dti = measure_dti();
    add("csd, fit alone", csd);
    add("dti wls, fit alone", dti);
    const Times csd_files =
        measure_program({program_.string(), "fit", file("dwi.nii"), "--grad", file("gradients.b"), "--mask",
                         file("mask.nii"), "--model", "csd", "--response", file("response.txt"), "--out", file("csd"),
                         "--force", "--quiet", "--threads", std::to_string(options_.threads), "--bvec-frame", "world"},
                        "cingulum fit --model csd, file to file");
    const Times dti_files =
        measure_program({program_.string(), "fit", file("dwi.nii"), "--grad", file("gradients.b"), "--mask",
                         file("mask.nii"), "--model", "dti", "--out", file("dti"), "--force", "--quiet", "--threads",
                         std::to_string(options_.threads), "--bvec-frame", "world"},
                        "cingulum fit --model dti, file to file");
    if (options_.peers) {
      compare_with_dipy(csd, dti, report);
      compare_with_mrtrix(csd_files, dti_files);
    }
    measure_memory(report);
    if (options_.peers) compare_large_with_mrtrix();
    report["rows"] = rows_;
    report["ratios"] = ratios_;
    return report;
  }

 private:
  [[nodiscard]] std::int64_t voxels() const { return scene_.signals.geometry.voxel_count(); }
  [[nodiscard]] std::string file(const std::string& name) const { return (folder_ / name).string(); }

  void add(const std::string& scenario, const Times& times) { add(scenario, times, voxels()); }
  void add(const std::string& scenario, const Times& times, std::int64_t of_voxels) {
    const auto count = static_cast<double>(of_voxels);
    const measure::Spread& seconds = times.elapsed;
    const measure::Row row = {
        scenario,
        "kvox/s",
        {count / seconds.median * 1e-3, count / seconds.high * 1e-3, count / seconds.low * 1e-3, seconds.repetitions},
        "",
        0};
    fmt::print("{}\n", to_text(row));
    rows_.push_back(to_json(row));
    rows_.back()["processor_us_per_voxel"] = times.processor.median / count * 1e6;
  }

  void add_ratio(const std::string& name, const Times& ours, const Times& theirs, double goal) {
    const double elapsed = theirs.elapsed.median / ours.elapsed.median;
    const double processor = theirs.processor.median / ours.processor.median;
    fmt::print("  {:<52} {:>9.1f} x elapsed, {:.1f} x processor time{}\n", name, elapsed, processor,
               goal > 0 ? fmt::format(" (goal {} x)", goal) : "");
    ratios_.push_back({{"name", name}, {"elapsed", elapsed}, {"processor", processor}});
    if (goal > 0) {
      ratios_.back()["goal"] = goal;
      ratios_.back()["reached"] = elapsed >= goal;
    }
  }

  // The fits that make a field, on the CPU's threads and on every GPU of CUDA: from signals in memory to results in
  // memory, set-up included, copies included. The results must be the CPU's.
  void compare_devices(Json& report) {
    const DeviceRegistry registry = require(open_devices(require(Settings::from_environment())));
    const Sphere constraint = require(named_sphere("repulsion362"));
    const Sphere sampled = require(named_sphere("repulsion724"));
    const auto q_ball = [&](QBallModelKind kind, const FitMachine& machine) {
      QBallOptions options;
      options.kind = kind;
      const QBallMatrices matrices = require(make_q_ball_matrices(scene_.weighted_directions, options));
      return require(fit_q_ball(matrices, options, scene_.signals.values, scene_.signals.volumes, scene_.weighted,
                                scene_.b0, machine))
          .coefficients;
    };
    const auto deconvolve = [&](const FitMachine& machine) {
      const CsdModel model =
          require(CsdModel::create(scene_.weighted_directions, scene_.zonal, constraint.directions, {}));
      return require(fit_csd(model, scene_.signals.values, scene_.signals.volumes, scene_.weighted, machine))
          .coefficients;
    };
    const MappedVector<float> fod = deconvolve(*pool_);
    const std::vector<std::pair<std::string, std::function<MappedVector<float>(const FitMachine&)>>> fits = {
        {"dti wls",
         [&](const FitMachine& machine) {
           return require(fit_tensors(scene_.signals, scene_.b_values, scene_.directions, {}, machine)).fa;
         }},
        {"opdt, degree 4", [&](const FitMachine& machine) { return q_ball(QBallModelKind::opdt, machine); }},
        {"csa, degree 4", [&](const FitMachine& machine) { return q_ball(QBallModelKind::csa, machine); }},
        {"bootstrap, degree 4",
         [&](const FitMachine& machine) {
           const BootstrapMatrices matrices = require(make_bootstrap_matrices(scene_.weighted_directions, {}));
           return require(prepare_bootstrap(matrices, scene_.signals.values, scene_.signals.volumes, scene_.weighted,
                                            scene_.b0, machine))
               .residuals;
         }},
        {"csd, degree 8", deconvolve},
        {"amplitudes of degree 8 on 724 directions", [&](const FitMachine& machine) {
           return require(sample_harmonics({numerics::HarmonicConvention::tournier07, degree, false}, fod,
                                           sampled.directions, true, machine));
         }}};
    for (const auto& [name, fit] : fits) {
      if (name.find(options_.only) == std::string::npos) continue;
      MappedVector<float> expected, found;
      const Times cpu = measure_times(options_.repetitions, [&] { expected = fit(*pool_); });
      add(name + ", cpu", cpu);
      for (Device* device : registry.devices()) {
        if (device->description().backend != Backend::cuda) continue;
        const auto made = require(make_fit_device(*device));
        const Times times = measure_times(options_.repetitions, [&] { found = fit({*pool_, made.get()}); });
        add(name + ", " + device->id(), times);
        const bool equal = found.size() == expected.size() &&
                           std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)) == 0;
        fmt::print("  {:<52} {:>9.1f} x the CPU's {} threads, results {}\n", name + " on " + device->id(),
                   cpu.elapsed.median / times.elapsed.median, options_.threads, equal ? "equal" : "DIFFERENT");
        report["devices"].push_back({{"fit", name},
                                     {"device", device->id()},
                                     {"over_cpu", cpu.elapsed.median / times.elapsed.median},
                                     {"equal", equal}});
      }
    }
  }

  Times measure_csd() {
    const Sphere sphere = require(named_sphere("repulsion362"));
    return measure_times(options_.repetitions, [&] {
      // The set-up belongs to the time.
      const CsdModel model = require(CsdModel::create(scene_.weighted_directions, scene_.zonal, sphere.directions, {}));
      (void)require(fit_csd(model, scene_.signals.values, scene_.signals.volumes, scene_.weighted, *pool_));
    });
  }

  Times measure_dti() {
    return measure_times(options_.repetitions, [&] {
      (void)require(fit_tensors(scene_.signals, scene_.b_values, scene_.directions, {}, *pool_));
    });
  }

  Times measure_program(const std::vector<std::string>& words, const std::string& scenario) {
    return measure_program(words, scenario, voxels());
  }
  Times measure_program(const std::vector<std::string>& words, const std::string& scenario, std::int64_t of_voxels) {
    measure::Seconds seconds;
    for (int i = 0; i < options_.repetitions; ++i) {
      const measure::ChildRun run = measure::run_child(words, folder_ / "stdout");
      if (!run.succeeded) {
        fmt::print(stderr, "bench_models: {} failed\n", words[0]);
        return {};
      }
      seconds.elapsed.push_back(run.seconds);
      seconds.processor.push_back(run.processor_seconds);
    }
    const Times times = times_of(seconds);
    add(scenario, times, of_voxels);
    return times;
  }

  static Times times_in(const Json& found, const std::string& name) {
    return times_of(
        {found[name + "_s"].get<std::vector<double>>(), found[name + "_processor_s"].get<std::vector<double>>()});
  }

  void compare_with_dipy(const Times& csd, const Times& dti, Json& report) {
    const fs::path script = fs::path(CINGULUM_BENCH_SOURCE) / "peers" / "models.py";
    const measure::ChildRun run =
        measure::run_child({options_.python, script.string(), folder_.string(), std::to_string(options_.threads), "2"},
                           folder_ / "dipy.json");
    if (!run.succeeded) {
      fmt::print("  no DIPY: {} {} failed\n", options_.python, script.string());
      return;
    }
    const Json found = Json::parse(require(read_text_file(folder_ / "dipy.json")));
    report["dipy"] = found;
    const Times their_csd = times_in(found, "csd");
    const Times their_dti = times_in(found, "dti_wls");
    const std::string version = found["dipy"].get<std::string>();
    add("DIPY " + version + " csd, fit alone", their_csd);
    add("DIPY " + version + " dti wls, fit alone", their_dti);
    if (found.contains("csd_parallel_s")) {
      const Times parallel = times_in(found, "csd_parallel");
      add("DIPY csd, " + found["csd_parallel_engine"].get<std::string>(), parallel);
      add_ratio("csd over parallel DIPY", csd, parallel, 10);
    }
    add_ratio("csd over DIPY", csd, their_csd, 10);
    add_ratio("dti wls over DIPY", dti, their_dti, 10);
  }

  void compare_with_mrtrix(const Times& csd, const Times& dti) {
    if (!measure::run_child({"dwi2fod", "-version"}, folder_ / "stdout").succeeded) {
      fmt::print("  no MRtrix3: dwi2fod is not on the path\n");
      return;
    }
    const std::string threads = std::to_string(options_.threads);
    const Times their_csd = measure_program(
        {"dwi2fod", "csd", file("dwi.nii"), file("response.txt"), file("fod.nii"), "-grad", file("gradients.b"),
         "-mask", file("mask.nii"), "-lmax", "8", "-nthreads", threads, "-quiet", "-force"},
        "MRtrix3 dwi2fod csd, file to file");
    const Times their_dti =
        measure_program({"dwi2tensor", file("dwi.nii"), file("tensor.nii"), "-grad", file("gradients.b"), "-mask",
                         file("mask.nii"), "-nthreads", threads, "-quiet", "-force"},
                        "MRtrix3 dwi2tensor, file to file");
    add_ratio("csd over MRtrix3, file to file", csd, their_csd, 5);
    add_ratio("dti over MRtrix3 dwi2tensor, file to file", dti, their_dti, 0);
  }

  // Peak memory of the program for a whole-brain number of voxels, beside twice what it reads and writes.
  static constexpr std::int64_t many = 300000;

  // This comparison has as many voxels as a brain of 1.8 mm; with 30 000 it is the start of the programs that is
  // compared.
  void compare_large_with_mrtrix() {
    if (!measure::run_child({"dwi2tensor", "-version"}, folder_ / "stdout").succeeded) return;
    const auto large = [&](const char* name) { return (folder_ / "large" / name).string(); };
    const std::string threads = std::to_string(options_.threads);
    const Times ours = measure_program(
        {program_.string(), "fit", large("dwi.nii"), "--grad", large("gradients.b"), "--mask", large("mask.nii"),
         "--model", "dti", "--out", large("dti"), "--force", "--quiet", "--threads", threads, "--bvec-frame", "world"},
        "cingulum fit --model dti, 300 000 voxels, file to file", many);
    const Times theirs =
        measure_program({"dwi2tensor", large("dwi.nii"), large("tensor.nii"), "-grad", large("gradients.b"), "-mask",
                         large("mask.nii"), "-nthreads", threads, "-quiet", "-force"},
                        "MRtrix3 dwi2tensor, 300 000 voxels, file to file", many);
    add_ratio("dti of 300 000 voxels over MRtrix3, file to file", ours, theirs, 2);
  }

  // Leaves the scene of `many` voxels in the folder "large".
  void measure_memory(Json& report) {
    const Scene scene = make_scene(many);
    const fs::path folder = folder_ / "large";
    fs::create_directory(folder);
    write_scene(scene, folder);
    for (const std::string model : {"csd", "dti"}) {
      std::vector<std::string> words = {program_.string(),
                                        "fit",
                                        (folder / "dwi.nii").string(),
                                        "--grad",
                                        (folder / "gradients.b").string(),
                                        "--mask",
                                        (folder / "mask.nii").string(),
                                        "--model",
                                        model,
                                        "--out",
                                        (folder / model).string(),
                                        "--quiet",
                                        "--threads",
                                        std::to_string(options_.threads),
                                        "--bvec-frame",
                                        "world"};
      if (model == "csd") words.insert(words.end(), {"--response", (folder / "response.txt").string()});
      const measure::ChildRun run = measure::run_child(words, folder_ / "stdout");
      const auto count = static_cast<std::uint64_t>(many);
      const std::uint64_t input = count * 4 * (direction_count + b0_count);
      const std::uint64_t output = count * 4 * (model == "csd" ? 45 : 17);
      const double share = static_cast<double>(run.peak_bytes) / static_cast<double>(2 * (input + output));
      fmt::print("  {:<52} {:>9.1f} MB  {:.0f} % of twice input plus output ({:.1f} MB)\n",
                 "peak memory, " + model + ", 300 000 voxels", static_cast<double>(run.peak_bytes) * 1e-6, 100 * share,
                 2e-6 * static_cast<double>(input + output));
      report["memory"].push_back({{"model", model},
                                  {"voxels", many},
                                  {"peak_bytes", run.peak_bytes},
                                  {"input_bytes", input},
                                  {"output_bytes", output},
                                  {"share_of_twice_input_plus_output", share},
                                  {"seconds", run.seconds}});
    }
  }

  Options options_;
  Scene scene_;
  std::unique_ptr<ThreadPool> pool_;
  measure::ScratchFolder scratch_ = scratch_folder();
  fs::path folder_ = scratch_.path();
  fs::path program_;
  Json rows_ = Json::array();
  Json ratios_ = Json::array();
};

Options parse(int count, char** words) {
  Options options;
  ProgramOptions()
      .add("--out", "FILE.json", options.out)
      .add("--voxels", "N", options.voxels, std::int64_t{100})
      .add("--threads", "N", options.threads, 1)
      .add("--repetitions", "N", options.repetitions, 1)
      .add("--python", "PROGRAM", options.python)
      .add_flag("--no-peers", options.peers, false)
      .add_flag("--devices-only", options.devices_only)
      .add("--only", "TEXT", options.only)
      .read(count, words);
  return options;
}

int run(const Options& options) {
  const Json report = ModelsBench(options).run();
  write_report(options.out, "models", report);
  return 0;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  return cingulum::bench::run(cingulum::bench::parse(count, words));
}
