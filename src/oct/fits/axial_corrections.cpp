#include "oct/fits/axial_corrections.hpp"

#include <algorithm>
#include <cmath>

#include "base/argument_name.hpp"
#include "numerics/elementary64.hpp"
#include "oct/fits/attenuation_line.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

constexpr double natural_logarithm_of_10 = 0x1.26bb1bbb55516p+1;

std::vector<double> plane_values(const HostVolume& volume, std::size_t plane, const std::vector<bool>& where) {
  std::vector<double> values;
  const std::span<const float> from = volume.plane(plane);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (where[i]) values.push_back(static_cast<double>(from[i]));
  }
  return values;
}

}  // namespace

std::vector<bool> agarose_lines(const HostVolume& volume, double smoothing_px) {
  const HostImage mean = smooth_image(mean_projection(volume), smoothing_px);
  const double threshold = otsu_threshold(mean.values);
  std::vector<bool> agarose;
  for (const double value : mean.values) agarose.push_back(value > 0 && value < threshold);
  return agarose;
}

Result<std::vector<double>> axial_profile(const HostVolume& volume, const std::vector<bool>& agarose) {
  const auto lines = static_cast<double>(std::count(agarose.begin(), agarose.end(), true));
  if (lines == 0) return fail(ErrorKind::corrupt, "axial profile: no A-line is darker than the tissue around it");
  std::vector<double> profile(volume.planes, 0.0);
  for (std::size_t z = 0; z < volume.planes; ++z) {
    const std::span<const float> plane = volume.plane(z);
    for (std::size_t i = 0; i < plane.size(); ++i) {
      if (agarose[i]) profile[z] += static_cast<double>(plane[i]);
    }
    profile[z] /= lines;
    if (!(profile[z] > 0)) return fail(ErrorKind::corrupt, "axial profile: plane {} of the agarose is not above 0", z);
  }
  return profile;
}

void divide_by_profile(HostVolume& volume, std::span<const double> profile, ThreadPool* pool) {
  const double least = *std::min_element(profile.begin(), profile.end());
  for_each_index(pool, volume.planes, [&](std::size_t z) {
    const double factor = 1 + (profile[z] - least) / least;
    for (float& value : volume.plane(z)) value = static_cast<float>(static_cast<double>(value) / factor);
  });
}

Result<AttenuationMethod> parse_attenuation_method(std::string_view name) {
  if (name == "vermeer") return AttenuationMethod::vermeer;
  if (name == "smith") return AttenuationMethod::smith;
  if (name == "liu") return AttenuationMethod::liu;
  if (name == "li") return AttenuationMethod::li;
  return fail_argument("method", "{} '{}': accepted are vermeer, smith, liu, li", argument_name("method"), name);
}

PlaneFilter median_on_host(std::size_t size) {
  return [size](std::span<const float> plane, std::size_t rows, std::size_t columns, std::span<float> result) {
    const auto before = static_cast<std::ptrdiff_t>(size / 2);
    std::vector<float> window(size * size);
    for (std::size_t r = 0; r < rows; ++r) {
      for (std::size_t c = 0; c < columns; ++c) {
        std::size_t i = 0;
        for (std::size_t y = 0; y < size; ++y) {
          const std::size_t row = mirrored_index(static_cast<std::ptrdiff_t>(r + y) - before, rows);
          for (std::size_t x = 0; x < size; ++x) {
            window[i++] = plane[row * columns + mirrored_index(static_cast<std::ptrdiff_t>(c + x) - before, columns)];
          }
        }
        // SciPy's median of an even number: the upper of both middle values.
        const auto middle = window.begin() + static_cast<std::ptrdiff_t>(window.size() / 2);
        std::nth_element(window.begin(), middle, window.end());
        result[r * columns + c] = *middle;
      }
    }
  };
}

