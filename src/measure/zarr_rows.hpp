// What benches of Zarr measure: a region to host memory, to a device by every engine, small regions, and from a device
// to files, each beside a ceiling of the same run. Called by `cingulum zarr bench` and bench_zarr; each row is
// handed to ZarrBench::on_row as it comes. What is read is not checked here: tests do that.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "device/device.hpp"
#include "measure/bench_report.hpp"
#include "zarr/array.hpp"
#include "zarr/direct/device_region.hpp"
#include "zarr/direct/engine.hpp"
#include "zarr/new_array.hpp"

namespace cingulum::measure {

// An array of noise over a slow wave, as speckle is: nearly incompressible. Nothing may be at `path`.
[[nodiscard]] Status generate_zarr(const std::filesystem::path& path, const zarr::NewArray& wanted, ThreadPool& pool);

struct ZarrBench {
  ThreadPool& pool;
  zarr::EngineSettings settings = {};
  std::vector<zarr::Engine> engines = {};  // empty: all that are possible
  std::int64_t repetitions = 5;
  bool cold = true;            // once more with the files dropped from the page cache before each repetition
  std::uint64_t small = 2000;  // regions of 64 KiB at random places; 0: none
  CancelToken cancel = {};
  std::function<void(const Row&)> on_row = {};
};

// The whole array to host memory and small regions of it.
[[nodiscard]] Result<std::vector<Row>> measure_zarr_on_host(const zarr::Array& array, const ZarrBench& bench);
// The array to the device. Rates of engines are kept for `auto` to choose by (zarr::keep_rates).
[[nodiscard]] Result<std::vector<Row>> measure_zarr_to_device(const zarr::Array& array, Device& device,
                                                              const ZarrBench& bench);
// The array from the device to new hierarchies below `folder`, and as many bytes written plainly by as many threads.
// Nothing waits for the disk in either.
[[nodiscard]] Result<std::vector<Row>> measure_zarr_from_device(const zarr::Array& array, Device& device,
                                                                const std::filesystem::path& folder,
                                                                const ZarrBench& bench);

// The n-th region of about 64 KiB: the same for us and for peers.
[[nodiscard]] zarr::Region small_region(const zarr::ArrayMetadata& metadata, std::uint64_t n);

// Peers in Python on the same array (bench/peers/zarr.py): rows whose ceiling is `beside`, ours of the same scenario.
// Empty where `python` is. A peer that cannot be run is logged and left out.
[[nodiscard]] Result<std::vector<Row>> measure_zarr_peers(const zarr::Array& array, const std::string& python,
                                                          bool on_gpu, const ZarrBench& bench);

}  // namespace cingulum::measure
