// Ranks, medians, blends and attenuation on the CPU.
#include <algorithm>
#include <atomic>
#include <vector>

#include "oct/cpu/host_kernels.hpp"
#include "oct/kernel/attenuation_line.hpp"
#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel/line_index.hpp"
#include "oct/kernel/ordered_key.hpp"

namespace cingulum::oct {
namespace {

constexpr std::uint32_t keys_per_piece = 1u << 18;

std::uint32_t count_pieces(const KernelPointers& call) {
  const std::uint32_t count = call.record<CountKeysRecord>().count;
  return count / keys_per_piece + (count % keys_per_piece != 0 ? 1 : 0);
}

void count_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<CountKeysRecord>();
  const std::uint64_t first = std::uint64_t{piece} * keys_per_piece;
  const std::uint64_t end = std::min<std::uint64_t>(first + keys_per_piece, record.count);
  std::vector<std::uint32_t> counts(record.bins);
  for (std::uint64_t i = first; i < end; ++i) {
    const std::uint32_t key = ordered_key(call.at[0][i]);
    if (key < record.least_key || (record.prefix_shift < 32 && key >> record.prefix_shift != record.prefix)) continue;
    ++counts[(key >> record.shift) & (record.bins - 1)];
  }
  auto* const totals = reinterpret_cast<std::uint32_t*>(call.at[1]);
  for (std::uint32_t bin = 0; bin < record.bins; ++bin) {
    if (counts[bin] != 0) std::atomic_ref(totals[bin]).fetch_add(counts[bin], std::memory_order_relaxed);
  }
}

void blend_add_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<BlendAddRecord>();
  for (std::uint32_t y = 0; y < record.y; ++y) {
    const std::uint64_t pixel = (std::uint64_t{record.tile_first_y} + y) * record.tile_x + record.tile_first_x;
    const std::uint64_t place =
        (std::uint64_t{piece} * record.sum_y + record.sum_first_y + y) * record.sum_x + record.sum_first_x;
    const float* const values = call.at[0] + std::uint64_t{piece} * record.tile_y * record.tile_x + pixel;
    const float* const weights = call.at[1] + pixel;
    for (std::uint32_t x = 0; x < record.x; ++x) {
      call.at[2][place + x] = call.at[2][place + x] + weights[x] * values[x];
      call.at[3][place + x] = call.at[3][place + x] + weights[x];
    }
  }
}

void blend_finish_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<BlendFinishRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  for (std::uint64_t i = piece * plane; i < (piece + std::uint64_t{1}) * plane; ++i) {
    call.at[2][i] = call.at[1][i] > 0.0f ? call.at[0][i] / call.at[1][i] : 0.0f;
  }
}

std::uint32_t median_pieces(const KernelPointers& call) {
  const auto record = call.record<MedianBoxRecord>();
  return record.z * record.y;
}

void median_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<MedianBoxRecord>();
  const auto z = static_cast<std::int32_t>(piece / record.y);
  const auto y = static_cast<std::int32_t>(piece % record.y);
  const auto below = [](std::uint32_t size) { return static_cast<std::int32_t>(size / 2); };
  std::vector<std::uint32_t> keys;
  for (std::int32_t x = 0; x < static_cast<std::int32_t>(record.x); ++x) {
    keys.clear();
    for (std::int32_t k = 0; k < static_cast<std::int32_t>(record.size_z); ++k) {
      const std::int32_t iz = reflected(z - below(record.size_z) + k, static_cast<std::int32_t>(record.z));
      for (std::int32_t j = 0; j < static_cast<std::int32_t>(record.size_y); ++j) {
        const std::int32_t iy = reflected(y - below(record.size_y) + j, static_cast<std::int32_t>(record.y));
        const float* const row =
            call.at[0] + (static_cast<std::uint64_t>(iz) * record.y + static_cast<std::uint64_t>(iy)) * record.x;
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(record.size_x); ++i) {
          keys.push_back(
              ordered_key(row[reflected(x - below(record.size_x) + i, static_cast<std::int32_t>(record.x))]));
        }
      }
    }
    const auto middle = keys.begin() + static_cast<std::ptrdiff_t>(keys.size() / 2);
    std::nth_element(keys.begin(), middle, keys.end());
    call.at[1][std::uint64_t{piece} * record.x + static_cast<std::uint64_t>(x)] = value_of_key(*middle);
  }
}

void attenuation_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<AttenuationRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t first = std::uint64_t{piece} * record.x;
  std::vector<float> below(record.x);
  for (std::uint32_t x = 0; x < record.x; ++x) below[x] = record.tail_factor * call.at[1][first + x];
  for (std::uint32_t z = record.z; z > 0; --z) {
    const float* const row = call.at[0] + (z - 1) * plane + first;
    float* const out = call.at[2] + (z - 1) * plane + first;
    for (std::uint32_t x = 0; x < record.x; ++x) {
      const float value = row[x] > 0.0f ? row[x] : 0.0f;
      out[x] = attenuation_of(value, below[x], record.scale);
      below[x] = below[x] + value;
    }
  }
}

void compensation_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<CompensationRecord>();
  const std::uint64_t plane = std::uint64_t{record.y} * record.x;
  const std::uint64_t first = std::uint64_t{piece} * record.x;
  std::vector<float> depth(record.x, 0.0f);
  for (std::uint32_t z = 0; z < record.z; ++z) {
    const std::uint64_t row = z * plane + first;
    for (std::uint32_t x = 0; x < record.x; ++x) {
      call.at[2][row + x] = compensated(call.at[0][row + x], depth[x], record.strength, record.least);
      depth[x] = depth[x] + call.at[1][row + x] * record.step;
    }
  }
}

}  // namespace

constinit const HostKernel host_count_keys = {count_pieces, count_piece};
constinit const HostKernel host_blend_add = {plane_pieces<BlendAddRecord>, blend_add_piece};
constinit const HostKernel host_blend_finish = {plane_pieces<BlendFinishRecord>, blend_finish_piece};
constinit const HostKernel host_median_box = {median_pieces, median_piece};
constinit const HostKernel host_attenuation_lines = {row_pieces<AttenuationRecord>, attenuation_piece};
constinit const HostKernel host_compensate_lines = {row_pieces<CompensationRecord>, compensation_piece};

}  // namespace cingulum::oct
