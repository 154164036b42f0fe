#include "tract/seeds/seeds.hpp"

#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "base/quantity.hpp"
#include "base/read_file.hpp"
#include "formats/tractogram.hpp"
#include "numerics/classify.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/random.hpp"

namespace cingulum {
namespace {

using numerics::Vec3;
using numerics::Vec3d;

// One coordinate of a place in the voxel of index `voxel`: jitter in [-0.5, 0.5). Far from the origin float32 rounds a
// jitter just below 0.5 up to the next voxel; the largest number below the face is taken then.
float place_in_voxel(std::uint32_t voxel, float jitter) {
  const float centre = static_cast<float>(voxel);
  const float face = centre + 0.5f;
  const float place = centre + jitter;
  return place < face ? place : numerics::bits_float(numerics::float_bits(face) - 1u);
}

class VoxelList {
 public:
  static Result<VoxelList> of_mask(const ImageGeometry& geometry, std::span<const std::uint8_t> mask) {
    const std::int64_t voxels = geometry.voxel_count();
    if (mask.size() != static_cast<std::size_t>(voxels)) {
      return fail(ErrorKind::invalid_argument, "seeding: the mask has {} voxels, the image {}", mask.size(), voxels);
    }
    if (voxels > std::int64_t{std::numeric_limits<std::uint32_t>::max()}) {
      return fail(ErrorKind::invalid_argument, "seeding: an image of {} voxels; accepted are fewer than 2^32", voxels);
    }
    VoxelList list;
    list.size_x_ = static_cast<std::uint32_t>(geometry.size[0]);
    list.size_y_ = static_cast<std::uint32_t>(geometry.size[1]);
    for (std::size_t i = 0; i < mask.size(); ++i) {
      if (mask[i] != 0) list.voxels_.push_back(static_cast<std::uint32_t>(i));
    }
    if (list.voxels_.empty()) {
      return fail(ErrorKind::invalid_argument,
                  "seeding: no voxel to seed in; the seed mask is empty, or the stopping map passes nowhere in it");
    }
    return list;
  }

  [[nodiscard]] std::size_t size() const { return voxels_.size(); }

  [[nodiscard]] Vec3 place(std::size_t entry, Vec3 jitter) const {
    const std::uint32_t voxel = voxels_[entry];
    const std::uint32_t row = voxel / size_x_;
    return {place_in_voxel(voxel - row * size_x_, jitter.x), place_in_voxel(row % size_y_, jitter.y),
            place_in_voxel(row / size_y_, jitter.z)};
  }

 private:
  std::vector<std::uint32_t> voxels_;
  std::uint32_t size_x_ = 1;
  std::uint32_t size_y_ = 1;
};

numerics::PhiloxBlock seed_block(numerics::PhiloxKey key, std::uint64_t seed) {
  return numerics::random_block(key,
                                {.index = static_cast<std::uint32_t>(seed),
                                 .purpose = numerics::DrawPurpose::seed_position,
                                 .initial_direction = 0,
                                 .half = 0,
                                 .step = 0,
                                 .attempt = 0},
                                0);
}

// Draw 0 chooses the voxel (left unused where it is given), draws 1 to 3 the place in it.
Vec3 jitter_of(const numerics::PhiloxBlock& block) {
  return {numerics::uniform_from_word(block.word[1]) - 0.5f, numerics::uniform_from_word(block.word[2]) - 0.5f,
          numerics::uniform_from_word(block.word[3]) - 0.5f};
}

Status check_count(std::uint64_t count) {
  if (count <= most_seeds) return {};
  return fail(ErrorKind::invalid_argument,
              "seeding: {} seeds; a run takes at most 2^32 ({}), since the random numbers count seeds in 32 bits; "
              "split it into runs with different {}",
              format_count(count), format_count(most_seeds), argument_name("seed"));
}

Result<std::uint64_t> product_of(std::uint64_t voxels, std::uint64_t per_voxel) {
  if (per_voxel == 0) return fail(ErrorKind::invalid_argument, "seeding: 0 seeds per voxel; accepted is at least 1");
  // Both are below 2^32 where the product is accepted; the quotient keeps it from overflowing.
  if (per_voxel > most_seeds / voxels) {
    return fail(ErrorKind::invalid_argument,
                "seeding: {} seeds in each of {} voxels; a run takes at most 2^32 seeds, since the random numbers "
                "count them in 32 bits",
                format_count(per_voxel), format_count(voxels));
  }
  return voxels * per_voxel;
}

class RandomSeeds final : public Seeds {
 public:
  RandomSeeds(VoxelList voxels, std::uint64_t count, numerics::PhiloxKey key)
      : voxels_(std::move(voxels)), count_(count), key_(key) {}

