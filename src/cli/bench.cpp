// `cingulum bench track`: every getter on every device that is there, on the phantom `brain` or on a series: time,
// rate, streamlines, lengths, score, and whether the result has the CPU's bits. The table of the README comes from
// here.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "cli/version.hpp"
#include "device/registry.hpp"
#include "dmri/phantom_files.hpp"
#include "dmri/score.hpp"
#include "formats/nifti.hpp"
#include "formats/sidecar.hpp"
#include "formats/tractogram.hpp"
#include "tract/device_choice.hpp"
#include "tract/dwi_preparation.hpp"
#include "tract/seed_sharing.hpp"
#include "tract/seeds.hpp"
#include "tract/tracking_run.hpp"

namespace cingulum {

Verb bench_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

constexpr double stop_threshold = 0.1;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

// What is tracked and how, one line of the table per device.
struct Scenario {
  const char* name;
  Getter getter;
  FieldModel model;
  int degree;
  bool amplitudes;
  const char* sphere;
};

constexpr Scenario scenarios[] = {
    {"boot OPDT order 4", Getter::boot, FieldModel::opdt, 4, false, "mirror321"},
    {"prob on SF", Getter::prob, FieldModel::csd, 8, true, "repulsion724"},
    {"ptt on SF", Getter::ptt, FieldModel::csd, 8, true, "repulsion724"},
    {"det on SF", Getter::det, FieldModel::csd, 8, true, "repulsion724"},
    {"prob from SH order 8", Getter::prob, FieldModel::csd, 8, false, "mirror321"},
    {"det from SH order 8", Getter::det, FieldModel::csd, 8, false, "mirror321"},
    {"closest from SH order 8", Getter::closest, FieldModel::csd, 8, false, "mirror321"},
    {"tensor", Getter::tensor, FieldModel::dti, 4, false, "mirror321"},
};

bool same_bits(const StreamlineBatch& a, const StreamlineBatch& b) {
  return a.offsets == b.offsets && a.seed_index == b.seed_index && a.seed_point == b.seed_point &&
         a.end_reason == b.end_reason && a.steps == b.steps && a.points.size() == b.points.size() &&
         std::equal(a.points.begin(), a.points.end(), b.points.begin(),
                    [](float x, float y) { return numerics::float_bits(x) == numerics::float_bits(y); });
}

class TrackBench {
 public:
  TrackBench(const ParsedArguments& arguments, VerbContext& context, ThreadPool& pool)
      : arguments_(arguments), context_(context), pool_(pool) {}

  Status run() {
    CGL_TRY_ASSIGN(const ProbeOptions probe, ProbeOptions::from_settings(context_.settings()));
    CGL_TRY_ASSIGN(registry_, DeviceRegistry::probe(probe));
    CGL_TRY(choose_devices());
    CGL_TRY(load());
    // Scenarios of one field follow each other, so that it is made once.
    std::optional<PreparedField> prepared;
    const Scenario* of_field = nullptr;
    for (const Scenario& scenario : scenarios) {
      const std::string only = arguments_.has("only") ? arguments_.text("only") : "";
      if (std::string_view(scenario.name).find(only) == std::string_view::npos) continue;
      if (of_field == nullptr || of_field->model != scenario.model || of_field->amplitudes != scenario.amplitudes) {
        prepared.reset();
        FieldRequest request;
        request.model = scenario.model;
        request.bootstrap = scenario.getter == Getter::boot;
        request.degree = scenario.degree;
        request.amplitudes = scenario.amplitudes;
        request.stop_threshold = stop_threshold;
        const bool other_sphere = scenario.amplitudes && arguments_.given("sphere");
        CGL_TRY_ASSIGN(Sphere sphere, named_sphere(other_sphere ? arguments_.text("sphere") : scenario.sphere));
        CGL_TRY_ASSIGN(prepared, make_dwi_field(series_, tensors_.fa, &tensors_, request, std::move(sphere), pool_,
                                                context_.progress_options()));
        of_field = &scenario;
      }
      CGL_TRY(add_context(run_scenario(scenario, prepared->field), "{}", scenario.name));
    }
    return report();
  }

 private:
  Status choose_devices() {
    if (arguments_.text("devices") != "all") {
      // Devices of a mix are joined by +, since the comma separates lines of the table.
      for (const std::string_view name : split(arguments_.text("devices"))) {
        std::string mix(name);
        std::replace(mix.begin(), mix.end(), '+', ',');
        CGL_TRY(cingulum::choose_devices(*registry_, mix, 1));
        devices_.push_back(std::move(mix));
      }
      return {};
    }
    for (const Device* device : registry_->devices()) devices_.push_back(device->id());
    return {};
  }

