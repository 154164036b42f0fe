#include "measure/track_bench.hpp"

#include <algorithm>
#include <utility>

#include "base/log.hpp"
#include "base/option_name.hpp"
#include "base/quantity.hpp"
#include "measure/bench_report.hpp"
#include "measure/child_program.hpp"
#include "measure/host_peak.hpp"
#include "measure/typed_runs.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum::measure {
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

constexpr Getter typed_getters[] = {Getter::ptt,  Getter::prob,    Getter::det,
                                    Getter::boot, Getter::closest, Getter::tensor};

class TrackBench {
 public:
  TrackBench(const TrackBenchOptions& options, DeviceRegistry& registry, RunMachine& machine, ThreadPool& pool)
      : options_(options), registry_(registry), machine_(machine), pool_(pool) {}

  Status run() {
    CGL_TRY(name_devices());
    CGL_TRY_ASSIGN(data_, BenchData::load(options_.source, options_.seeds, pool_, machine_.write_options(),
                                          machine_.progress_options()));
    if (options_.source.sh.empty() && !options_.kernels_only) {
      for (const Getter getter : typed_getters) CGL_TRY(run_typed(getter));
    }
    for (const BenchScenario& scenario : bench_scenarios()) {
      if (!is_wanted(scenario.name) || !data_->has(scenario)) continue;
      CGL_TRY_ASSIGN(const Field* const field, data_->field_of(scenario, pool_, machine_.progress_options()));
      CGL_TRY(add_context(run_scenario(scenario, *field), "{}", scenario.name));
    }
    if (options_.peers) CGL_TRY(run_peers());
    return {};
  }

  [[nodiscard]] Json report() const {
    Json json = report_frame("track on devices");
    json.update({{"threads", pool_.threads()}, {"max_angle_deg", max_angle_deg}, {"stop_threshold", stop_threshold}});
    Json devices = Json::object();
    for (const Device* device : registry_.devices()) devices[device->id()] = device->description().name;
    json["devices"] = std::move(devices);
    json["typed"] = typed_;
    json["rows"] = rows_;
    if (!peers_.is_null()) json["peers"] = peers_;
    return json;
  }