  [[nodiscard]] std::uint64_t count() const override { return count_; }
  void fill(std::uint64_t first, std::span<Vec3> positions) const override {
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const numerics::PhiloxBlock block = seed_block(key_, first + i);
      const std::uint32_t entry =
          numerics::integer_from_word(block.word[0], static_cast<std::uint32_t>(voxels_.size()));
      positions[i] = voxels_.place(entry, jitter_of(block));
    }
  }

 private:
  VoxelList voxels_;
  std::uint64_t count_;
  numerics::PhiloxKey key_;
};

class PerVoxelSeeds final : public Seeds {
 public:
  PerVoxelSeeds(VoxelList voxels, std::uint32_t per_voxel, numerics::PhiloxKey key)
      : voxels_(std::move(voxels)), per_voxel_(per_voxel), key_(key) {}

  [[nodiscard]] std::uint64_t count() const override { return std::uint64_t{per_voxel_} * voxels_.size(); }
  void fill(std::uint64_t first, std::span<Vec3> positions) const override {
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const std::uint64_t seed = first + i;
      positions[i] = voxels_.place(static_cast<std::size_t>(seed / per_voxel_), jitter_of(seed_block(key_, seed)));
    }
  }

 private:
  VoxelList voxels_;
  std::uint32_t per_voxel_;
  numerics::PhiloxKey key_;
};

class GridSeeds final : public Seeds {
 public:
  GridSeeds(VoxelList voxels, std::array<std::uint32_t, 3> per_axis)
      : voxels_(std::move(voxels)),
        per_axis_(per_axis),
        per_voxel_(std::uint64_t{per_axis[0]} * per_axis[1] * per_axis[2]) {}

  [[nodiscard]] std::uint64_t count() const override { return per_voxel_ * voxels_.size(); }
  void fill(std::uint64_t first, std::span<Vec3> positions) const override {
    for (std::size_t i = 0; i < positions.size(); ++i) {
      const std::uint64_t seed = first + i;
      const std::uint64_t place = seed % per_voxel_;
      const std::uint64_t row = place / per_axis_[0];
      const Vec3 jitter = {offset(place % per_axis_[0], per_axis_[0]), offset(row % per_axis_[1], per_axis_[1]),
                           offset(row / per_axis_[1], per_axis_[2])};
      positions[i] = voxels_.place(static_cast<std::size_t>(seed / per_voxel_), jitter);
    }
  }

 private:
  // The middle of part `index` of `parts` equal parts of a voxel.
  static float offset(std::uint64_t index, std::uint32_t parts) {
    return static_cast<float>((static_cast<double>(index) + 0.5) / parts - 0.5);
  }

  VoxelList voxels_;
  std::array<std::uint32_t, 3> per_axis_;
  std::uint64_t per_voxel_;
};

class ListedSeeds final : public Seeds {
 public:
  explicit ListedSeeds(std::vector<Vec3> positions) : positions_(std::move(positions)) {}

  [[nodiscard]] std::uint64_t count() const override { return positions_.size(); }
  void fill(std::uint64_t first, std::span<Vec3> positions) const override {
    for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = positions_[static_cast<std::size_t>(first) + i];
  }

 private:
  std::vector<Vec3> positions_;
};