  static std::vector<std::string_view> split(std::string_view text) {
    std::vector<std::string_view> parts;
    for (;;) {
      const std::size_t comma = text.find(',');
      parts.push_back(text.substr(0, comma));
      if (comma == std::string_view::npos) return parts;
      text.remove_prefix(comma + 1);
    }
  }

  // The phantom or the series that was given, its gradients beside it; FA stops.
  Status load() {
    fs::path dwi, mask_path;
    if (arguments_.given("dwi")) {
      dwi = arguments_.text("dwi");
      if (!arguments_.given("mask")) return fail(ErrorKind::invalid_argument, "--dwi needs --mask");
      mask_path = arguments_.text("mask");
    } else {
      CGL_TRY_ASSIGN(const PhantomModel model, brain_phantom());
      const double edge = arguments_.real("voxel-size");
      truth_ = fs::path(arguments_.text("cache-dir")) /
               (edge == model.voxel_mm ? "brain-phantom" : fmt::format("brain-phantom-{}mm", edge));
      std::error_code ignored;
      if (!fs::exists(truth_ / "phantom.json", ignored)) {
        log_info("making the phantom `brain` in {}", truth_.string());
        PhantomRequest request;
        request.model = model;
        request.grid.voxel_mm = {edge, edge, edge};
        CGL_TRY_ASSIGN(request.scheme, named_scheme(request.model.scheme));
        CGL_TRY(write_phantom(request, truth_, context_.write_options(), pool_, context_.progress_options()));
      }
      dwi = truth_ / "dwi.nii.gz";
      mask_path = truth_ / "mask.nii.gz";
    }
    std::string stem = dwi.string();
    for (const std::string_view ending : {".gz", ".nii"}) {
      if (stem.ends_with(ending)) stem.resize(stem.size() - ending.size());
    }
    CGL_TRY_ASSIGN(const GradientTable table, read_fsl_gradients(stem + ".bval", stem + ".bvec"));
    CGL_TRY_ASSIGN(const Image mask_image, read_image(mask_path));
    std::vector<std::uint8_t> mask(mask_image.values.size());
    for (std::size_t i = 0; i < mask.size(); ++i) mask[i] = mask_image.values[i] > 0 ? 1 : 0;
    CGL_TRY_ASSIGN(series_, read_dwi_series(dwi, table, table.frame, mask, default_b0_threshold));
    geometry_ = mask_image.geometry;
    CGL_TRY_ASSIGN(tensors_, fit_tensor_maps(series_, pool_, nullptr));
    std::vector<std::uint8_t> start(mask.size());
    for (std::size_t i = 0; i < mask.size(); ++i) {
      start[i] = mask[i] != 0 && static_cast<double>(tensors_.fa[i]) > stop_threshold ? 1 : 0;
    }
    const auto count = static_cast<std::uint64_t>(arguments_.integer("nseeds"));
    CGL_TRY_ASSIGN(seeds_, random_seeds(geometry_, start, count, numerics::philox_key(0)));
    return {};
  }

  Status run_scenario(const Scenario& scenario, const Field& field) {
    TrackingOptions options;
    options.getter = scenario.getter;
    options.max_angle_deg = 60;
    options.stop_threshold = stop_threshold;
    options.max_directions = 1;  // as other programs do
    if (const char* const s = std::getenv("CINGULUM_PTT_SUBSTEPS")) options.ptt_substeps = static_cast<std::uint32_t>(std::atoi(s));
    CGL_TRY_ASSIGN(const TrackingPlan plan, make_tracking_plan(options, geometry_));
    const auto check_seeds = std::min(static_cast<std::uint64_t>(arguments_.integer("check-seeds")), seeds_->count());
    StreamlineBatch truth;
    {
      const std::unique_ptr<Tracker> cpu = make_cpu_tracker(pool_);
      CGL_TRY(cpu->prepare(plan, field, *seeds_, nullptr));
      CGL_TRY(cpu->track({0, check_seeds}, truth));
    }
    std::string first_hash;
    for (const std::string& device : devices_) {
      auto prepared = prepare_trackers(*registry_, device, 1, pool_, plan, field, *seeds_, nullptr);
      if (!prepared) {
        log_warning("{} on {}: {}", scenario.name, device, prepared.error().message());
        rows_.push_back({{"scenario", scenario.name}, {"device", device}, {"refused", prepared.error().message()}});
        continue;
      }
      Json row = {{"scenario", scenario.name}, {"device", device}, {"seeds", seeds_->count()}};
      row["field_bytes"] = field.stored_bytes().size() + field.record_of_voxel.size() * sizeof(std::uint32_t);
      StreamlineBatch batch;
      CGL_TRY(prepared->trackers.front()->track({0, check_seeds}, batch));
      row["checked_seeds"] = check_seeds;
      row["equal_to_cpu"] = same_bits(batch, truth);
      CGL_TRY(measure_kernel(*prepared->trackers.front(), row));
      CGL_TRY(measure_tracking(prepared->pointers(), row));
      CGL_TRY(measure_whole_run(prepared->pointers(), options, plan, first_hash, row));
      rows_.push_back(std::move(row));
      context_.print_format("{}\n", line_of(rows_.back()));
    }
    return {};
  }

