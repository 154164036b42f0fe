// The device seam beside the bare machine: uploads, downloads and copies in GB/s, launches and events in microseconds,
// on every device. Ceilings are measured in the same run: on CUDA the runtime's own calls and a copy kernel, elsewhere
// a memcpy on one core.
//   bench_device [--out FILE.json] [--bytes N] [--repetitions N]
#include <cstring>
#include <span>

#include "bench/device_ceiling.hpp"
#include "bench/program.hpp"
#include "device/registry.hpp"
#include "measure/bench_report.hpp"
#include "measure/repetitions.hpp"

namespace cingulum::bench {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  std::string out;
  std::uint64_t bytes = 0;  // 0: 1 GiB on a GPU, 64 MiB elsewhere
  int repetitions = 20;
};

measure::Spread as_microseconds(const measure::Spread& seconds) {
  return {seconds.median * 1e6, seconds.low * 1e6, seconds.high * 1e6, seconds.repetitions};
}

double median_rate(const std::vector<double>& seconds, std::uint64_t bytes) {
  return seconds.empty() ? 0 : measure::as_rate(measure::spread_of(seconds), bytes).median;
}
double median_microseconds(const std::vector<double>& seconds) {
  return seconds.empty() ? 0 : measure::spread_of(seconds).median * 1e6;
}

void empty_native(const BlockContext&) {}

KernelSource empty_source(Backend backend) {
  KernelSource source;
  source.name = "nothing";
  switch (backend) {
    case Backend::cuda:
      source.language = KernelLanguage::cuda_cpp;
      source.text = "extern \"C\" __global__ void nothing() {}";
      break;
    case Backend::webgpu:
      source.language = KernelLanguage::wgsl;
      source.text = "@compute @workgroup_size(32) fn nothing() {}";
      break;
    case Backend::cpu: source.native = empty_native;
  }
  return source;
}

class DeviceBench {
 public:
  DeviceBench(Device& device, const Options& options)
      : device_(device),
        cuda_(device.description().backend == Backend::cuda),
        bytes_(options.bytes != 0 ? options.bytes
                                  : (device.description().backend == Backend::cpu || device.capabilities().software
                                         ? std::uint64_t{64} << 20
                                         : std::uint64_t{1} << 30)),
        repetitions_(options.repetitions),
        queue_(require(device.create_queue())) {}

  std::vector<measure::Row> run() {
    memcpy_rate_ = measure::as_rate(measure_memcpy(), bytes_).median;
    transfers();
    launches();
    return std::move(rows_);
  }

 private:
  measure::Spread measure_memcpy() {
    std::vector<std::byte> from(bytes_, std::byte{1}), to(bytes_);
    return measure::measure_seconds(2, repetitions_, [&] { std::memcpy(to.data(), from.data(), bytes_); });
  }

  // Times by events on the device where it has them (transfers only), else by the host's clock.
  template <class Body>
  measure::Spread measure(Body&& body) {
    if (!cuda_) {
      return measure::measure_seconds(2, repetitions_, [&] {
        body();
        require(queue_->synchronise());
      });
    }
    std::vector<double> seconds;
    for (int i = -3; i < repetitions_; ++i) {
      const auto start = require(queue_->record());
      body();
      const auto end = require(queue_->record());
      require(end->wait());
      if (i >= 0) seconds.push_back(require(end->milliseconds_since(*start)) * 1e-3);
    }
    return measure::spread_of(std::move(seconds));
  }

  void transfers() {
    const HostMemoryKind kind =
        device_.capabilities().pinned_host_memory ? HostMemoryKind::pinned : HostMemoryKind::pageable;
    const auto host = require(device_.allocate_host(bytes_, kind));
    std::memset(host->bytes().data(), 1, bytes_);
    const auto a = require(device_.allocate(bytes_));
    const auto b = require(device_.allocate(bytes_));
    const std::string memory = std::string(host_memory_kind_name(kind));
    // `passes` counts a memcpy as reading and writing where the row does so too.
    const auto ceiling = [&](const char* name, double raw, double passes = 1) {
      return cuda_ ? std::pair{std::string(name), raw}
                   : std::pair{std::string("memcpy on one core"), passes * memcpy_rate_};
    };
    const auto add = [&](std::string scenario, const measure::Spread& seconds, std::uint64_t counted,
                         std::pair<std::string, double> top) {
      rows_.push_back(
          {std::move(scenario), "GB/s", measure::as_rate(seconds, counted), std::move(top.first), top.second});
    };
    add("upload, " + memory, measure([&] { require(queue_->upload(*a, 0, host->bytes())); }), bytes_,
        ceiling("cudaMemcpyAsync", median_rate(raw_cuda(raw_cuda_upload), bytes_)));
    add("download, " + memory, measure([&] { require(queue_->download(host->bytes(), *a, 0)); }), bytes_,
        ceiling("cudaMemcpyAsync", median_rate(raw_cuda(raw_cuda_download), bytes_)));
    // A copy reads and writes: both count.
    const measure::Spread copied = measure([&] { require(queue_->copy(*b, 0, *a, 0, bytes_)); });
    // A core's memcpy says nothing about the memory of a GPU.
    const bool on_host = device_.capabilities().shares_host_memory || device_.capabilities().software;
    add("copy on the device, read + written", copied, 2 * bytes_,
        cuda_ || on_host
            ? ceiling("copy kernel, 16 bytes a thread", median_rate(raw_cuda(raw_cuda_copy_kernel), 2 * bytes_), 2)
            : std::pair{std::string(), 0.0});
    if (cuda_) {
      add("copy on the device, read + written", copied, 2 * bytes_,
          {"cudaMemcpyAsync", median_rate(raw_cuda(raw_cuda_copy), 2 * bytes_)});
    }
    add("fill", measure([&] { require(queue_->fill(*b, 0, bytes_, std::byte{7})); }), bytes_, {"", 0});
  }

