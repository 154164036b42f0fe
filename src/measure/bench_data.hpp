// What benches of tracking track: the phantom `brain`, a diffusion series, a file of spherical harmonics or both, the
// seeds, and the fields that the scenarios ask for. Called by `cingulum bench track`, bench_track and
// bench_track_contracted; all that is read and fitted for a bench is read and fitted here.
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
#include "dmri/series/gradient_frame.hpp"
#include "tract/field/dwi_preparation.hpp"
#include "tract/plan/tracking_plan.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum::measure {

constexpr double stop_threshold = 0.1;
constexpr double max_angle_deg = 60;

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

// All scenarios; those that track one field follow each other.
[[nodiscard]] std::span<const BenchScenario> bench_scenarios();

// One initial direction per seed, as other programs do, and the angle and threshold above.
[[nodiscard]] TrackingOptions bench_tracking_options(const BenchScenario& scenario);

struct BenchSource {
  std::filesystem::path dwi = {};              // a series with its gradients beside it; needs a mask
  std::filesystem::path sh = {};               // a file of spherical harmonics: CSD is read and not fitted
  std::filesystem::path mask = {};             // of either
  std::filesystem::path stop_map = {};         // else FA of the series, or 1 where the file is not zero
  WantedFrame frame = WantedFrame::of_format;  // of the b-vectors; it is not checked
  std::filesystem::path phantom = {};          // with neither: where the phantom is kept; else by what runs are scored
  double voxel_mm = 2;                         // the edge of its voxels
  std::string sphere = {};                     // of fields of amplitudes, a name or a file; empty: the scenario's
};

// The phantom `brain` in a folder, unless it is there already.
[[nodiscard]] Status make_brain_phantom(const std::filesystem::path& folder, double voxel_mm, ThreadPool& pool,
                                        const WriteOptions& write, const ProgressOptions& progress);
// The folder of a cache in which it lies, by the edge of its voxels.
[[nodiscard]] Result<std::filesystem::path> brain_phantom_folder(const std::filesystem::path& cache, double voxel_mm);

// Where a series' gradients lie: its name without .nii or .nii.gz.
[[nodiscard]] std::string stem_of_series(const std::filesystem::path& series);

class BenchData {
 public:
  [[nodiscard]] static Result<BenchData> load(const BenchSource& source, std::uint64_t seeds, ThreadPool& pool,
                                              const WriteOptions& write, const ProgressOptions& progress);

  [[nodiscard]] const ImageGeometry& geometry() const { return geometry_; }
  [[nodiscard]] const Seeds& seeds() const { return *seeds_; }
  // The series and its mask; empty where a file of harmonics is all there is.
  [[nodiscard]] const std::filesystem::path& dwi() const { return source_.dwi; }
  [[nodiscard]] const std::filesystem::path& mask() const { return source_.mask; }
  // The directions of the series' volumes in image axes.
  [[nodiscard]] std::span<const numerics::Vec3d> directions() const { return series_.directions; }
  // The phantom's folder; empty where there is none.
  [[nodiscard]] const std::filesystem::path& phantom() const { return source_.phantom; }

  // Whether the data give this field: a file of harmonics alone has one model.
  [[nodiscard]] bool has(const BenchScenario& scenario) const;
  // The field of a scenario; the last one is kept.
  [[nodiscard]] Result<const Field*> field_of(const BenchScenario& scenario, ThreadPool& pool,
                                              const ProgressOptions& progress);

 private:
  Status load_series(ThreadPool& pool);
  Status load_harmonics();
  Status load_stop_map();
  Status check_sizes() const;
  Result<PreparedField> make_field(const BenchScenario& scenario, ThreadPool& pool, const ProgressOptions& progress);

  BenchSource source_;
  ImageGeometry geometry_;
  std::vector<std::uint8_t> inside_;
  std::vector<float> stop_map_;
  DwiSeries series_;
  std::optional<TensorMaps> tensors_;  // where a stopping map had to be made
  std::unique_ptr<Seeds> seeds_;
  std::optional<PreparedField> prepared_;
  std::optional<BenchScenario> prepared_for_;
};

}  // namespace cingulum::measure