  // All seeds in one go: what the kernel itself reaches, data on the device.
  Status measure_kernel(Tracker& tracker, Json& row) {
    const double before = tracker.kernel_seconds();
    StreamlineBatch batch;
    const auto count = std::min<std::uint64_t>(seeds_->count(), 1'000'000);
    if (before == 0) return {};
    double best = 0;
    std::uint64_t points = 0;
    for (std::int64_t i = 0; i < arguments_.integer("repetitions"); ++i) {
      const double begin = tracker.kernel_seconds();
      CGL_TRY(tracker.track({0, count}, batch));
      const double seconds = tracker.kernel_seconds() - begin;
      points = batch.points.size() / 3;
      if (best == 0 || seconds < best) best = seconds;
    }
    row["kernel_seconds"] = best;
    row["kernel_M_points_per_s"] = 1e-6 * static_cast<double>(points) / best;
    row["kernel_M_steps_per_s"] = 1e-6 * static_cast<double>(batch.steps) / best;
    return {};
  }

  // Seeds to points in host memory, as a run does it, without writing.
  Status measure_tracking(const std::vector<Tracker*>& trackers, Json& row) {
    std::vector<double> seconds;
    std::uint64_t points = 0, steps = 0;
    for (std::int64_t i = 0; i <= arguments_.integer("repetitions"); ++i) {
      points = steps = 0;
      const auto begin = Clock::now();
      CGL_TRY_ASSIGN(const auto sharing,
                     SeedSharing::start(trackers, {.total = seeds_->count(), .chunk = chunk_seeds()}));
      for (;;) {
        CGL_TRY_ASSIGN(auto batch, sharing->next());
        if (!batch) break;
        points += batch->points.size() / 3;
        steps += batch->steps;
        sharing->give_back(std::move(batch));
      }
      if (i > 0) seconds.push_back(seconds_since(begin));
    }
    const double median = median_of(seconds);
    row["tracking_seconds"] = median;
    row["points"] = points;
    row["steps"] = steps;
    row["M_points_per_s"] = 1e-6 * static_cast<double>(points) / median;
    row["M_steps_per_s"] = 1e-6 * static_cast<double>(steps) / median;
    return {};
  }