 private:
  [[nodiscard]] bool is_wanted(std::string_view name) const {
    return name.find(options_.only) != std::string_view::npos &&
           (options_.without.empty() || name.find(options_.without) == std::string_view::npos);
  }

  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) const {
    if (options_.on_line) options_.on_line(fmt::format(text, std::forward<Args>(args)...));
  }

  Status name_devices() {
    if (options_.devices != "all") {
      // Devices of a mix are joined by +, since the comma separates lines of the table.
      for (const std::string_view name : split_at_commas(options_.devices)) {
        std::string mix(name);
        std::replace(mix.begin(), mix.end(), '+', ',');
        CGL_TRY(choose_devices(registry_, mix, 1));
        devices_.push_back(std::move(mix));
      }
      return {};
    }
    for (const Device* device : registry_.devices()) devices_.push_back(device->id());
    return {};
  }

  Status run_typed(Getter getter) {
    if (!is_wanted(typed_run_name(getter))) return {};
    for (const std::string& device : devices_) {
      CGL_TRY_ASSIGN(Json row,
                     measure_typed_run(*data_, getter, device, options_.bvec_frame, options_.measures, pool_));
      say("{:<24} {:<12} {:>9.3f} s from series to TRX ({:.3f} of tracking and writing), {} "
          "streamlines\n",
          row["scenario"].get<std::string>(), device, row["seconds"].get<double>(),
          row["tracking_seconds"].get<double>(), format_count(static_cast<std::uint64_t>(row["kept"].get<double>())));
      typed_.push_back(std::move(row));
    }
    return {};
  }

  Status run_scenario(const BenchScenario& scenario, const Field& field) {
    const TrackingOptions options = bench_tracking_options(scenario);
    CGL_TRY_ASSIGN(const TrackingPlan plan, make_tracking_plan(options, data_->geometry()));
    const auto checked = std::min(options_.check_seeds, data_->seeds().count());
    StreamlineBatch truth;
    {
      const std::unique_ptr<Tracker> cpu = make_cpu_tracker(pool_);
      CGL_TRY(cpu->prepare(plan, field, data_->seeds(), nullptr));
      CGL_TRY(cpu->track({0, checked}, truth));
    }
    Json first;
    for (const std::string& device : devices_) {
      CGL_TRY_ASSIGN(const std::vector<Device*> used, choose_devices(registry_, device, 1));
      for (Device* one : used) one->budget().forget_peak();
      forget_host_peak();
      auto prepared = prepare_trackers(registry_, device, 1, pool_, plan, field, data_->seeds(), nullptr);
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
      row["equal_to_cpu"] = same_bits(batch, truth);
      CGL_TRY(measure_kernel(*prepared->trackers.front(), *data_, options_.measures, row));
      if (!options_.kernels_only) {
        CGL_TRY(measure_unsorted_kernel(*prepared->trackers.front(), *data_, options_.measures, row));
        CGL_TRY(measure_tracking(prepared->pointers(), *data_, options_.measures, row));
        CGL_TRY(measure_files(prepared->pointers(), options, plan, *data_, options_.measures, pool_, first, row));
        if (first.is_null()) first = row;
      }
      std::uint64_t device_peak = 0;
      for (Device* one : used) device_peak += one->budget().peak_bytes();
      row["device_peak_bytes"] = device_peak;
      row["host_peak_bytes"] = host_peak_bytes();
      rows_.push_back(std::move(row));
      say("{}\n", line_of(rows_.back()));
    }
    return {};
  }

  Status run_peers() {
    peers_ = Json::object();
    if (data_->dwi().empty()) {
      log_warning("no peers: they need a series, and a file of spherical harmonics was given");
      return {};
    }
    CGL_TRY_ASSIGN(const ScratchFolder folder, ScratchFolder::create(fs::temp_directory_path()));
    CGL_TRY(fill_peer_folder(folder.path(), *data_));
    PeerOptions peers = *options_.peers;
    peers.on_row = [&](const std::string& name, const Json& row) {
      say("{:<37} {:>9.3f} s, {} seeds, {} streamlines\n", name, row.value("wall_s", 0.0), row.value("seeds", 0),
          row.value("kept", 0));
    };
    log_info("running peers on {} seeds, those on a GPU on {}", peers.seeds, data_->seeds().count());
    CGL_TRY_ASSIGN(peers_, run_tracking_peers(folder.path(), *data_, peers, pool_));
    for (auto& [name, row] : peers_.items()) row.erase("file");  // it is gone with the folder
    return {};
  }

  static std::string line_of(const Json& row) {
    return fmt::format("{:<24} {:<12} {:>9.1f} M points/s, kernel {:>9.1f}, to a file {:.3f} s, {}",
                       row["scenario"].get<std::string>(), row["device"].get<std::string>(),
                       row.value("M_points_per_s", 0.0), row.value("kernel_M_points_per_s", 0.0),
                       row.value("file_seconds", 0.0),
                       row["equal_to_cpu"].get<bool>() ? "the CPU's bits" : "NOT the CPU's bits");
  }

  const TrackBenchOptions& options_;
  DeviceRegistry& registry_;
  RunMachine& machine_;
  ThreadPool& pool_;
  std::vector<std::string> devices_;  // as `device` takes them
  std::optional<BenchData> data_;
  std::vector<Json> typed_;  // the command as it is typed
  std::vector<Json> rows_;
  Json peers_;
};

}  // namespace

Result<Json> bench_tracking(const TrackBenchOptions& options, RunMachine& machine) {
  CGL_TRY_ASSIGN(DeviceRegistry registry, open_devices(machine.settings()));
  CGL_TRY_ASSIGN(ThreadPool* const pool, machine.pool());
  TrackBench bench(options, registry, machine, *pool);
  CGL_TRY(bench.run());
  return bench.report();
}

bool is_equal_row(const Json& row) {
  return row.contains("refused") || (row["equal_to_cpu"].get<bool>() && row.value("same_file_as_first_device", true));
}

}  // namespace cingulum::measure
