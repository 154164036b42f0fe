// `cingulum bench track`: every getter on every device that is there, on the phantom `brain` or on given data: the
// command as it is typed, from file to file; then time, rate, streamlines, lengths, score of its parts, and whether the
// result has the CPU's bits; other programs beside them. The table of the README comes from here.
#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "base/log.hpp"
#include "base/option_name.hpp"
#include "base/quantity.hpp"
#include "cli/table.hpp"
#include "cli/verb.hpp"
#include "device/registry.hpp"
#include "formats/output_sidecar.hpp"
#include "measure/bench_data.hpp"
#include "measure/bench_report.hpp"
#include "measure/child_program.hpp"
#include "measure/host_peak.hpp"
#include "measure/tracking_peers.hpp"
#include "measure/tracking_rows.hpp"
#include "measure/typed_runs.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum {

Verb bench_verb();

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::vector<std::string_view> split_at_commas(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    const std::size_t comma = text.find(',');
    parts.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

// A cell of a table; empty where the row has no such number.
std::string real(const Json& of, const char* name, int digits, double scale = 1) {
  return of.contains(name) ? fmt::format("{:.{}f}", scale * of[name].get<double>(), digits) : std::string();
}

constexpr Getter typed_getters[] = {Getter::ptt,  Getter::prob,    Getter::det,
                                    Getter::boot, Getter::closest, Getter::tensor};

class TrackBench {
 public:
  TrackBench(const ParsedArguments& arguments, VerbContext& context, ThreadPool& pool)
      : arguments_(arguments), context_(context), pool_(pool) {
    measures_.repetitions = arguments.integer("repetitions");
    measures_.chunk_seeds = static_cast<std::uint64_t>(arguments.integer("chunk-size"));
    measures_.folder = arguments.text("folder");
    if (arguments.given("disk")) measures_.disk = arguments.text("disk");
  }

  Status run() {
    CGL_TRY_ASSIGN(const ProbeOptions probe, ProbeOptions::from_settings(context_.settings()));
    CGL_TRY_ASSIGN(registry_, DeviceRegistry::probe(probe));
    CGL_TRY(name_devices());
    CGL_TRY_ASSIGN(const measure::BenchSource data, source());
    CGL_TRY_ASSIGN(data_, measure::BenchData::load(data, static_cast<std::uint64_t>(arguments_.integer("nseeds")),
                                                   pool_, context_.write_options(), context_.progress_options()));
    if (data.sh.empty() && !arguments_.flag("kernels-only")) {
      for (const Getter getter : typed_getters) CGL_TRY(run_typed(getter));
    }
    for (const measure::BenchScenario& scenario : measure::bench_scenarios()) {
      if (!is_wanted(scenario.name) || !data_->has(scenario)) continue;
      CGL_TRY_ASSIGN(const Field* const field, data_->field_of(scenario, pool_, context_.progress_options()));
      CGL_TRY(add_context(run_scenario(scenario, *field), "{}", scenario.name));
    }
    if (arguments_.flag("peers")) CGL_TRY(run_peers());
    return report();
  }

 private:
  [[nodiscard]] bool is_wanted(std::string_view name) const {
    return name.find(only()) != std::string_view::npos &&
           (!arguments_.given("without") || name.find(arguments_.text("without")) == std::string_view::npos);
  }
  [[nodiscard]] std::string only() const { return arguments_.has("only") ? arguments_.text("only") : ""; }

  [[nodiscard]] Result<measure::BenchSource> source() const {
    const auto path = [&](const char* name) {
      return arguments_.given(name) ? fs::path(arguments_.text(name)) : fs::path();
    };
    CGL_TRY_ASSIGN(const WantedFrame frame,
                   parse_wanted_frame(arguments_.given("bvec-frame") ? arguments_.text("bvec-frame") : ""));
    measure::BenchSource source = {.dwi = path("dwi"),
                                   .sh = path("sh"),
                                   .mask = path("mask"),
                                   .frame = frame,
                                   .voxel_mm = arguments_.real("voxel-size"),
                                   .sphere = arguments_.text("sphere")};
    if (!source.dwi.empty() && !source.sh.empty()) {
      return fail(ErrorKind::invalid_argument, "--dwi and --sh are both given: one of them is tracked");
    }
    if (!source.dwi.empty() && source.mask.empty()) return fail(ErrorKind::invalid_argument, "--dwi needs --mask");
    if (!source.sh.empty()) source.stop_map = path("stop-map");
    if (source.dwi.empty() && source.sh.empty()) {
      CGL_TRY_ASSIGN(source.phantom, measure::brain_phantom_folder(arguments_.text("cache-dir"), source.voxel_mm));
    }
    return source;
  }

  Status run_typed(Getter getter) {
    if (!is_wanted(measure::typed_run_name(getter))) return {};
    for (const std::string& device : devices_) {
      const std::string frame = arguments_.given("bvec-frame") ? arguments_.text("bvec-frame") : "";
      CGL_TRY_ASSIGN(Json row, measure::measure_typed_run(*data_, getter, device, frame, measures_, pool_));
      context_.print_format(
          "{:<24} {:<12} {:>9.3f} s from series to TRX ({:.3f} of tracking and writing), {} "
          "streamlines\n",
          row["scenario"].get<std::string>(), device, row["seconds"].get<double>(),
          row["tracking_seconds"].get<double>(), format_count(static_cast<std::uint64_t>(row["kept"].get<double>())));
      typed_.push_back(std::move(row));
    }
    return {};
  }

  Status run_peers() {
    peers_ = Json::object();
    if (data_->dwi().empty()) {
      log_warning("no peers: they need a series, and a file of spherical harmonics was given");
      return {};
    }
    CGL_TRY_ASSIGN(const measure::ScratchFolder folder, measure::ScratchFolder::create(fs::temp_directory_path()));
    CGL_TRY(measure::fill_peer_folder(folder.path(), *data_));
    const auto seeds = static_cast<std::uint64_t>(arguments_.integer("peer-seeds"));
    const std::string peer = arguments_.given("peer") ? arguments_.text("peer") : only();
    log_info("running peers on {} seeds, those on a GPU on {}", seeds, data_->seeds().count());
    CGL_TRY_ASSIGN(peers_, measure::run_tracking_peers(folder.path(), *data_,
                                                       {.python = arguments_.text("python"),
                                                        .seeds = seeds,
                                                        .only = peer,
                                                        .limit_seconds = arguments_.real("peer-limit"),
                                                        .on_row =
                                                            [&](const std::string& name, const Json& row) {
                                                              context_.print_format(
                                                                  "{:<37} {:>9.3f} s, {} seeds, {} streamlines\n", name,
                                                                  row.value("wall_s", 0.0), row.value("seeds", 0),
                                                                  row.value("kept", 0));
                                                            }},
                                                       pool_));
    for (auto& [name, row] : peers_.items()) row.erase("file");  // it is gone with the folder
    return {};
  }

  Status name_devices() {
    if (arguments_.text("devices") != "all") {
      // Devices of a mix are joined by +, since the comma separates lines of the table.
      for (const std::string_view name : split_at_commas(arguments_.text("devices"))) {
        std::string mix(name);
        std::replace(mix.begin(), mix.end(), '+', ',');
        CGL_TRY(choose_devices(*registry_, mix, 1));
        devices_.push_back(std::move(mix));
      }
      return {};
    }
    for (const Device* device : registry_->devices()) devices_.push_back(device->id());
    return {};
  }

  Status run_scenario(const measure::BenchScenario& scenario, const Field& field) {
    const TrackingOptions options = measure::bench_tracking_options(scenario);
    CGL_TRY_ASSIGN(const TrackingPlan plan, make_tracking_plan(options, data_->geometry()));
    const auto checked =
        std::min(static_cast<std::uint64_t>(arguments_.integer("check-seeds")), data_->seeds().count());
    StreamlineBatch truth;
    {
      const std::unique_ptr<Tracker> cpu = make_cpu_tracker(pool_);
      CGL_TRY(cpu->prepare(plan, field, data_->seeds(), nullptr));
      CGL_TRY(cpu->track({0, checked}, truth));
    }
    Json first;
    for (const std::string& device : devices_) {
      CGL_TRY_ASSIGN(const std::vector<Device*> used, choose_devices(*registry_, device, 1));
      for (Device* one : used) one->budget().forget_peak();
      measure::forget_host_peak();
      auto prepared = prepare_trackers(*registry_, device, 1, pool_, plan, field, data_->seeds(), nullptr);
      if (!prepared) {
        log_warning("{} on {}: {}", scenario.name, device, prepared.error());
        rows_.push_back(
            {{"scenario", scenario.name}, {"device", device}, {"refused", with_option_names(prepared.error())}});
        continue;
      }
      Json row = {{"scenario", scenario.name}, {"device", device}, {"seeds", data_->seeds().count()}};
      row["field_bytes"] = field.stored_bytes().size() + field.record_of_voxel.size() * sizeof(std::uint32_t);
      StreamlineBatch batch;
      CGL_TRY(prepared->trackers.front()->track({0, checked}, batch));
      row["checked_seeds"] = checked;
      row["equal_to_cpu"] = measure::same_bits(batch, truth);
      CGL_TRY(measure::measure_kernel(*prepared->trackers.front(), *data_, measures_, row));
      if (!arguments_.flag("kernels-only")) {
        CGL_TRY(measure::measure_unsorted_kernel(*prepared->trackers.front(), *data_, measures_, row));
        CGL_TRY(measure::measure_tracking(prepared->pointers(), *data_, measures_, row));
        CGL_TRY(measure::measure_files(prepared->pointers(), options, plan, *data_, measures_, pool_, first, row));
        if (first.is_null()) first = row;
      }
      std::uint64_t device_peak = 0;
      for (Device* one : used) device_peak += one->budget().peak_bytes();
      row["device_peak_bytes"] = device_peak;
      row["host_peak_bytes"] = measure::host_peak_bytes();
      rows_.push_back(std::move(row));
      context_.print_format("{}\n", line_of(rows_.back()));
    }
    return {};
  }

  static std::string line_of(const Json& row) {
    return fmt::format("{:<24} {:<12} {:>9.1f} M points/s, kernel {:>9.1f}, to a file {:.3f} s, {}",
                       row["scenario"].get<std::string>(), row["device"].get<std::string>(),
                       row.value("M_points_per_s", 0.0), row.value("kernel_M_points_per_s", 0.0),
                       row.value("file_seconds", 0.0),
                       row["equal_to_cpu"].get<bool>() ? "the CPU's bits" : "NOT the CPU's bits");
  }

  Status report() {
    Json json = measure::report_frame("track on devices");
    json.update({{"threads", pool_.threads()},
                 {"max_angle_deg", measure::max_angle_deg},
                 {"stop_threshold", measure::stop_threshold}});
    Json devices = Json::object();
    for (const Device* device : registry_->devices()) devices[device->id()] = device->description().name;
    json["devices"] = std::move(devices);
    json["typed"] = typed_;
    json["rows"] = rows_;
    if (!peers_.is_null()) json["peers"] = peers_;
    if (context_.common().json) {
      context_.print(json_text(json));
    } else {
      if (!typed_.empty()) context_.print_format("\n{}", table_of_typed());
      if (!rows_.empty()) context_.print_format("\n{}", table_of_rows());
      if (!peers_.is_null()) context_.print_format("\n{}", table_of_peers());
    }
    if (arguments_.given("out")) {
      const std::string out = arguments_.text("out");
      CGL_TRY(write_file_atomically(out, json_text(json), without_sidecar(out, context_.write_options())));
    }
    const bool all_equal = std::all_of(rows_.begin(), rows_.end(), is_equal);
    if (!all_equal) return fail(ErrorKind::device, "results of devices differ: see the table");
    return {};
  }

  static bool is_equal(const Json& row) {
    return row.contains("refused") || (row["equal_to_cpu"].get<bool>() && row.value("same_file_as_first_device", true));
  }

  [[nodiscard]] std::string table_of_typed() const {
    Table table({{"track --dg"},
                 {"device"},
                 {"file to file s", Align::right},
                 {"prepared in s", Align::right},
                 {"tracked, written in s", Align::right},
                 {"processor s", Align::right},
                 {"streamlines", Align::right},
                 {"mean mm", Align::right},
                 {"valid", Align::right},
                 {"F1", Align::right}});
    for (const Json& row : typed_) {
      const Json score = row.value("score", Json::object());
      table.add_row({row["scenario"].get<std::string>().substr(sizeof("typed")), row["device"].get<std::string>(),
                     real(row, "seconds", 3), real(row, "prepare_seconds", 3), real(row, "tracking_seconds", 3),
                     real(row, "processor_seconds", 2),
                     format_count(static_cast<std::uint64_t>(row["kept"].get<double>())),
                     real(row, "mean_length_mm", 1), real(score, "valid", 3), real(score, "f1", 3)});
    }
    return table.text(2);
  }

  [[nodiscard]] std::string table_of_rows() const {
    Table table({{"getter"},
                 {"device"},
                 {"tracking s", Align::right},
                 {"M points/s", Align::right},
                 {"M steps/s", Align::right},
                 {"kernel M points/s", Align::right},
                 {"unsorted", Align::right},
                 {"to TRX s", Align::right},
                 {"to disk s", Align::right},
                 {"copy s", Align::right},
                 {"streamlines", Align::right},
                 {"mean mm", Align::right},
                 {"median mm", Align::right},
                 {"commissural", Align::right},
                 {"F1", Align::right},
                 {"field MB", Align::right},
                 {"equal"}});
    for (const Json& row : rows_) {
      if (row.contains("refused")) continue;
      const auto count = [](const Json& of, const char* name) {
        return of.contains(name) ? format_count(of[name].get<std::uint64_t>()) : std::string();
      };
      const Json score = row.value("score", Json::object());
      table.add_row({row["scenario"].get<std::string>(), row["device"].get<std::string>(),
                     real(row, "tracking_seconds", 4), real(row, "M_points_per_s", 1), real(row, "M_steps_per_s", 1),
                     real(row, "kernel_M_points_per_s", 1), real(row, "kernel_M_points_per_s_unsorted", 1),
                     real(row, "file_seconds", 3), real(row, "disk_seconds", 3), real(row, "disk_copy_seconds", 3),
                     count(row, "streamlines"), real(row, "mean_length_mm", 2), real(row, "median_length_mm", 1),
                     count(score, "commissural"), real(score, "f1", 3), real(row, "field_bytes", 0, 1e-6),
                     is_equal(row) ? "yes" : "NO"});
    }
    return table.text(2);
  }

  [[nodiscard]] std::string table_of_peers() const {
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
    for (const auto& [name, row] : peers_.items()) {
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

  const ParsedArguments& arguments_;
  VerbContext& context_;
  ThreadPool& pool_;
  measure::BenchMeasures measures_;
  std::optional<DeviceRegistry> registry_;
  std::vector<std::string> devices_;  // as --device takes them
  std::optional<measure::BenchData> data_;
  std::vector<Json> typed_;  // the command as it is typed
  std::vector<Json> rows_;
  Json peers_;
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
          "bench track runs every direction getter on every device: `cingulum track` as it is typed, from the series "
          "to "
          "the finished file, in a process of its own; then its parts: tracking alone (seeds to points in memory), the "
          "tracking kernel by itself where the device measures it (with seeds in the order of space, as runs have "
          "them, "
          "and unsorted), a whole run to a TRX file in --folder, and one to --disk, synced, beside a plain copy of the "
          "same bytes. Each row says whether the streamlines have the bits of the CPU's and whether the file is the "
          "same as the first device's, and what memory it took. Without --dwi or --sh the phantom `brain` is tracked "
          "and scored. --peers runs DIPY, MRtrix3 and cuslines, those that are installed, on the same data and seeds.",
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
           {.name = "without", .type = ArgumentType::text, .help = "no rows whose name contains this"},
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
           {.name = "kernels-only", .type = ArgumentType::flag, .help = "nothing but the kernels: for profilers"},
           {.name = "dwi",
            .type = ArgumentType::text,
            .help = "a series instead of the phantom, its gradients beside it; needs --mask",
            .metavar = "FILE"},
           {.name = "bvec-frame",
            .type = ArgumentType::choice,
            .help = "axes of its b-vectors",
            .default_text = "fsl",
            .choices = {"fsl", "voxel", "world"}},
           {.name = "sh",
            .type = ArgumentType::text,
            .help = "a file of spherical harmonics instead, for the getters that track such",
            .metavar = "FILE"},
           {.name = "mask", .type = ArgumentType::text, .help = "mask of either", .metavar = "FILE"},
           {.name = "stop-map",
            .type = ArgumentType::text,
            .help = "of --sh; without it all voxels pass that hold a number",
            .metavar = "FILE"},
           {.name = "peers", .type = ArgumentType::flag, .help = "run other programs on the same data"},
           {.name = "peer",
            .type = ArgumentType::text,
            .help = "only peers whose name contains this, whatever --only says",
            .metavar = "NAME"},
           whole("peer-seeds", "seeds of the peers on processors, which are slow; some take fewer still", 1, 4e9,
                 "2000"),
           {.name = "peer-limit",
            .type = ArgumentType::real,
            .help = "each of them is left out, with a warning, when it takes longer",
            .metavar = "S",
            .range = {.minimum = 0, .above = true},
            .default_text = "300"},
           {.name = "python",
            .type = ArgumentType::text,
            .help = "the Python that has DIPY, nibabel or cuslines",
            .metavar = "PROGRAM",
            .default_text = "python3"},
           {.name = "folder",
            .type = ArgumentType::text,
            .help = "where files are written and removed again; a memory file system shows the program alone",
            .metavar = "FOLDER",
            .default_text = "."},
           {.name = "disk",
            .type = ArgumentType::text,
            .help = "a folder on a disk, in which files are written once more and synced",
            .metavar = "FOLDER"},
           {.name = "cache-dir",
            .type = ArgumentType::text,
            .help = "folder in which the phantom is kept",
            .metavar = "FOLDER",
            .default_text = "."},
           {.name = "out", .type = ArgumentType::text, .help = "write all figures as JSON", .metavar = "FILE"}},
      .common = {CommonOption::threads, CommonOption::force, CommonOption::json, CommonOption::progress},
      .examples = {{"cingulum bench track", "all devices on the phantom"},
                   {"cingulum bench track --devices cuda:0,cuda:0+cpu,cpu --only prob --out bench.json",
                    "a GPU, the GPU and the CPU together, the CPU"}},
      .run = run_bench,
  };
}

}  // namespace cingulum
