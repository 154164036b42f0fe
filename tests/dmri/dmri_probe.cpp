// Runs one function of dmri on input from files and writes what it gives as raw numbers, for the Python tests that
// compare with DIPY and SciPy, and for measurements.
//   dmri_probe sphere NAME_OR_FILE [full]
//     text: "half|full n edges", then directions, then edges
//   dmri_probe tensor SIGNALS VOLUMES GRADIENTS ols|wls MIN_SIGNAL THREADS OUT
//     SIGNALS: float32, a record of VOLUMES per voxel; GRADIENTS: text, "x y z b" per line. OUT: float32 arrays one
//     after the other: tensor, eigenvalues, v1, fa, md, rd, s0, colour. Prints the seconds of the fit.
//   dmri_probe mask VOLUME NX NY NZ RADIUS PASSES DILATIONS FINALISE THREADS OUT
//     VOLUME: float64, x fastest; OUT: bytes. Prints seconds and threshold.
//   dmri_probe peaks SPHERE VALUES THRESHOLD SEPARATION_DEG MAX OUT
//     VALUES: float32, a record per voxel; OUT: int32, MAX vertices per voxel, -1 where there are fewer.
//   dmri_probe gradients SERIES BVAL BVEC MASK FRAME THREADS
//     text: seconds, verdict, better frame or -, voxels, blocks; then a line per reading; then the message
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/elapsed.hpp"
#include "base/read_file.hpp"
#include "base/thread_pool.hpp"
#include "dmri/models/peaks.hpp"
#include "dmri/models/tensor.hpp"
#include "dmri/series/dwi_signals.hpp"
#include "dmri/series/gradient_check.hpp"
#include "dmri/series/median_otsu.hpp"
#include "dmri/sphere/sphere.hpp"
#include "formats/gradient_table.hpp"
#include "formats/nifti.hpp"

