// A fit of `cingulum fit` in memory: maps as arrays, and into a folder where one is named.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "arrays.hpp"
#include "base/json_text.hpp"
#include "dmri/models/fit_folder.hpp"
#include "dmri/models/peaks.hpp"
#include "dmri/models/spherical_function.hpp"
#include "formats/sidecar.hpp"
#include "job.hpp"
#include "native_error.hpp"
#include "parts.hpp"
#include "request_parts.hpp"
#include "runs/fit/fit_fields.hpp"
#include "runs/fit/fit_run.hpp"

namespace cingulum::python {
namespace {

using Json = nlohmann::ordered_json;

struct KeptMap {
  std::string name;
  std::string meaning;
  Json more;
  std::size_t columns = 1;
  GrowingBytes values;  // of all voxels of the image, x fastest, the columns of a voxel together
};

// Keeps what a fit says, and hands it on to a folder where there is one.
class MemoryMaps final : public FitMaps {
 public:
  explicit MemoryMaps(FitFolder* folder) : folder_(folder) {}

  void describe(const ImageGeometry& geometry, std::vector<std::uint32_t> voxels, Json facts) override {
    if (folder_ != nullptr) folder_->describe(geometry, voxels, facts);
    geometry_ = geometry;
    voxels_ = std::move(voxels);
    facts_ = std::move(facts);
  }
  Status write_map(const std::string& name, std::span<const float> records, std::size_t columns,
                   std::string_view meaning, ThreadPool& pool, const Json& more) override {
    if (folder_ != nullptr) CGL_TRY(folder_->write_map(name, records, columns, meaning, pool, more));
    return catch_out_of_memory([&]() -> Status {
      KeptMap map{name, std::string(meaning), more, columns, {}};
      const auto count = static_cast<std::size_t>(geometry_.voxel_count()) * columns;
      const std::span<std::byte> bytes = map.values.grow(count * sizeof(float));
      // By all threads: the memory is fresh, and whoever touches a page first waits for it.
      pool.parallel_for(
          static_cast<std::size_t>(geometry_.voxel_count()), 16384, [&](std::size_t from, std::size_t to) {
            const std::size_t voxel_bytes = columns * sizeof(float);
            std::memset(bytes.data() + from * voxel_bytes, 0, (to - from) * voxel_bytes);
            const auto first = std::lower_bound(voxels_.begin(), voxels_.end(), from);
            for (auto at = first; at != voxels_.end() && *at < to; ++at) {
              const auto record = static_cast<std::size_t>(at - voxels_.begin());
              std::memcpy(bytes.data() + *at * voxel_bytes, records.data() + record * columns, voxel_bytes);
            }
          });
      maps_.push_back(std::move(map));
      return {};
    });
  }
  Status write_mask(std::span<const std::uint8_t> mask, const Json& more, ThreadPool& pool) override {
    return folder_ != nullptr ? folder_->write_mask(mask, more, pool) : Status();
  }
  Status write_text(const std::string& name, std::string_view text, std::string_view meaning) override {
    texts_.emplace_back(name, std::string(text), std::string(meaning));
    return folder_ != nullptr ? folder_->write_text(name, text, meaning) : Status();
  }
  [[nodiscard]] std::string place_of(std::string_view name) const override {
    return folder_ != nullptr ? folder_->place_of(name) : std::string(name) + " of the result";
  }

  // With the GIL. Values have the shape (z, y, x, columns) in memory.
  [[nodiscard]] nb::dict release() {
    const auto x = static_cast<std::size_t>(geometry_.size[0]);
    const auto y = static_cast<std::size_t>(geometry_.size[1]);
    const auto z = static_cast<std::size_t>(geometry_.size[2]);
    nb::list maps;
    for (KeptMap& map : maps_) {
      maps.append(nb::make_tuple(map.name, map.meaning, json_text(map.more.is_null() ? Json::object() : map.more),
                                 map.values.release_as<float>({z, y, x, map.columns})));
    }
    nb::list texts;
    for (const auto& [name, text, meaning] : texts_) texts.append(nb::make_tuple(name, text, meaning));
    GrowingBytes mask;
    const std::span<std::byte> bytes = mask.grow(x * y * z);
    std::fill(bytes.begin(), bytes.end(), std::byte{0});
    for (const std::uint32_t voxel : voxels_) bytes[voxel] = std::byte{1};
    nb::dict result;
    result["maps"] = maps;
    result["texts"] = texts;
    result["facts"] = json_text(facts_);
    result["mask"] = mask.release_as<std::uint8_t>({z, y, x});
    nb::list rows;
    for (const double number : geometry_.voxel_to_world.rows) rows.append(number);
    result["affine"] = rows;
    return result;
  }

