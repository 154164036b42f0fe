// What bench_track tracks: the phantom `brain` with its FA and its CSD of degree 8, in a folder that peers read, too;
// the seeds; the fields of each scenario.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.hpp"
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

constexpr double stop_threshold = 0.1;
constexpr double max_angle_deg = 60;

class TrackData {
 public:
  // Makes what is missing in options.data and writes the seeds there.
  explicit TrackData(const TrackBenchOptions& options);

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }
  [[nodiscard]] const ImageGeometry& geometry() const { return geometry_; }
  [[nodiscard]] const Seeds& seeds() const { return *seeds_; }
  [[nodiscard]] ThreadPool& pool() const { return *pool_; }

  // Points and directions from which every scenario and every peer that can be told so takes the same steps: the seeds
  // that have a peak in `field`, and it. Written beside the seeds.
  void choose_fixed_points(const Field& field);
  [[nodiscard]] const Seeds& fixed_seeds() const { return *fixed_seeds_; }
  [[nodiscard]] const GivenDirections& fixed_directions() const { return fixed_directions_; }

  // CSD on the directions that DIPY tracks on; its series; the bootstrap of OPDT, order 4.
  [[nodiscard]] Field amplitudes() const;
  [[nodiscard]] Field harmonics() const;
  [[nodiscard]] Field bootstrap() const;

 private:
  void make_files(const TrackBenchOptions& options) const;
  void load(std::uint64_t seeds);

  std::filesystem::path folder_;
  std::unique_ptr<ThreadPool> pool_;
  ImageGeometry geometry_;
  std::vector<float> stop_map_;
  std::vector<std::uint8_t> mask_;
  std::unique_ptr<Seeds> seeds_;
  std::unique_ptr<Seeds> fixed_seeds_;
  GivenDirections fixed_directions_;
};

// "x y z" per line, with all digits that count.
void write_vectors(const std::filesystem::path& path, const std::vector<numerics::Vec3>& vectors);

}  // namespace cingulum::bench