  // Seeds to a finished file, checksums included.
  Status measure_whole_run(const std::vector<Tracker*>& trackers, const TrackingOptions& options,
                           const TrackingPlan& plan, std::string& first_hash, Json& row) {
    const fs::path file = fs::path(arguments_.text("folder")) / fmt::format("cingulum-bench-{}.trx", row.size());
    std::vector<double> seconds;
    TrackingStatistics statistics;
    for (std::int64_t i = 0; i <= arguments_.integer("repetitions"); ++i) {
      const auto begin = Clock::now();
      TractogramLayout layout;
      layout.format = TractogramFormat::trx;
      layout.reference = geometry_;
      CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(file, layout, {.force = true, .sync = false}));
      TrackingRunOptions run;
      run.selection.min_length_mm = options.min_length_mm;
      run.selection.max_length_mm = options.max_length_mm;
      run.selection.tolerance_mm = 1e-3 * static_cast<double>(plan.step_mm);
      run.chunk_seeds = chunk_seeds();
      run.pool = &pool_;
      CGL_TRY_ASSIGN(statistics, run_tracking(trackers, *seeds_, geometry_, run, *writer, nullptr));
      CGL_TRY(writer->commit());
      if (i > 0) seconds.push_back(seconds_since(begin));
    }
    row["file_seconds"] = median_of(seconds);
    row["streamlines"] = statistics.kept;
    row["mean_length_mm"] = statistics.lengths.mean_mm();
    row["median_length_mm"] = statistics.lengths.quantile_mm(0.5);
    CGL_TRY_ASSIGN(const std::string hash, hash_of_file(file));
    row["file_xxh3_128"] = hash;
    if (first_hash.empty()) {
      first_hash = hash;
      score_row_ = Json::object();
      if (!truth_.empty()) {
        CGL_TRY_ASSIGN(const Score score, score_tractogram(file, truth_, {.bootstrap = 0}, pool_, {}));
        score_row_ = {{"commissural", score.commissural_count},
                      {"valid", score.valid.value},
                      {"invalid", score.invalid.value},
                      {"overlap", score.any.overlap.value},
                      {"f1", score.any.f1.value}};
      }
    }
    row["same_file_as_first_device"] = hash == first_hash;
    // The same bytes have the same score.
    if (hash == first_hash && !score_row_.empty()) row["score"] = score_row_;
    std::error_code ignored;
    fs::remove(file, ignored);
    return {};
  }

  [[nodiscard]] std::uint64_t chunk_seeds() const {
    return static_cast<std::uint64_t>(arguments_.integer("chunk-size"));
  }

  static std::string line_of(const Json& row) {
    return fmt::format("{:<24} {:<12} {:>9.1f} M points/s, kernel {:>9.1f}, to a file {:.3f} s, {}",
                       row["scenario"].get<std::string>(), row["device"].get<std::string>(),
                       row["M_points_per_s"].get<double>(), row.value("kernel_M_points_per_s", 0.0),
                       row["file_seconds"].get<double>(),
                       row["equal_to_cpu"].get<bool>() ? "the CPU's bits" : "NOT the CPU's bits");
  }

  Status report() {
    Json json = {{"bench", "track on devices"},
                 {"version", Json::parse(version_json(), nullptr, false)},
                 {"threads", pool_.threads()},
                 {"max_angle_deg", 60},
                 {"stop_threshold", stop_threshold}};
    Json devices = Json::object();
    for (const Device* device : registry_->devices()) devices[device->id()] = device->description().name;
    json["devices"] = std::move(devices);
    json["rows"] = rows_;
    bool all_equal = true;
    Table table({{"getter"},
                 {"device"},
                 {"tracking s", Align::right},
                 {"M points/s", Align::right},
                 {"M steps/s", Align::right},
                 {"kernel M points/s", Align::right},
                 {"to TRX s", Align::right},
                 {"streamlines", Align::right},
                 {"mean mm", Align::right},
                 {"median mm", Align::right},
                 {"commissural", Align::right},
                 {"F1", Align::right},
                 {"equal"}});
    for (const Json& row : rows_) {
      if (row.contains("refused")) continue;
      const bool equal = row["equal_to_cpu"].get<bool>() && row["same_file_as_first_device"].get<bool>();
      all_equal = all_equal && equal;
      const Json score = row.value("score", Json::object());
      table.add_row(
          {row["scenario"].get<std::string>(), row["device"].get<std::string>(),
           fmt::format("{:.4f}", row["tracking_seconds"].get<double>()),
           fmt::format("{:.1f}", row["M_points_per_s"].get<double>()),
           fmt::format("{:.1f}", row["M_steps_per_s"].get<double>()),
           row.contains("kernel_M_points_per_s") ? fmt::format("{:.1f}", row["kernel_M_points_per_s"].get<double>())
                                                 : "",
           fmt::format("{:.3f}", row["file_seconds"].get<double>()),
           format_count(row["streamlines"].get<std::uint64_t>()),
           fmt::format("{:.2f}", row["mean_length_mm"].get<double>()),
           fmt::format("{:.1f}", row["median_length_mm"].get<double>()),
           score.contains("commissural") ? format_count(score["commissural"].get<std::uint64_t>()) : "",
           score.contains("f1") ? fmt::format("{:.3f}", score["f1"].get<double>()) : "", equal ? "yes" : "NO"});
    }
    if (context_.common().json) {
      context_.print(json_text(json));
    } else {
      context_.print_format("\n{}", table.text(2));
    }
    if (arguments_.given("out")) {
      CGL_TRY(write_file_atomically(arguments_.text("out"), json_text(json), context_.write_options()));
    }
    if (!all_equal) return fail(ErrorKind::device, "results of devices differ: see the table");
    return {};
  }