// Rows of three numbers.
Result<std::vector<Vec3d>> read_rows(const std::filesystem::path& path) {
  CGL_TRY_ASSIGN(const std::string text, read_text_file(path));
  std::vector<Vec3d> rows;
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = std::string_view(text).substr(begin, end - begin);
    begin = end + 1;
    ++line_number;
    line = line.substr(0, line.find('#'));
    double numbers[3] = {};
    std::size_t count = 0;
    for (std::size_t at = 0; at < line.size();) {
      constexpr std::string_view blanks = " \t\r,;";
      const std::size_t from = line.find_first_not_of(blanks, at);
      if (from == std::string_view::npos) break;
      const std::size_t to = std::min(line.find_first_of(blanks, from), line.size());
      const std::string_view word = line.substr(from, to - from);
      at = to;
      const Result<double> number = parse_real(word);
      if (!number) {
        return fail_file(path.string(), ErrorKind::corrupt, "reading {}: line {}: '{}' is not a number", path.string(),
                         line_number, word);
      }
      if (count < 3) numbers[count] = *number;
      ++count;
    }
    if (count == 0) continue;
    if (count != 3) {
      return fail_file(path.string(), ErrorKind::corrupt, "reading {}: line {}: {} numbers; accepted are three, x y z",
                       path.string(), line_number, count);
    }
    rows.push_back({numbers[0], numbers[1], numbers[2]});
  }
  if (rows.empty())
    return fail_file(path.string(), ErrorKind::corrupt, "reading {}: there is no line with x y z", path.string());
  return rows;
}

Vec3 rounded(Vec3d v) {
  return {static_cast<float>(v.x), static_cast<float>(v.y), static_cast<float>(v.z)};
}

// No image reaches beyond this voxel, and float32 cannot tell voxels apart there.
constexpr double farthest_voxel = 0x1p24;

std::optional<Vec3> voxel_position(Vec3d voxel) {
  for (const double x : {voxel.x, voxel.y, voxel.z}) {
    if (!(numerics::absolute(x) <= farthest_voxel)) return std::nullopt;
  }
  return rounded(voxel);
}

}  // namespace

Result<std::unique_ptr<Seeds>> random_seeds(const ImageGeometry& geometry, std::span<const std::uint8_t> mask,
                                            std::uint64_t count, numerics::PhiloxKey key) {
  CGL_TRY(check_count(count));
  CGL_TRY_ASSIGN(VoxelList voxels, VoxelList::of_mask(geometry, mask));
  return std::make_unique<RandomSeeds>(std::move(voxels), count == 0 ? most_seeds : count, key);
}

Result<std::unique_ptr<Seeds>> random_seeds_per_voxel(const ImageGeometry& geometry, std::span<const std::uint8_t> mask,
                                                      std::uint32_t per_voxel, numerics::PhiloxKey key) {
  CGL_TRY_ASSIGN(VoxelList voxels, VoxelList::of_mask(geometry, mask));
  CGL_TRY(product_of(voxels.size(), per_voxel));
  return std::make_unique<PerVoxelSeeds>(std::move(voxels), per_voxel, key);
}

Result<std::unique_ptr<Seeds>> grid_seeds(const ImageGeometry& geometry, std::span<const std::uint8_t> mask,
                                          std::array<std::uint32_t, 3> per_axis) {
  CGL_TRY_ASSIGN(VoxelList voxels, VoxelList::of_mask(geometry, mask));
  std::uint64_t seeds = voxels.size();
  for (const std::uint32_t parts : per_axis) {
    CGL_TRY_ASSIGN(seeds, product_of(seeds, parts));
  }
  return std::make_unique<GridSeeds>(std::move(voxels), per_axis);
}

Result<std::unique_ptr<Seeds>> listed_seeds(std::vector<Vec3> positions_voxel) {
  CGL_TRY(check_count(positions_voxel.size()));
  if (positions_voxel.empty()) return fail(ErrorKind::invalid_argument, "seeding: the list of seeds is empty");
  for (std::size_t i = 0; i < positions_voxel.size(); ++i) {
    const Vec3 p = positions_voxel[i];
    if (!numerics::is_finite(p.x) || !numerics::is_finite(p.y) || !numerics::is_finite(p.z)) {
      return fail(ErrorKind::invalid_argument, "seeding: seed {} has a coordinate that is not a finite number", i);
    }
  }
  return std::make_unique<ListedSeeds>(std::move(positions_voxel));
}

