// What `cingulum bench track` tracks: the phantom `brain`, a diffusion series or a file of spherical harmonics, its
// seeds, and the fields that the scenarios ask for. Also used by the programs of bench/ that measure the same
// scenarios.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/progress.hpp"
#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/gradient_table.hpp"
#include "tract/field/dwi_preparation.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum {

constexpr double bench_stop_threshold = 0.1;
constexpr double bench_max_angle_deg = 60;

// What is tracked and how.
struct BenchScenario {
  std::string_view name;
  Getter getter;
  FieldModel model;
  int degree;
  bool amplitudes;
  std::string_view sphere;
  std::uint32_t ptt_substeps = 0;  // arcs of a step; 0: the default
};

// Those of one field follow each other.
[[nodiscard]] std::span<const BenchScenario> bench_scenarios();

// One initial direction per seed, as other programs do, and the angle and threshold above.
[[nodiscard]] TrackingOptions bench_tracking_options(const BenchScenario& scenario);

struct BenchSource {
  std::filesystem::path dwi = {};           // a series with its gradients beside it; needs a mask
  std::filesystem::path sh = {};            // or a file of spherical harmonics
  std::filesystem::path mask = {};          // of either
  std::filesystem::path stop_map = {};      // of the file; without it 1 where it is not zero
  std::optional<GradientFrame> frame = {};  // of the b-vectors, where it is not FSL's
  std::filesystem::path cache = {};         // with neither: where the phantom is kept
  double voxel_mm = 2;                      // the edge of its voxels
  std::string sphere = {};                  // of fields of amplitudes; empty: the scenario's
};

class BenchData {
 public:
  [[nodiscard]] static Result<BenchData> load(const BenchSource& source, std::uint64_t seeds, ThreadPool& pool,
                                              const WriteOptions& write, const ProgressOptions& progress);

  [[nodiscard]] const ImageGeometry& geometry() const { return geometry_; }
  [[nodiscard]] const Seeds& seeds() const { return *seeds_; }
  // The series and its mask; empty for a file of harmonics.
  [[nodiscard]] const std::filesystem::path& dwi() const { return source_.dwi; }
  [[nodiscard]] const std::filesystem::path& mask() const { return source_.mask; }
  // The directions of the series' volumes in image axes.
  [[nodiscard]] std::span<const numerics::Vec3d> directions() const { return series_.directions; }
  // The phantom's folder; empty where there is none.
  [[nodiscard]] const std::filesystem::path& truth() const { return truth_; }

  // Whether the data give this field: a file of harmonics has one model.
  [[nodiscard]] bool has(const BenchScenario& scenario) const;
  // The field of a scenario; the last one is kept.
  [[nodiscard]] Result<const Field*> field_of(const BenchScenario& scenario, ThreadPool& pool,
                                              const ProgressOptions& progress);

 private:
  Status load_series(ThreadPool& pool);
  Status load_harmonics();
  Result<PreparedField> make_field(const BenchScenario& scenario, ThreadPool& pool, const ProgressOptions& progress);

  BenchSource source_;
  std::filesystem::path truth_;
  ImageGeometry geometry_;
  std::vector<std::uint8_t> inside_;
  std::vector<float> stop_map_;
  DwiSeries series_;
  TensorMaps tensors_;
  std::unique_ptr<Seeds> seeds_;
  std::optional<PreparedField> prepared_;
  const BenchScenario* prepared_for_ = nullptr;
};

}  // namespace cingulum