 private:
  FitFolder* folder_;
  ImageGeometry geometry_;
  std::vector<std::uint32_t> voxels_;
  Json facts_;
  std::vector<KeptMap> maps_;
  std::vector<std::tuple<std::string, std::string, std::string>> texts_;
};

nb::dict fit_arrays(const std::vector<GivenArgument>& given, const nb::dict& from, const nb::object& progress) {
  TakenArrays taken = take_arrays(from);
  std::unique_ptr<MemoryMaps> maps;
  FitOutcome outcome;
  run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
    std::vector<ArgumentText> texts = argument_texts(given);
    PythonMachine python_machine;
    CGL_TRY(python_machine.open(texts));
    python_machine.machine->set_run(job.cancel, job.observer);
    FitRequest request;
    CGL_TRY(fill_request(fit_fields(), texts, taken.options, request));
    request.arrays = std::move(taken.arrays);
    CGL_TRY_ASSIGN(outcome, fit(std::move(request), *python_machine.machine, [&](FitFolder* folder) -> FitMaps& {
                     maps = std::make_unique<MemoryMaps>(folder);
                     return *maps;
                   }));
    return {};
  });
  nb::dict result = maps->release();
  result["results"] = json_text(outcome.results);
  result["run"] = json_text(outcome.run);
  return result;
}

// The folder of a fit that is in memory.
void write_fit(const std::string& folder_name, bool force, const nb::object& shape, const DoubleAffine& affine,
               const ByteImage& mask, const std::string& facts, const nb::list& maps, const nb::list& texts,
               const std::string& results, const std::string& run, bool with_mask, const nb::object& progress) {
  ImageGeometry geometry;
  geometry.voxel_to_world = affine_of(affine);
  for (std::size_t axis = 0; axis < 3; ++axis) geometry.size[axis] = nb::cast<std::int64_t>(shape[axis]);
  std::vector<std::uint32_t> voxels;
  for (std::size_t i = 0; i < mask.size(); ++i) {
    if (mask.data()[i] != 0) voxels.push_back(static_cast<std::uint32_t>(i));
  }
  using Records = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  struct Map {
    std::string name, meaning, more;
    Records records;
  };
  std::vector<Map> given;
  for (const nb::handle entry : maps) {
    given.push_back({nb::cast<std::string>(entry[0]), nb::cast<std::string>(entry[1]), nb::cast<std::string>(entry[2]),
                     nb::cast<Records>(entry[3])});
  }
  std::vector<std::array<std::string, 3>> lines;
  for (const nb::handle entry : texts) {
    lines.push_back(
        {nb::cast<std::string>(entry[0]), nb::cast<std::string>(entry[1]), nb::cast<std::string>(entry[2])});
  }
  run_job(progress, Stopping::by_token, [&](JobContext& job) -> Status {
    WriteOptions options;
    options.force = force;
    options.cancel = job.cancel;
    CGL_TRY_ASSIGN(FitFolder folder, FitFolder::create(folder_name, options));
    CGL_TRY_ASSIGN(const std::unique_ptr<ThreadPool> pool, ThreadPool::create(default_thread_count()));
    CGL_TRY_ASSIGN(Json said, parse_json(facts));
    folder.describe(geometry, voxels, std::move(said));
    if (with_mask) CGL_TRY(folder.write_mask(span_of(mask), Json::object(), *pool));
    for (const Map& map : given) {
      CGL_TRY_ASSIGN(const Json more, parse_json(map.more));
      CGL_TRY(folder.write_map(map.name, span_of(map.records), map.records.shape(1), map.meaning, *pool, more));
    }
    for (const auto& [name, text, meaning] : lines) CGL_TRY(folder.write_text(name, text, meaning));
    CGL_TRY_ASSIGN(const Json result_facts, parse_json(results));
    CGL_TRY_ASSIGN(const Json run_member, parse_json(run));
    return folder.finish(result_facts, run_member);
  });
}

numerics::HarmonicConvention convention_of(const std::string& name) {
  if (name == "descoteaux07") return numerics::HarmonicConvention::descoteaux07;
  return name == "tournier07" ? numerics::HarmonicConvention::tournier07
                              : numerics::HarmonicConvention::descoteaux07_legacy;
}