Result<AttenuationReport> compensate_attenuation(HostVolume& volume, const AttenuationOptions& options,
                                                 HostVolume* attenuation) {
  return catch_out_of_memory([&]() -> Result<AttenuationReport> {
    AttenuationReport report;
    HostVolume smooth = volume;
    if (options.filter) {
      for_each_index(options.pool, volume.planes, [&](std::size_t z) {
        options.filter(volume.plane(z), volume.rows, volume.columns, smooth.plane(z));
      });
    }
    const bool li = options.method == AttenuationMethod::li;
    if (li) {
      if (options.noise_floor) {
        report.noise_floor = *options.noise_floor;
      } else {
        // Outside tissue: the darker class of Otsu over the logarithms of voxels, on a sample of them.
        std::vector<double> logarithms;
        const std::size_t step = std::max<std::size_t>(1, smooth.values.size() / 200000);
        for (std::size_t i = 0; i < smooth.values.size(); i += step) {
          if (smooth.values[i] > 0) logarithms.push_back(numerics::logarithm(static_cast<double>(smooth.values[i])));
        }
        const double threshold = otsu_threshold(logarithms);
        std::erase_if(logarithms, [&](double value) { return value >= threshold; });
        report.noise_floor = logarithms.empty() ? 0 : numerics::exponential(median(logarithms));
      }
    }
    const auto end_how = options.method == AttenuationMethod::vermeer ? AttenuationEnd::vermeer
                         : options.method == AttenuationMethod::smith ? AttenuationEnd::smith
                                                                      : AttenuationEnd::liu;
    const auto floor_value = static_cast<float>(report.noise_floor);
    const auto cut = static_cast<float>(report.noise_floor *
                                        numerics::exponential(options.least_db / 10.0 * natural_logarithm_of_10));
    const auto strength = static_cast<float>(2 * options.strength);
    const auto least = static_cast<float>(options.least_transmission);
    const std::size_t plane = volume.plane_size();
    if (attenuation != nullptr) *attenuation = HostVolume(volume.planes, volume.rows, volume.columns);
    std::vector<double> sums(volume.rows, 0.0);
    std::vector<double> counts(volume.rows, 0.0);
    for_each_index(options.pool, volume.rows, [&](std::size_t row) {
      std::vector<float> mu(volume.planes);
      for (std::size_t column = 0; column < volume.columns; ++column) {
        const std::size_t first = row * volume.columns + column;
        const auto raw = [&](std::uint32_t z) { return smooth.values[first + z * plane]; };
        const auto at = [&](std::uint32_t z) { return raw(z) - floor_value; };
        auto end = static_cast<std::uint32_t>(volume.planes);
        // The line ends behind the last plane that stands clear of the noise.
        while (li && end > 0 && !(raw(end - 1) >= cut)) --end;
        const std::uint32_t fitted = std::min(options.end_planes, end);
        const float below = light_below(at, end, fitted, end_how);
        std::fill(mu.begin(), mu.end(), 0.0f);
        attenuation_along(at, end, below, [&](std::uint32_t z, float value) { mu[z] = value; });
        float depth = 0.0f;  // optical, above the plane
        for (std::size_t z = 0; z < volume.planes; ++z) {
          const float transmission = numerics::exponential(-(strength * depth));
          float& value = volume.values[first + z * plane];
          // The floor is no light that tissue sent back: dividing it would make deep planes bright.
          const float lit = li ? (value > floor_value ? value - floor_value : 0.0f) : value;
          value = lit / (transmission > least ? transmission : least);
          if (attenuation != nullptr) attenuation->values[first + z * plane] = mu[z];
          depth = depth + mu[z];
          if (z < end) {
            sums[row] += static_cast<double>(mu[z]);
            counts[row] += 1;
          }
        }
      }
    });
    double sum = 0, count = 0;
    for (std::size_t r = 0; r < sums.size(); ++r) {
      sum += sums[r];
      count += counts[r];
    }
    report.mean_attenuation = count > 0 ? sum / count : 0;
    return report;
  });
}

Result<NormaliseReport> normalise_planes(HostVolume& volume, const NormaliseOptions& options) {
  NormaliseReport report;
  const std::vector<bool> agarose = agarose_lines(volume, options.smoothing_px);
  report.backgrounds.assign(volume.planes, 0.0);
  std::vector<double> spans(volume.planes, 0.0);
  for_each_index(options.pool, volume.planes, [&](std::size_t z) {
    const std::span<float> plane = volume.plane(z);
    const double cap = percentile(std::vector<double>(plane.begin(), plane.end()), options.cap_share);
    report.backgrounds[z] = median(plane_values(volume, z, agarose));
    for (float& value : plane) {
      value = static_cast<float>(std::max(0.0, std::min(static_cast<double>(value), cap) - report.backgrounds[z]));
    }
    spans[z] = std::max(0.0, cap - report.backgrounds[z]);
  });
  report.span = percentile(spans, options.span_share);
  if (!(report.span > 0)) return fail(ErrorKind::corrupt, "normalising: the planes hold nothing above the agarose");
  for_each_index(options.pool, volume.planes, [&](std::size_t z) {
    for (float& value : volume.plane(z)) value = static_cast<float>(static_cast<double>(value) / report.span);
  });
  return report;
}

}  // namespace cingulum::oct