namespace cingulum {
namespace {

using Arguments = std::vector<std::string>;

template <class Number>
Result<std::vector<Number>> read_numbers(const std::string& path) {
  CGL_TRY_ASSIGN(const auto bytes, read_file(path, std::uint64_t{8} << 30U));
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

template <class Numbers>
void append_numbers(std::ofstream& file, const Numbers& numbers) {
  file.write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(numbers[0])));
}

struct Gradients {
  std::vector<double> b_values;
  std::vector<numerics::Vec3d> directions;
};

Gradients read_gradients(const std::string& path) {
  Gradients gradients;
  std::ifstream file(path);
  double x = 0, y = 0, z = 0, b = 0;
  while (file >> x >> y >> z >> b) {
    gradients.directions.push_back({x, y, z});
    gradients.b_values.push_back(b);
  }
  return gradients;
}

Status probe_sphere(const Arguments& arguments) {
  const bool full = arguments.size() > 1 && arguments[1] == "full";
  CGL_TRY_ASSIGN(const Sphere sphere, full ? read_sphere(arguments[0], true) : sphere_by_name_or_file(arguments[0]));
  fmt::print("{} {} {}\n", sphere.is_hemisphere ? "half" : "full", sphere.size(), sphere.edges.size());
  for (const auto& v : sphere.directions) fmt::print("{} {} {}\n", v.x, v.y, v.z);
  for (const auto& [a, b] : sphere.edges) fmt::print("{} {}\n", a, b);
  return {};
}

Result<DwiSignals> read_signals(const std::string& path, std::size_t volumes) {
  DwiSignals signals;
  signals.volumes = volumes;
  CGL_TRY_ASSIGN(const auto numbers, read_numbers<float>(path));
  signals.values.assign(numbers.begin(), numbers.end());
  for (std::size_t i = 0; i < signals.values.size() / volumes; ++i) {
    signals.voxels.push_back(static_cast<std::uint32_t>(i));
  }
  return signals;
}

Status probe_tensor(const Arguments& arguments) {
  CGL_TRY_ASSIGN(const DwiSignals signals, read_signals(arguments[0], std::stoul(arguments[1])));
  const Gradients gradients = read_gradients(arguments[2]);
  TensorFitOptions options;
  options.method = arguments[3] == "ols" ? TensorMethod::ols : TensorMethod::wls;
  options.min_signal = std::stod(arguments[4]);
  CGL_TRY_ASSIGN(const auto pool, ThreadPool::create(std::stoi(arguments[5])));
  const auto start = std::chrono::steady_clock::now();
  CGL_TRY_ASSIGN(const TensorFit fit, fit_tensors(signals, gradients.b_values, gradients.directions, options, *pool));
  fmt::print("{} {} {}\n", seconds_since(start), fit.least_diffusivity, fit.unsolvable);
  std::ofstream out(arguments[6], std::ios::binary);
  for (const MappedVector<float>* map : {&fit.tensor, &fit.eigenvalues, &fit.v1, &fit.fa, &fit.md, &fit.rd, &fit.s0}) {
    append_numbers(out, *map);
  }
  append_numbers(out, colour_fa(fit));
  return {};
}

Status probe_mask(const Arguments& arguments) {
  CGL_TRY_ASSIGN(const auto volume, read_numbers<double>(arguments[0]));
  const std::array<std::int64_t, 3> size = {std::stol(arguments[1]), std::stol(arguments[2]), std::stol(arguments[3])};
  const MedianOtsuOptions options = {std::stoi(arguments[4]), std::stoi(arguments[5]), std::stoi(arguments[6]),
                                     arguments[7] == "1"};
  CGL_TRY_ASSIGN(const auto pool, ThreadPool::create(std::stoi(arguments[8])));
  const auto start = std::chrono::steady_clock::now();
  CGL_TRY_ASSIGN(const BrainMask mask, median_otsu(volume, size, options, *pool));
  fmt::print("{} {}\n", seconds_since(start), mask.threshold);
  std::ofstream out(arguments[9], std::ios::binary);
  append_numbers(out, mask.mask);
  return {};
}

Status probe_peaks(const Arguments& arguments) {
  CGL_TRY_ASSIGN(const Sphere sphere, sphere_by_name_or_file(arguments[0]));
  CGL_TRY_ASSIGN(const auto values, read_numbers<float>(arguments[1]));
  const PeakOptions options = {std::stod(arguments[2]), std::stod(arguments[3]),
                               static_cast<std::uint32_t>(std::stoul(arguments[4]))};
  CGL_TRY_ASSIGN(const PeakFinder finder, PeakFinder::create(sphere, options));
  std::vector<std::uint32_t> candidates;
  std::vector<std::uint32_t> peaks(options.max_peaks);
  std::vector<std::int32_t> found;
  for (std::size_t first = 0; first < values.size(); first += sphere.size()) {
    const std::uint32_t count = finder.find(std::span(values).subspan(first, sphere.size()), candidates, peaks);
    for (std::uint32_t i = 0; i < options.max_peaks; ++i) {
      found.push_back(i < count ? static_cast<std::int32_t>(peaks[i]) : -1);
    }
  }
  std::ofstream out(arguments[5], std::ios::binary);
  append_numbers(out, found);
  return {};
}

Status probe_gradients(const Arguments& arguments) {
  CGL_TRY_ASSIGN(const GradientTable table, read_fsl_gradients(arguments[1], arguments[2]));
  ImageGeometry geometry;
  CGL_TRY_ASSIGN(const auto mask, read_mask(arguments[3], geometry));
  CGL_TRY_ASSIGN(const DwiSignals signals, read_dwi_signals(arguments[0], mask));
  GradientFrame frame = GradientFrame::fsl;
  for (const GradientFrame one : {GradientFrame::voxel, GradientFrame::world}) {
    if (arguments[4] == gradient_frame_name(one)) frame = one;
  }
  CGL_TRY_ASSIGN(const auto pool, ThreadPool::create(std::stoi(arguments[5])));
  const auto start = std::chrono::steady_clock::now();
  CGL_TRY_ASSIGN(const GradientCheck check, check_gradients(signals, table, frame, *pool));
  fmt::print("{:.3f} {} {} {} {}\n", seconds_since(start), gradient_verdict_name(check.verdict),
             check.better_frame ? gradient_frame_name(*check.better_frame) : "-", check.voxels, check.blocks);
  for (const GradientReading& reading : check.readings) {
    fmt::print("{:.4f} {:+.4f} {:+.1f} {}\n", reading.coherence, reading.gain, reading.standard_errors, reading.name);
  }
  fmt::print("{}\n", spell_argument_names(check.message));
  return {};
}

struct Probe {
  std::string_view name;
  std::size_t least_arguments;
  Status (*run)(const Arguments&);
};
constexpr Probe probes[] = {{"sphere", 1, probe_sphere},
                            {"tensor", 7, probe_tensor},
                            {"mask", 10, probe_mask},
                            {"peaks", 6, probe_peaks},
                            {"gradients", 6, probe_gradients}};

}  // namespace
}  // namespace cingulum

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  for (const auto& probe : cingulum::probes) {
    if (arguments.empty() || arguments[0] != probe.name || arguments.size() < probe.least_arguments + 1) continue;
    const auto status = probe.run({arguments.begin() + 1, arguments.end()});
    if (status) return 0;
    fmt::print(stderr, "dmri_probe: {}\n", status.error().message());
    return 1;
  }
  std::fputs("dmri_probe: see the head of dmri_probe.cpp\n", stderr);
  return 2;
}