  const ParsedArguments& arguments_;
  VerbContext& context_;
  ThreadPool& pool_;
  std::optional<DeviceRegistry> registry_;
  std::vector<std::string> devices_;  // as --device takes them
  fs::path truth_;                    // the phantom's folder, if it is one
  ImageGeometry geometry_;
  DwiSeries series_;
  TensorMaps tensors_;
  std::unique_ptr<Seeds> seeds_;
  std::vector<Json> rows_;
  Json score_row_;
};

Status run_bench(const ParsedArguments& arguments, VerbContext& context) {
  if (arguments.text("what") != "track") {
    return fail(ErrorKind::invalid_argument, "bench '{}': accepted is track", arguments.text("what"));
  }
  CGL_TRY_ASSIGN(ThreadPool* const pool, context.pool());
  return TrackBench(arguments, context, *pool).run();
}

Argument whole(std::string name, std::string help, double minimum, double maximum, std::string otherwise) {
  Argument argument{.name = std::move(name), .type = ArgumentType::integer, .help = std::move(help)};
  argument.range = {.minimum = minimum, .maximum = maximum};
  argument.default_text = std::move(otherwise);
  return argument;
}

Argument voxel_size() {
  Argument argument{.name = "voxel-size", .type = ArgumentType::real, .help = "edge of the phantom's voxels"};
  argument.range = {.minimum = 0.5, .maximum = 5};
  argument.unit = "mm";
  argument.default_text = "2";
  return argument;
}

}  // namespace

Verb bench_verb() {
  return {
      .name = "bench",
      .summary = "measure tracking on every device of this machine",
      .description =
          "bench track runs every direction getter on every device: tracking alone (seeds to points in memory), the "
          "tracking kernel by itself where the device measures it, and a whole run to a TRX file in --folder. Each row "
          "says whether the streamlines have the bits of the CPU's and whether the file is the same as the first "
          "device's. Without --dwi the phantom `brain` is tracked and scored.",
      .arguments =
          {{.name = "what",
            .type = ArgumentType::text,
            .help = "what to measure: track",
            .positional = true,
            .required = true},
           {.name = "devices",
            .type = ArgumentType::text,
            .help = "all, or a list: a line of the table for each; devices joined by + share one run",
            .metavar = "LIST",
            .default_text = "all"},
           {.name = "only", .type = ArgumentType::text, .help = "only rows whose name contains this"},
           whole("nseeds", "seeds", 1, 4e9, "100000"),
           whole("check-seeds", "of these, compared with the CPU bit for bit", 1, 1e9, "2000"),
           whole("repetitions", "of each measurement, after one that does not count", 1, 1000, "3"),
           whole("chunk-size", "seeds tracked at a time, at most", 1, 1e9, "25000"),
           voxel_size(),
           {.name = "sphere",
            .type = ArgumentType::text,
            .help = "of the rows on SF: repulsion724, mirror321, ...; with -full directions and opposites apart",
            .metavar = "NAME",
            .default_text = "repulsion724"},
           {.name = "dwi", .type = ArgumentType::text, .help = "a series instead of the phantom", .metavar = "FILE"},
           {.name = "mask", .type = ArgumentType::text, .help = "its mask", .metavar = "FILE"},
           {.name = "folder",
            .type = ArgumentType::text,
            .help = "where files are written and removed again; a memory file system shows the program alone",
            .metavar = "FOLDER",
            .default_text = "."},
           {.name = "cache-dir",
            .type = ArgumentType::text,
            .help = "folder in which the phantom is kept",
            .metavar = "FOLDER",
            .default_text = "."},
           {.name = "out", .type = ArgumentType::text, .help = "write all figures as JSON", .metavar = "FILE"}},
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress},
      .examples = {{"cingulum bench track", "all devices on the phantom"},
                   {"cingulum bench track --devices cuda:0,cuda:0+cpu,cpu --only prob --out bench.json",
                    "a GPU, the GPU and the CPU together, the CPU"},
                   {"cingulum bench track --only \"prob on SF\" --voxel-size 1 --sphere repulsion724-full",
                    "a field of 5 GB"}},
      .run = run_bench,
  };
}

}  // namespace cingulum
