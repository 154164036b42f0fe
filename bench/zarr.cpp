// Regions of Zarr arrays: raw, zstd and blosc in shards, to host memory and to every device, from the device to files,
// and regions of 64 KiB; cold and warm, with ceilings and peers of the same run. Rows are printed as they come.
//   bench_zarr [--out FILE.json] [--folder FOLDER] [--mebibytes N] [--repetitions N] [--threads N] [--device NAME]
//              [--peer PYTHON] [--only raw|unsharded|small|zstd|blosc]
#include <chrono>
#include <cstdlib>

#include "bench/program.hpp"
#include "device/registry.hpp"
#include "measure/zarr_rows.hpp"

namespace cingulum::bench {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

struct Options {
  std::string out, device = "auto", peer, only;
  fs::path folder = fs::temp_directory_path();
  std::uint64_t mebibytes = 512;
  int repetitions = 5;
  int threads = 0;
};

struct Scenario {
  const char* name;
  const char* codec;
  bool sharded;
  bool checksum;
  zarr::Shape chunk = {64, 64, 64};
};
// Plain unsharded chunks are what the GPU readers of others take.
const Scenario scenarios[] = {{"raw", "none", true, true},
                              {"unsharded", "none", false, false},
                              {"small", "none", true, true, {16, 32, 32}},  // chunks of 64 KiB
                              {"zstd", "zstd:1", true, true},
                              {"blosc", "blosc-lz4", true, true}};

void run_scenario(const Scenario& scenario, const Options& options, Device& device, ThreadPool& pool,
                  const zarr::EngineSettings& settings, Json& report) {
  const auto scratch = scratch_folder(options.folder);
  const fs::path path = scratch.path() / fmt::format("{}.zarr", scenario.name);
  zarr::NewArray wanted;
  wanted.shape = {options.mebibytes, 512, 512};
  wanted.type = element_type_of<float>();
  wanted.chunk_shape = scenario.chunk;
  wanted.sharded = scenario.sharded;
  if (scenario.sharded) wanted.shard_shape = {64, 512, 512};
  wanted.codec = require(zarr::parse_codec_choice(scenario.codec));
  wanted.codec->checksum = scenario.checksum;
  wanted.fill_value = 0.0;
  fmt::print("{}: {} MiB in {}\n", scenario.name, options.mebibytes, path.string());
  require(measure::generate_zarr(path, wanted, pool));
  const auto store = require(zarr::Store::open(path));
  const zarr::Array array = require(zarr::Array::open(store, ""));
  Json rows = Json::array();
  measure::ZarrBench bench{pool};
  bench.settings = settings;
  bench.repetitions = options.repetitions;
  bench.on_row = [&](const measure::Row& row) {
    fmt::print("{}\n", to_text(row));
    std::fflush(stdout);
    rows.push_back(to_json(row));
  };
  require(measure::measure_zarr_on_host(array, bench));
  const bool on_gpu = device.description().backend == Backend::cuda;
  require(measure::measure_zarr_peers(array, options.peer, on_gpu && !scenario.sharded, bench));
  if (!device.capabilities().shares_host_memory) {
    require(measure::measure_zarr_to_device(array, device, bench));
    require(measure::measure_zarr_from_device(array, device, options.folder, bench));
  }
  report["scenarios"].push_back({{"name", scenario.name}, {"mebibytes", options.mebibytes}, {"rows", rows}});
}

int run(const Options& options) {
  const Settings settings = require(Settings::from_environment());
  const DeviceRegistry registry = require(open_devices(settings));
  Device& device = *require(registry.select_one(options.device));
  const int threads = options.threads > 0 ? options.threads : require(settings.threads());
  const auto pool = require(ThreadPool::create(threads));
  const auto engines = require(zarr::EngineSettings::from_settings(settings));
  fmt::print("{}: {}, {} threads\n", device.id(), device.description().name, threads);
  Json report = {{"device", device.id()},
                 {"device_name", device.description().name},
                 {"threads", threads},
                 {"repetitions", options.repetitions},
                 {"scenarios", Json::array()}};
  for (const Scenario& scenario : scenarios) {
    if (!options.only.empty() && options.only != scenario.name) continue;
    run_scenario(scenario, options, device, *pool, engines, report);
    // Written after each scenario, so that a run that is ended early keeps what it has.
    write_report(options.out, "zarr", report);
  }
  return 0;
}

Options parse(int count, char** words) {
  Options options;
  ProgramOptions()
      .add("--out", "FILE.json", options.out)
      .add("--folder", "DIR", options.folder)
      .add("--device", "NAME", options.device)
      .add("--peer", "PYTHON", options.peer)
      .add("--only", "SCENARIO", options.only)
      .add("--mebibytes", "N", options.mebibytes, std::uint64_t{64})
      .add("--repetitions", "N", options.repetitions, 3)
      .add("--threads", "N", options.threads)
      .read(count, words);
  return options;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  return cingulum::bench::run(cingulum::bench::parse(count, words));
}
