// Runs one function of dmri on input from files and writes what it gives as raw numbers, for the Python tests that
// compare with DIPY and SciPy, and for measurements.
//   dmri_probe sphere NAME_OR_FILE [full]
//     text: "half|full n edges", then directions, then edges
//   dmri_probe tensor SIGNALS VOLUMES GRADIENTS ols|wls MIN_SIGNAL THREADS OUT
//     SIGNALS: float32, a record of VOLUMES per voxel; GRADIENTS: text, "x y z b" per line. OUT: float32 arrays one
//     after the other: tensor, eigenvalues, v1, fa, md, rd, s0, colour. Prints the seconds of the fit.
#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/read_file.hpp"
#include "base/thread_pool.hpp"
#include "dmri/sphere.hpp"
#include "dmri/tensor.hpp"

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

template <class Number>
void append_numbers(std::ofstream& file, const std::vector<Number>& numbers) {
  file.write(reinterpret_cast<const char*>(numbers.data()),
             static_cast<std::streamsize>(numbers.size() * sizeof(Number)));
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

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

Status probe_sphere(const Arguments& arguments) {
  const bool full = arguments.size() > 1 && arguments[1] == "full";
  CGL_TRY_ASSIGN(const Sphere sphere, full ? read_sphere(arguments[0], true) : sphere_by_name_or_file(arguments[0]));
  fmt::print("{} {} {}\n", sphere.half ? "half" : "full", sphere.size(), sphere.edges.size());
  for (const auto& v : sphere.directions) fmt::print("{} {} {}\n", v.x, v.y, v.z);
  for (const auto& [a, b] : sphere.edges) fmt::print("{} {}\n", a, b);
  return {};
}

Result<DwiSignals> read_signals(const std::string& path, std::size_t volumes) {
  DwiSignals signals;
  signals.volumes = volumes;
  CGL_TRY_ASSIGN(signals.values, read_numbers<float>(path));
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
  for (const std::vector<float>* map : {&fit.tensor, &fit.eigenvalues, &fit.v1, &fit.fa, &fit.md, &fit.rd, &fit.s0}) {
    append_numbers(out, *map);
  }
  append_numbers(out, colour_fa(fit));
  return {};
}

struct Probe {
  std::string_view name;
  std::size_t least_arguments;
  Status (*run)(const Arguments&);
};
constexpr Probe probes[] = {{"sphere", 1, probe_sphere}, {"tensor", 7, probe_tensor}};

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
