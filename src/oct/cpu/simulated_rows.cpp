// Simulated tiles on the CPU: neighbours in x are the lanes. What the planes of a row share is computed once.
#include <algorithm>
#include <array>
#include <vector>

#include "numerics/pack.hpp"
#include "numerics/pack_elementary.hpp"
#include "numerics/trilinear.hpp"
#include "oct/cpu/draw_rows.hpp"
#include "oct/cpu/host_kernels.hpp"
#include "oct/cpu/pack_exponential.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/simulated_voxel.hpp"

namespace cingulum::oct {
namespace {

constexpr std::uint32_t batch = draws_at_once;
// Planes of a row that are made before they are stored, so that a cache line of a stored A-line is written at once.
constexpr std::uint32_t planes_of_block = 16;

void noise_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<TextureNoiseRecord>();
  const numerics::SimdLevel level = numerics::best_simd_level();
  const std::int32_t plane = record.first_plane + static_cast<std::int32_t>(piece);
  DrawnWords drawn;
  std::array<std::uint32_t, batch> index{};
  for (std::uint32_t y = 0; y < record.y; ++y) {
    float* const to = call.at[0] + (std::uint64_t{piece} * record.y + y) * record.x;
    const std::int32_t row = record.first_row + static_cast<std::int32_t>(y);
    for (std::uint32_t x = 0; x < record.x; x += batch) {
      const std::int32_t column = record.first_column + static_cast<std::int32_t>(x);
      for (std::uint32_t i = 0; i < batch; ++i) {
        index[i] = texture_counter(plane, row, column + static_cast<std::int32_t>(i)).index;
      }
      draw_blocks({record.key_low, record.key_high}, index.data(), texture_counter(plane, row, column), 0, drawn,
                  level);
      const std::uint32_t count = std::min(batch, record.x - x);
      for (std::uint32_t i = 0; i < count; ++i) to[x + i] = noise_from_word(drawn.word[0][i]);
    }
  }
}

void exponentiate_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<ExponentiateRecord>();
  const std::uint64_t count = std::uint64_t{record.y} * record.x;
  float* const values = call.at[0] + piece * count;
  numerics::with_packs<float>([&]<class Number>() {
    constexpr auto lanes = static_cast<std::uint64_t>(Number::width);
    std::uint64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
      numerics::exponential(Number(record.factor) * Number::load(values + i)).store(values + i);
    }
    for (; i < count; ++i) values[i] = numerics::exponential(record.factor * values[i]);
  });
}

// What the planes of a row share, column by column; filled up to whole batches.
struct RowLines {
  explicit RowLines(std::size_t columns)
      : surface(columns), depth_shift(columns), flat(columns), in_tissue(columns), corners(columns), weights(columns) {}
  std::vector<float> surface;
  std::vector<float> depth_shift;
  std::vector<float> flat;
  std::vector<float> in_tissue;                       // 1 or 0
  std::vector<std::array<std::uint32_t, 4>> corners;  // of the cell in a plane of the texture, x fastest
  std::vector<std::array<float, 4>> weights;          // x times y
};

RowLines lines_of_row(const TileVoxelsRecord& record, std::uint32_t row) {
  RowLines lines((record.tile_x + batch - 1) / batch * batch);
  for (std::uint32_t c = 0; c < lines.surface.size(); ++c) {
    const LineModel line = line_model(record.model, row, std::min(c, record.tile_x - 1));
    lines.surface[c] = line.surface;
    lines.depth_shift[c] = line.depth_shift;
    lines.flat[c] = line.flat;
    lines.in_tissue[c] = line.in_tissue ? 1.0f : 0.0f;
    const numerics::AxisCell x = numerics::axis_cell(line.column, record.box_x);
    const numerics::AxisCell y = numerics::axis_cell(line.row, record.box_y);
    const std::uint32_t low = (y.low - record.part_first_y) * record.box_x;
    const std::uint32_t high = (y.high - record.part_first_y) * record.box_x;
    lines.corners[c] = {low + x.low, low + x.high, high + x.low, high + x.high};
    lines.weights[c] = {x.low_weight * y.low_weight, x.high_weight * y.low_weight, x.low_weight * y.high_weight,
                        x.high_weight * y.high_weight};
  }
  return lines;
}

