// Volumes read at coordinates on the CPU, a row of the output at a time.
#include "numerics/pack.hpp"
#include "oct/cpu/host_kernels.hpp"
#include "oct/kernel/sample_item.hpp"

namespace cingulum::oct {
namespace {

constexpr std::uint32_t rows_per_strip = 16;

std::uint32_t sample_pieces(const KernelPointers& call) {
  const auto record = call.record<SampleVolumeRecord>();
  return record.out_z * ((record.out_y + rows_per_strip - 1) / rows_per_strip);
}

// Compiled for each instruction set, since floor is a call before SSE 4.1.
CGL_SIMD_CLONES void sample_row(const float* volume, const float* const (&coordinates)[3],
                                const SampleVolumeRecord& record, std::uint32_t z, std::uint32_t y, float* row) {
  if (record.order == 1) {
    // The order is known here, and the compiler leaves the others out.
    SampleVolumeRecord linear = record;
    linear.order = 1;
    for (std::uint32_t x = 0; x < record.out_x; ++x) row[x] = sampled_output(volume, coordinates, linear, z, y, x);
  } else {
    for (std::uint32_t x = 0; x < record.out_x; ++x) row[x] = sampled_output(volume, coordinates, record, z, y, x);
  }
}

void sample_piece(const KernelPointers& call, std::uint32_t piece) {
  const auto record = call.record<SampleVolumeRecord>();
  const std::uint32_t strips = (record.out_y + rows_per_strip - 1) / rows_per_strip;
  const std::uint32_t z = piece / strips;
  const std::uint32_t first = piece % strips * rows_per_strip;
  const float* const coordinates[3] = {call.at[1], call.at[2], call.at[3]};
  for (std::uint32_t y = first; y < record.out_y && y < first + rows_per_strip; ++y) {
    sample_row(call.at[0], coordinates, record, z, y, call.at[4] + (std::size_t{z} * record.out_y + y) * record.out_x);
  }
}

}  // namespace

constinit const HostKernel host_sample_volume = {sample_pieces, sample_piece};

}  // namespace cingulum::oct
