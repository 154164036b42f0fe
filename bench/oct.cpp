// The OCT kernels on one volume, device to device, beside what the memory allows: the bytes that a single pass must
// move at the rate of a copy on the same device, measured in the same run. Peers (SciPy on the host, CuPy on a GPU) are
// measured by peers/oct.py on the same sizes.
//   bench_oct [--out FILE.json] [--devices cpu,cuda,webgpu] [--shape Z,Y,X] [--repetitions N] [--only WORDS,...]
//             [--peers PYTHON [--peer-script FILE]]
// --only leaves out the rows whose scenario has none of the words.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <sstream>

#include "bench/program.hpp"
#include "device/registry.hpp"
#include "measure/bench_report.hpp"
#include "measure/repetitions.hpp"
#include "oct/oct_kernels.hpp"

namespace cingulum::bench {
namespace {

using Json = nlohmann::ordered_json;
using oct::DeviceVolume;
using oct::VolumeShape;

struct Options {
  std::string out;
  std::string devices = "cpu,cuda,webgpu";
  std::string peers;  // the Python that has them
  std::string peer_script = CINGULUM_BENCH_PEERS "/oct.py";
  std::string only;
  VolumeShape shape{400, 512, 512};
  int repetitions = 10;
};

class OctBench {
 public:
  OctBench(Device& device, const Options& options)
      : queue_(require(device.create_queue())),
        kernels_(require(oct::OctKernels::create(device))),
        by_events_(device.capabilities().device_timestamps),
        repetitions_(options.repetitions),
        shape_(options.shape) {
    std::stringstream words(options.only);
    for (std::string word; std::getline(words, word, ',');) only_.push_back(word);
    // Speckle over a surface: values as the kernels meet them.
    std::vector<float> voxels(shape_.voxels());
    std::uint32_t state = 1;
    for (std::uint64_t i = 0; i < voxels.size(); ++i) {
      state = state * 1664525u + 1013904223u;
      const bool tissue = i / shape_.plane() > shape_.z / 3 + i % shape_.x / 32;
      voxels[i] = (tissue ? 1.0f : 0.05f) * (0.1f + static_cast<float>(state >> 8) * 0x1p-24f);
    }
    volume_ = require(kernels_->upload(*queue_, shape_, voxels));
  }

  std::vector<measure::Row> run() {
    const std::uint64_t bytes = shape_.bytes();
    DeviceVolume copy = require(kernels_->allocate(shape_));
    const double copied = measure([&] { require(queue_->copy(*copy.buffer, 0, *volume_.buffer, 0, bytes)); }).median;
    rate_ = 2.0 * static_cast<double>(bytes) / copied;
    rows_.push_back({"copy on the device", "ms", milliseconds(copied), "", 0});

    DeviceVolume third = require(kernels_->allocate({(shape_.z + 2) / 3, (shape_.y + 2) / 3, (shape_.x + 2) / 3}));
    add("resize, a third, anti-aliased", bytes + third.shape.bytes(),
        [&] { require(kernels_->resize(*queue_, volume_, third, {})); });
    add("Gaussian, sigma 1 along each axis", 2 * bytes, [&] {
      require(kernels_->filter_gaussian(*queue_, volume_, copy, {1, 1, 1}, {0, 0, 0}, {}));
    });
    DeviceVolume depths;
    add("tissue interface, log, box 15, sigma 2", bytes,
        [&] { depths = require(kernels_->find_interface(*queue_, volume_, {})); });
    DeviceVolume flat = require(kernels_->allocate({1, shape_.y, shape_.x}));
    add("mean projection", bytes, [&] { require(kernels_->project(*queue_, volume_, flat, oct::Projection::mean)); });
    std::vector<float> by(shape_.plane());
    for (std::uint64_t i = 0; i < by.size(); ++i) {
      const double y = static_cast<double>(i / shape_.x) / shape_.y - 0.5;
      const double x = static_cast<double>(i % shape_.x) / shape_.x - 0.5;
      by[i] = static_cast<float>(24.0 * (y * y + x * x));
    }
    const DeviceVolume map = require(kernels_->upload(*queue_, {1, shape_.y, shape_.x}, by));
    add("roll of each A-line", 2 * bytes, [&] { require(kernels_->roll_lines(*queue_, volume_, map, copy, {})); });
    // Overlaps of 20 to 40 planes: the middle half of 40 planes of both.
    const std::int64_t deepest = std::min<std::int64_t>(40, shape_.z);
    add("overlap along z, 21 lags of up to 40 planes",
        2 * static_cast<std::uint64_t>(deepest) * shape_.plane() / 4 * sizeof(float), [&] {
          const auto found =
              require(kernels_->find_z_overlap(*queue_, volume_, volume_, {deepest - 10, deepest - 20, deepest}));
          static_cast<void>(found);
        });
    const std::array<std::array<double, 4>, 3> turn = {{{1, 0.02, 0, -3}, {-0.02, 1, 0.05, 2}, {0, -0.05, 1, 4}}};
    add("affine transform, order 1", 2 * bytes,
        [&] { require(kernels_->transform_affine(*queue_, volume_, copy, turn, {})); });
    if (is_wanted(map_scenario)) places(copy, turn);
    return std::move(rows_);
  }

 private:
  static constexpr std::string_view map_scenario = "map of coordinates, order 1";

  [[nodiscard]] bool is_wanted(std::string_view scenario) const {
    return only_.empty() || std::any_of(only_.begin(), only_.end(), [&](const std::string& word) {
             return scenario.find(word) != std::string_view::npos;
           });
  }