// combine_corners() of each cell of a batch.
void sample_batch(const TileVoxelsRecord& record, const float* texture, const RowLines& lines, std::uint32_t first,
                  std::uint32_t plane, float* reflectivity) {
  const std::uint64_t part_plane = std::uint64_t{record.part_y} * record.box_x;
  for (std::uint32_t i = 0; i < batch; ++i) {
    const std::uint32_t c = first + i;
    const float depth = (record.model.sample_plane + static_cast<float>(plane)) - lines.depth_shift[c];
    const numerics::AxisCell z = numerics::axis_cell(depth, record.box_z);
    const float* const low = texture + (z.low - record.part_first_z) * part_plane;
    const float* const high = texture + (z.high - record.part_first_z) * part_plane;
    const auto& corners = lines.corners[c];
    const auto& weights = lines.weights[c];
    float sum = (weights[0] * z.low_weight) * low[corners[0]];
    for (std::size_t k = 1; k < 4; ++k) sum = sum + (weights[k] * z.low_weight) * low[corners[k]];
    for (std::size_t k = 0; k < 4; ++k) sum = sum + (weights[k] * z.high_weight) * high[corners[k]];
    reflectivity[i] = sum;
  }
}

// gamma_speckle() of a batch, times the values.
template <class Number>
CGL_INLINE void speckle_batch(const TileVoxelsRecord& record, std::uint32_t first_voxel, numerics::SimdLevel level,
                              float* values) {
  std::array<std::uint32_t, batch> index{};
  for (std::uint32_t i = 0; i < batch; ++i) index[i] = first_voxel + i;
  std::array<float, batch> sums{};
  std::array<float, batch> shares{};
  DrawnWords drawn;
  for (std::uint32_t first = 0; first < record.speckle_shape; first += 4) {
    draw_blocks({record.key_low, record.key_high}, index.data(), speckle_counter(0, record.tile), first / 4, drawn,
                level);
    for (std::uint32_t w = 0; w < 4 && first + w < record.speckle_shape; ++w) {
      for (std::uint32_t i = 0; i < batch; ++i) shares[i] = share_from_word(drawn.word[w][i]);
      for (std::size_t i = 0; i < batch; i += static_cast<std::size_t>(Number::width)) {
        (Number::load(&sums[i]) + numerics::logarithm(Number::load(&shares[i]))).store(&sums[i]);
      }
    }
  }
  const Number shape(static_cast<float>(record.speckle_shape));
  for (std::size_t i = 0; i < batch; i += static_cast<std::size_t>(Number::width)) {
    (Number::load(values + i) * (-Number::load(&sums[i]) / shape)).store(values + i);
  }
}

void voxel_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<TileVoxelsRecord>();
  const numerics::SimdLevel level = numerics::best_simd_level();
  const std::uint32_t row = record.first_y + piece;
  const RowLines lines = lines_of_row(record, row);
  const std::size_t columns = lines.surface.size();
  std::vector<LineSource> sources(record.lines);
  for (std::uint32_t l = 0; l < record.lines; ++l) {
    sources[l] = line_source(l, record.tile_x, record.last_line, record.extra_lines);
  }
  std::vector<float> block(planes_of_block * columns);
  for (std::uint32_t first_z = 0; first_z < record.z; first_z += planes_of_block) {
    const std::uint32_t count = std::min(planes_of_block, record.z - first_z);
    for (std::uint32_t z = 0; z < count; ++z) {
      const std::uint32_t plane = record.first_z + first_z + z;
      for (std::uint32_t c = 0; c < columns; c += batch) {
        float* const values = &block[z * columns + c];
        sample_batch(record, call.at[0], lines, c, plane, values);
        numerics::with_packs<float>(
            [&]<class Number>() {
              for (std::uint32_t i = 0; i < batch; i += static_cast<std::uint32_t>(Number::width)) {
                mean_intensity(record.model, Number::load(&lines.surface[c + i]), Number::load(&lines.flat[c + i]),
                               Number::load(&lines.in_tissue[c + i]) > Number(0.5f), static_cast<float>(plane),
                               Number::load(values + i))
                    .store(values + i);
              }
              if (record.speckle_shape > 0) {
                speckle_batch<Number>(record, (plane * record.tile_y + row) * record.tile_x + c, level, values);
              }
            },
            level);
      }
    }
    if (record.as_acquired != 0) {
      for (std::uint32_t l = 0; l < record.lines; ++l) {
        float* const to = call.at[1] + (std::uint64_t{piece} * record.lines + l) * record.z + first_z;
        const float* const from = &block[sources[l].column];
        for (std::uint32_t z = 0; z < count; ++z) to[z] = sources[l].share * from[z * columns];
      }
    } else {
      for (std::uint32_t z = 0; z < count; ++z) {
        float* const to = call.at[1] + (std::uint64_t{first_z + z} * record.y + piece) * record.lines;
        const float* const from = &block[z * columns];
        for (std::uint32_t l = 0; l < record.lines; ++l) to[l] = sources[l].share * from[sources[l].column];
      }
    }
  }
}

}  // namespace

constinit const HostKernel host_texture_noise = {plane_pieces<TextureNoiseRecord>, noise_piece};
constinit const HostKernel host_exponentiate = {plane_pieces<ExponentiateRecord>, exponentiate_piece};
constinit const HostKernel host_tile_voxels = {row_pieces<TileVoxelsRecord>, voxel_piece};

}  // namespace cingulum::oct