Result<std::vector<Vec3>> take_seed_positions(std::span<const Vec3d> rows, SeedSpace space,
                                              const ImageGeometry& geometry) {
  CGL_TRY_ASSIGN(const Affine world_to_voxel, geometry.voxel_to_world.inverse());
  std::vector<Vec3> positions;
  positions.reserve(rows.size());
  for (const Vec3d& row : rows) {
    const auto position = voxel_position(space == SeedSpace::world ? world_to_voxel.apply(row) : row);
    if (!position) {
      return fail(ErrorKind::invalid_argument, "seed {} {} {} is farther than {} voxels from the image", row.x, row.y,
                  row.z, farthest_voxel);
    }
    positions.push_back(*position);
  }
  return positions;
}

Result<std::vector<Vec3>> read_seed_positions(const std::filesystem::path& path, SeedSpace space,
                                              const ImageGeometry& geometry) {
  CGL_TRY_ASSIGN(const std::vector<Vec3d> rows, read_rows(path));
  return add_file_context(take_seed_positions(rows, space, geometry), "reading", path.string());
}

Result<std::vector<Vec3>> seed_positions_of_ends(const std::filesystem::path& tractogram,
                                                 const ImageGeometry& geometry) {
  CGL_TRY_ASSIGN(const Affine world_to_voxel, geometry.voxel_to_world.inverse());
  CGL_TRY_ASSIGN(const std::unique_ptr<TractogramReader> reader, TractogramReader::open(tractogram));
  std::vector<Vec3> positions;
  TractogramBatch batch;
  for (;;) {
    CGL_TRY_ASSIGN(const bool more, reader->next(batch, default_batch_points, true));
    if (!more) break;
    for (std::size_t s = 0; s < batch.streamline_count(); ++s) {
      const std::span<const float> points = batch.streamline(s);
      if (points.empty()) continue;
      for (const std::size_t at : {std::size_t{0}, points.size() - 3}) {
        const auto position = voxel_position(world_to_voxel.apply({points[at], points[at + 1], points[at + 2]}));
        if (!position) {
          return fail_file(tractogram.string(), ErrorKind::invalid_argument,
                           "seeding from {}: an end point lies more than {} voxels away", tractogram.string(),
                           farthest_voxel);
        }
        positions.push_back(*position);
        if (points.size() == 3) break;
      }
    }
  }
  if (positions.empty()) {
    return fail_file(tractogram.string(), ErrorKind::invalid_argument, "seeding from {}: it holds no streamline",
                     tractogram.string());
  }
  return positions;
}

Result<std::vector<Vec3>> take_directions(std::span<const Vec3d> rows, SeedSpace space, const ImageGeometry& geometry) {
  // Unit vectors along i, j, k as columns: what turns image axes into world axes.
  Affine axes = geometry.voxel_to_world;
  const std::array<double, 3> edges = geometry.voxel_mm();
  for (int column = 0; column < 3; ++column) {
    for (int row = 0; row < 3; ++row) axes.at(row, column) /= edges[static_cast<std::size_t>(column)];
  }
  CGL_TRY_ASSIGN(const Affine world_to_axes, axes.inverse());
  std::vector<Vec3> directions;
  directions.reserve(rows.size());
  for (const Vec3d& row : rows) {
    const Vec3d unit = normalise(space == SeedSpace::world ? world_to_axes.rotate(row) : row);
    if (unit == Vec3d{0, 0, 0}) {
      return fail(ErrorKind::corrupt, "direction {} {} {} has no length", row.x, row.y, row.z);
    }
    directions.push_back(rounded(unit));
  }
  return directions;
}

Result<std::vector<Vec3>> read_directions(const std::filesystem::path& path, SeedSpace space,
                                          const ImageGeometry& geometry) {
  CGL_TRY_ASSIGN(const std::vector<Vec3d> rows, read_rows(path));
  return add_file_context(take_directions(rows, space, geometry), "reading", path.string());
}

}  // namespace cingulum
