// The data that bench_track tracks: the phantom `brain` with its FA and its CSD of degree 8, in a folder that peers
// read, too; the seeds and the fields of each scenario; and points from which all take the same steps.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "base/thread_pool.hpp"
#include "measure/bench_data.hpp"
#include "tract/field/field.hpp"
#include "tract/run/tracker.hpp"
#include "tract/seeds/seeds.hpp"

namespace cingulum::bench {

struct TrackBenchOptions {
  std::string data;
  std::string out;
  std::string only;
  std::string voxel_size = "2.5";
  std::uint64_t seeds = 20000;
  int threads = 2;
  int repetitions = 3;
  std::string python;
  bool peers = true;
};

class TrackData {
 public:
  // Makes what is missing in options.data and writes the seeds there.
  explicit TrackData(const TrackBenchOptions& options);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const measure::BenchData& data() const { return *data_; }
  [[nodiscard]] const ImageGeometry& geometry() const { return data_->geometry(); }
  [[nodiscard]] const Seeds& seeds() const { return data_->seeds(); }
  [[nodiscard]] ThreadPool& pool() const { return *pool_; }

  // It lasts until the next one is asked for.
  [[nodiscard]] const Field& field_of(const measure::BenchScenario& scenario);

  // Points and directions from which every scenario and every peer that can be told so takes the same steps: the seeds
  // that have a peak in `field`, and it. Written beside the seeds.
  void choose_fixed_points(const Field& field);
  [[nodiscard]] const Seeds& fixed_seeds() const { return *fixed_seeds_; }
  [[nodiscard]] const GivenDirections& fixed_directions() const { return fixed_directions_; }

 private:
  void make_files(const TrackBenchOptions& options) const;

  std::filesystem::path folder_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<measure::BenchData> data_;
  std::unique_ptr<Seeds> fixed_seeds_;
  GivenDirections fixed_directions_;
};

}  // namespace cingulum::bench