  void places(DeviceVolume& copy, const std::array<std::array<double, 4>, 3>& turn) {
    const VolumeShape triple{3 * shape_.z, shape_.y, shape_.x};
    std::vector<float> all(triple.voxels());
    for (std::uint64_t i = 0; i < shape_.voxels(); ++i) {
      const double at[3] = {static_cast<double>(i / shape_.plane()), static_cast<double>(i / shape_.x % shape_.y),
                            static_cast<double>(i % shape_.x)};
      for (std::uint64_t axis = 0; axis < 3; ++axis) {
        const auto& row = turn[axis];
        all[axis * shape_.voxels() + i] = static_cast<float>(row[0] * at[0] + row[1] * at[1] + row[2] * at[2] + row[3]);
      }
    }
    const DeviceVolume coordinates = require(kernels_->upload(*queue_, triple, all));
    add(map_scenario, 5 * shape_.bytes(),
        [&] { require(kernels_->map_coordinates(*queue_, volume_, coordinates, copy, {})); });
  }

  static measure::Spread milliseconds(double seconds) { return {seconds * 1e3, seconds * 1e3, seconds * 1e3, 1}; }

  template <class Body>
  void add(std::string_view scenario, std::uint64_t least_bytes, Body&& body) {
    if (!is_wanted(scenario)) return;
    const measure::Spread seconds = measure(body);
    rows_.push_back({std::string(scenario),
                     "ms",
                     {seconds.median * 1e3, seconds.low * 1e3, seconds.high * 1e3, seconds.repetitions},
                     "one pass at the rate of a copy",
                     static_cast<double>(least_bytes) / rate_ * 1e3});
    fmt::print("{}\n", to_text(rows_.back()));
  }

  template <class Body>
  measure::Spread measure(Body&& body) {
    std::vector<double> seconds;
    for (int i = -2; i < repetitions_; ++i) {
      const auto start = std::chrono::steady_clock::now();
      const auto before = by_events_ ? require(queue_->record()) : nullptr;
      body();
      const auto after = by_events_ ? require(queue_->record()) : nullptr;
      require(queue_->synchronise());
      if (i < 0) continue;
      if (by_events_) require(after->wait());
      seconds.push_back(by_events_ ? require(after->milliseconds_since(*before)) * 1e-3 : seconds_since(start));
    }
    return measure::spread_of(std::move(seconds));
  }

  std::unique_ptr<Queue> queue_;
  std::unique_ptr<oct::OctKernels> kernels_;
  bool by_events_;
  int repetitions_;
  VolumeShape shape_;
  DeviceVolume volume_;
  double rate_ = 0;
  std::vector<std::string> only_;
  std::vector<measure::Row> rows_;
};

Options parse(int count, char** words) {
  Options options;
  const auto shape = [&](const char* text) {
    return std::sscanf(text, "%u,%u,%u", &options.shape.z, &options.shape.y, &options.shape.x) == 3;
  };
  ProgramOptions()
      .add("--out", "FILE.json", options.out)
      .add("--devices", "LIST", options.devices)
      .add_with("--shape", "Z,Y,X", shape)
      .add("--repetitions", "N", options.repetitions, 1)
      .add("--only", "WORDS,...", options.only)
      .add("--peers", "PYTHON", options.peers)
      .add("--peer-script", "FILE", options.peer_script)
      .read(count, words);
  return options;
}

// The peers of one device as they print them, a line of JSON each, with how many times longer they take than our row.
Json peers_of(const Options& options, Backend backend, const std::vector<measure::Row>& ours) {
  Json rows = Json::array();
  if (options.peers.empty() || backend == Backend::webgpu) return rows;
  const measure::ScratchFolder folder = scratch_folder();
  const auto output = folder.path() / "peers";
  const VolumeShape& s = options.shape;
  const measure::ChildRun child = measure::run_child(
      {options.peers, options.peer_script, backend == Backend::cuda ? "cupy" : "scipy", std::to_string(s.z),
       std::to_string(s.y), std::to_string(s.x), std::to_string(options.repetitions), options.only},
      output);
  if (!child.succeeded) return rows;
  std::ifstream file(output);
  for (std::string line; std::getline(file, line);) {
    Json peer = Json::parse(line);
    for (const measure::Row& row : ours) {
      if (row.scenario != peer["scenario"].get<std::string>()) continue;
      peer["times_ours"] = peer["median"].get<double>() / row.value.median;
      fmt::print("  {}: {} ms by {}, {:.1f} times ours\n", row.scenario, peer["median"].dump(),
                 peer["peer"].get<std::string>(), peer["times_ours"].get<double>());
    }
    rows.push_back(std::move(peer));
  }
  return rows;
}

int run(const Options& options) {
  const Settings settings = require(Settings::from_environment());
  ProbeOptions probe = require(ProbeOptions::from_settings(settings));
  probe.kernel_cache_dir.reset();
  const DeviceRegistry registry = require(DeviceRegistry::probe(probe));
  Json report = {{"shape", {options.shape.z, options.shape.y, options.shape.x}}, {"devices", Json::array()}};
  std::stringstream names(options.devices);
  for (std::string name; std::getline(names, name, ',');) {
    const auto found = registry.select_one(name);
    if (!found) {
      fmt::print("no {}: {}\n", name, found.error().message());
      continue;
    }
    Device& device = **found;
    fmt::print("{}: {} ({})\n", device.id(), device.description().name, device.description().driver);
    Json rows = Json::array();
    const std::vector<measure::Row> ours = OctBench(device, options).run();
    for (const measure::Row& row : ours) rows.push_back(to_json(row));
    report["devices"].push_back({{"id", device.id()},
                                 {"name", device.description().name},
                                 {"driver", device.description().driver},
                                 {"rows", rows},
                                 {"peers", peers_of(options, device.description().backend, ours)}});
  }
  write_report(options.out, "oct", report);
  return 0;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  return cingulum::bench::run(cingulum::bench::parse(count, words));
}