using Coefficients = nb::ndarray<const float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Amplitudes of harmonics, a row per voxel, in directions.
nb::object sample(const Coefficients& coefficients, int degree, const std::string& convention, const DoubleRows& rows,
                  bool clip) {
  GrowingBytes amplitudes;
  const std::vector<numerics::Vec3d> directions = rows_of(rows);
  run_job(nb::none(), Stopping::by_token, [&](JobContext& job) -> Status {
    CGL_TRY_ASSIGN(const std::unique_ptr<ThreadPool> pool, ThreadPool::create(default_thread_count()));
    const numerics::HarmonicBasis basis = {convention_of(convention), degree, false};
    CGL_TRY_ASSIGN(const auto values, sample_harmonics(basis, span_of(coefficients), directions, clip,
                                                       FitMachine(*pool, nullptr, job.cancel)));
    amplitudes.append(std::as_bytes(std::span(values)));
    return {};
  });
  return amplitudes.release_as<float>({coefficients.shape(0), directions.size()});
}

// Peaks of harmonics on a named sphere: three numbers each, as long as their amplitude.
nb::object find_peaks(const Coefficients& coefficients, int degree, const std::string& convention,
                      const std::string& sphere_name, std::uint32_t count, double relative_threshold,
                      double min_separation_deg) {
  GrowingBytes peaks;
  run_job(nb::none(), Stopping::by_token, [&](JobContext& job) -> Status {
    CGL_TRY_ASSIGN(const std::unique_ptr<ThreadPool> pool, ThreadPool::create(default_thread_count()));
    CGL_TRY_ASSIGN(const Sphere sphere, sphere_by_name_or_file(sphere_name));
    PeakOptions options;
    options.relative_threshold = relative_threshold;
    options.min_separation_deg = min_separation_deg;
    options.max_peaks = count;
    CGL_TRY_ASSIGN(const PeakFinder finder, PeakFinder::create(sphere, options));
    const numerics::HarmonicBasis basis = {convention_of(convention), degree, false};
    constexpr std::size_t block = 8192;
    const std::size_t columns = coefficients.shape(1);
    for (std::size_t first = 0; first < coefficients.shape(0); first += block) {
      CGL_TRY(job.cancel.check());
      const std::size_t voxels = std::min(block, coefficients.shape(0) - first);
      CGL_TRY_ASSIGN(const auto amplitudes,
                     sample_harmonics(basis, span_of(coefficients).subspan(first * columns, voxels * columns),
                                      sphere.directions, true, FitMachine(*pool, nullptr, job.cancel)));
      const std::vector<float> found = finder.peak_vectors(amplitudes, *pool);
      peaks.append(std::as_bytes(std::span(found)));
    }
    return {};
  });
  return peaks.release_as<float>({coefficients.shape(0), std::size_t{count} * 3});
}

nb::object sphere_vertices(const std::string& name, bool full) {
  const Sphere sphere = value_or_throw(sphere_by_name_or_file(name, full));
  GrowingBytes rows;
  for (const numerics::Vec3d& d : sphere.directions) {
    const double numbers[3] = {d.x, d.y, d.z};
    rows.append(std::as_bytes(std::span(numbers)));
  }
  return rows.release_as<double>({sphere.size(), 3});
}

}  // namespace

void bind_fit(nb::module_& module) {
  module.def("fit", fit_arrays, nb::arg("given"), nb::arg("arrays"), nb::arg("progress").none());
  module.def("write_fit", write_fit, nb::arg("folder"), nb::arg("force"), nb::arg("shape"), nb::arg("affine"),
             nb::arg("mask"), nb::arg("facts"), nb::arg("maps"), nb::arg("texts"), nb::arg("results"), nb::arg("run"),
             nb::arg("with_mask"), nb::arg("progress").none());
  module.def("sample_harmonics", sample, nb::arg("coefficients"), nb::arg("degree"), nb::arg("convention"),
             nb::arg("directions"), nb::arg("clip"));
  module.def("find_peaks", find_peaks, nb::arg("coefficients"), nb::arg("degree"), nb::arg("convention"),
             nb::arg("sphere"), nb::arg("count"), nb::arg("relative_threshold"), nb::arg("min_separation_deg"));
  module.def("sphere_vertices", sphere_vertices, nb::arg("name"), nb::arg("full"));
}

}  // namespace cingulum::python