  std::vector<double> raw_cuda(std::vector<double> (*measure_raw)(std::uint64_t, int)) const {
    return cuda_ ? measure_raw(bytes_, repetitions_) : std::vector<double>{};
  }

  void launches() {
    constexpr int many = 500;
    const auto made = device_.compile(empty_source(device_.description().backend));
    if (!made) {
      fmt::print("  no kernel: {}\n", made.error().message());
      return;
    }
    Kernel& kernel = **made;
    const LaunchShape shape{{1, 1, 1}, {32, 1, 1}, 0};
    const auto add = [&](const char* scenario, const measure::Spread& seconds, const char* name,
                         const std::vector<double>& raw) {
      rows_.push_back({scenario, "us", as_microseconds(seconds), name, median_microseconds(raw)});
    };
    std::vector<double> call;
    for (int i = -10; i < many; ++i) {
      const measure::Spread one = measure::measure_seconds(0, 1, [&] { require(queue_->launch(kernel, shape, {})); });
      require(queue_->synchronise());
      if (i >= 0) call.push_back(one.median);
    }
    add("launch, the call alone", measure::spread_of(call), "<<<>>>",
        cuda_ ? raw_cuda_empty_launch_call(many) : std::vector<double>{});
    add("launch and wait",
        measure::measure_seconds(10, many,
                                 [&] {
                                   require(queue_->launch(kernel, shape, {}));
                                   require(queue_->synchronise());
                                 }),
        "<<<>>> and cudaStreamSynchronize", cuda_ ? raw_cuda_empty_launch_and_wait(many) : std::vector<double>{});
    std::unique_ptr<Event> event;
    std::vector<double> record;
    for (int i = -10; i < many; ++i) {
      const measure::Spread one = measure::measure_seconds(0, 1, [&] { event = require(queue_->record()); });
      require(event->wait());
      event.reset();
      if (i >= 0) record.push_back(one.median);
    }
    add("make and record an event", measure::spread_of(record), "cudaEventCreate and cudaEventRecord",
        cuda_ ? raw_cuda_event_record(many) : std::vector<double>{});
  }

  Device& device_;
  bool cuda_;
  std::uint64_t bytes_;
  int repetitions_;
  std::unique_ptr<Queue> queue_;
  double memcpy_rate_ = 0;
  std::vector<measure::Row> rows_;
};

Options parse(int count, char** words) {
  Options options;
  ProgramOptions()
      .add("--out", "FILE.json", options.out)
      .add("--bytes", "N", options.bytes)
      .add("--repetitions", "N", options.repetitions, 3)
      .read(count, words);
  return options;
}

int run(const Options& options) {
  const Settings settings = require(Settings::from_environment());
  ProbeOptions probe = require(ProbeOptions::from_settings(settings));
  probe.kernel_cache_dir.reset();
  const DeviceRegistry registry = require(DeviceRegistry::probe(probe));
  Json report = {{"devices", Json::array()}};
  for (Device* device : registry.devices()) {
    fmt::print("{}: {} ({})\n", device->id(), device->description().name, device->description().driver);
    Json rows = Json::array();
    for (const measure::Row& row : DeviceBench(*device, options).run()) {
      fmt::print("{}\n", to_text(row));
      rows.push_back(to_json(row));
    }
    report["devices"].push_back({{"id", device->id()},
                                 {"name", device->description().name},
                                 {"driver", device->description().driver},
                                 {"rows", rows}});
  }
  for (const BackendReport& backend : registry.backends()) {
    if (backend.devices.empty()) fmt::print("no {}: {}\n", backend_name(backend.backend), backend.absent_reason);
  }
  write_report(options.out, "device", report);
  return 0;
}

}  // namespace
}  // namespace cingulum::bench

int main(int count, char** words) {
  return cingulum::bench::run(cingulum::bench::parse(count, words));
}
