#include "tract/field/amplitude_cutoff.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include "base/quantity.hpp"
#include "dmri/models/spherical_function.hpp"
#include "numerics/classify.hpp"

namespace cingulum {
namespace {

// A series is sampled for so many voxels at a time: the amplitudes of all would be larger than the file.
constexpr std::size_t voxels_at_a_time = 4096;

float finite_or_zero(float value) {
  return numerics::is_finite(value) ? value : 0.0f;
}

Result<std::vector<float>> greatest_of_harmonics(const FieldFile& file, const Sphere& sphere, ThreadPool& pool) {
  const auto count = static_cast<std::size_t>(file.image.geometry.voxel_count());
  const auto coefficients = static_cast<std::size_t>(file.image.volumes);
  CGL_TRY_ASSIGN(const SampledHarmonics sampled, harmonics_of_file(file, sphere));
  std::vector<float> greatest(count, 0.0f);
  std::vector<std::size_t> voxels;
  std::vector<float> values;
  const auto sample = [&]() -> Status {
    CGL_TRY_ASSIGN(const auto amplitudes, sample_harmonics(sampled.basis, values, sampled.directions, true, pool));
    const std::size_t directions = sampled.directions.size();
    for (std::size_t i = 0; i < voxels.size(); ++i) {
      const auto begin = amplitudes.begin() + static_cast<std::ptrdiff_t>(i * directions);
      greatest[voxels[i]] = *std::max_element(begin, begin + static_cast<std::ptrdiff_t>(directions));
    }
    voxels.clear();
    values.clear();
    return {};
  };
  const VolumeArray numbers = file.numbers();
  std::vector<float> rows(coefficients * voxels_at_a_time);
  for (std::size_t begin = 0; begin < count; begin += voxels_at_a_time) {
    const std::size_t piece = std::min(voxels_at_a_time, count - begin);
    for (std::size_t c = 0; c < coefficients; ++c) numbers.read(c, begin, std::span(rows).subspan(c * piece, piece));
    for (std::size_t v = 0; v < piece; ++v) {
      bool some = false;
      for (std::size_t c = 0; c < coefficients && !some; ++c) some = finite_or_zero(rows[c * piece + v]) != 0.0f;
      if (!some) continue;
      voxels.push_back(begin + v);
      for (std::size_t c = 0; c < coefficients; ++c) values.push_back(finite_or_zero(rows[c * piece + v]));
    }
    if (!voxels.empty()) CGL_TRY(sample());
  }
  return greatest;
}

std::vector<float> greatest_of_amplitudes(const VolumeArray& numbers, ThreadPool& pool) {
  std::vector<float> greatest(numbers.voxels(), 0.0f);
  pool.parallel_for(numbers.voxels(), voxels_at_a_time, [&](std::size_t begin, std::size_t end) {
    std::vector<float> row(end - begin);
    for (std::size_t volume = 0; volume < numbers.volumes(); ++volume) {
      numbers.read(volume, begin, row);
      for (std::size_t v = begin; v < end; ++v) greatest[v] = std::max(greatest[v], finite_or_zero(row[v - begin]));
    }
  });
  return greatest;
}

std::vector<float> greatest_of_peaks(const VolumeArray& numbers, ThreadPool& pool) {
  std::vector<float> greatest(numbers.voxels(), 0.0f);
  pool.parallel_for(numbers.voxels(), voxels_at_a_time, [&](std::size_t begin, std::size_t end) {
    std::vector<float> x(end - begin), y(end - begin), z(end - begin);
    for (std::size_t volume = 0; volume + 2 < numbers.volumes(); volume += 3) {
      numbers.read(volume, begin, x);
      numbers.read(volume + 1, begin, y);
      numbers.read(volume + 2, begin, z);
      for (std::size_t i = 0; i < x.size(); ++i) {
        const numerics::Vec3d peak{static_cast<double>(x[i]), static_cast<double>(y[i]), static_cast<double>(z[i])};
        float& so_far = greatest[begin + i];
        so_far = std::max(so_far, finite_or_zero(static_cast<float>(length(peak))));
      }
    }
  });
  return greatest;
}

std::string_view argument_of(FieldFileKind kind) {
  if (kind == FieldFileKind::amplitudes) return "sf";
  return kind == FieldFileKind::harmonics ? "sh" : "peaks";
}

}  // namespace

Result<std::vector<float>> greatest_amplitudes(const FieldFile& file, const Sphere& sphere, ThreadPool& pool) {
  return catch_out_of_memory([&]() -> Result<std::vector<float>> {
    switch (file.request.kind) {
      case FieldFileKind::amplitudes: return greatest_of_amplitudes(file.numbers(), pool);
      case FieldFileKind::harmonics: return greatest_of_harmonics(file, sphere, pool);
      case FieldFileKind::peaks: return greatest_of_peaks(file.numbers(), pool);
      case FieldFileKind::tensor: break;
    }
    return fail(ErrorKind::invalid_state, "tensors have no amplitudes");
  });
}

Result<CutoffReach> check_cutoff(const FieldFile& file, std::span<const float> greatest,
                                 std::span<const std::uint8_t> mask, double cutoff) {
  CutoffReach reach;
  std::vector<float> some;
  for (std::size_t v = 0; v < greatest.size(); ++v) {
    if ((!mask.empty() && mask[v] == 0) || !(greatest[v] > 0.0f)) continue;
    some.push_back(greatest[v]);
    if (greatest[v] > static_cast<float>(cutoff)) ++reach.above;
  }
  reach.voxels = some.size();
  if (!some.empty()) {
    const auto middle = some.begin() + static_cast<std::ptrdiff_t>(some.size() / 2);
    std::nth_element(some.begin(), middle, some.end());
    reach.median_greatest = static_cast<double>(*middle);
  }
  if (reach.voxels > 0 && 10 * reach.above >= reach.voxels) return reach;
  return fail_file(file.request.path.string(), ErrorKind::not_found,
                   "{} {}: {} of {} voxels {} have an amplitude above {} {}, and a tenth should; the median of the "
                   "voxels' greatest amplitudes is {:.4g}. Give another {}, or a map by {}",
                   argument_name(argument_of(file.request.kind)), file.request.path.string(), format_count(reach.above),
                   format_count(reach.voxels), mask.empty() ? "with amplitudes" : "of the mask with amplitudes",
                   argument_name("amplitude_cutoff"), cutoff, reach.median_greatest, argument_name("amplitude_cutoff"),
                   argument_name("stop_map"));
}

}  // namespace cingulum
