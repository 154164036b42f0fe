#include "oct/fits/axial_corrections.hpp"

#include <algorithm>
#include <cmath>

#include "base/argument_name.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/pack.hpp"
#include "oct/kernel/attenuation_line.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

constexpr double natural_logarithm_of_10 = 0x1.26bb1bbb55516p+1;

// In units of the noise floor: the least value of a voxel of tissue before the floor is subtracted.
constexpr float darkest_tissue_voxel = 1 + 0x1p-10f;

std::vector<double> values_where(std::span<const float> from, const std::vector<bool>& where) {
  std::vector<double> values;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (where[i]) values.push_back(static_cast<double>(from[i]));
  }
  return values;
}

// The median over a window of size x size (offsets -size/2 to size - size/2 - 1), edges repeated by mirroring.
void median_of_plane(std::span<const float> plane, std::size_t rows, std::size_t columns, std::size_t size,
                     std::span<float> result) {
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
}

}  // namespace

std::vector<bool> agarose_lines(const HostImage& mean_projection, double smoothing_px) {
  const HostImage mean = smooth_image(mean_projection, smoothing_px);
  const double threshold = otsu_threshold(mean.values);
  std::vector<bool> agarose;
  for (const double value : mean.values) agarose.push_back(value > 0 && value < threshold);
  return agarose;
}

Result<std::vector<double>> axial_profile(const SlabVolume& volume, const std::vector<bool>& agarose,
                                          ThreadPool* pool) {
  const auto lines = static_cast<double>(std::count(agarose.begin(), agarose.end(), true));
  if (lines == 0) return fail(ErrorKind::corrupt, "axial profile: no A-line is darker than the tissue around it");
  std::vector<double> profile(volume.planes(), 0.0);
  CGL_TRY(volume.look_at_slabs([&](std::size_t first, const HostVolume& slab) -> Status {
    for_each_index(pool, slab.planes, [&](std::size_t z) {
      const std::span<const float> plane = slab.plane(z);
      double sum = 0;
      for (std::size_t i = 0; i < plane.size(); ++i) {
        if (agarose[i]) sum += static_cast<double>(plane[i]);
      }
      profile[first + z] = sum / lines;
    });
    return {};
  }));
  for (std::size_t z = 0; z < profile.size(); ++z) {
    if (!(profile[z] > 0)) return fail(ErrorKind::corrupt, "axial profile: plane {} of the agarose is not above 0", z);
  }
  return profile;
}

Status divide_by_profile(SlabVolume& volume, std::span<const double> profile, ThreadPool* pool) {
  const double least = *std::min_element(profile.begin(), profile.end());
  return volume.change_slabs([&](std::size_t first, HostVolume& slab) -> Status {
    for_each_index(pool, slab.planes, [&](std::size_t z) {
      const double factor = 1 + (profile[first + z] - least) / least;
      for (float& value : slab.plane(z)) value = static_cast<float>(static_cast<double>(value) / factor);
    });
    return {};
  });
}

Result<AttenuationMethod> parse_attenuation_method(std::string_view name) {
  if (name == "vermeer") return AttenuationMethod::vermeer;
  if (name == "smith") return AttenuationMethod::smith;
  if (name == "liu") return AttenuationMethod::liu;
  if (name == "li") return AttenuationMethod::li;
  return fail_argument("method", "{} '{}': accepted are vermeer, smith, liu, li", argument_name("method"), name);
}

namespace {

struct AttenuationNumbers {
  AttenuationEnd end_how = AttenuationEnd::liu;
  bool li = false;
  float floor = 0, cut = 0;  // li: the line ends behind the last plane above `cut`
  float strength = 0, least = 0;
};

AttenuationNumbers attenuation_numbers(const AttenuationOptions& options, double noise_floor) {
  AttenuationNumbers numbers;
  numbers.li = options.method == AttenuationMethod::li;
  if (options.method == AttenuationMethod::vermeer) numbers.end_how = AttenuationEnd::vermeer;
  if (options.method == AttenuationMethod::smith) numbers.end_how = AttenuationEnd::smith;
  numbers.floor = static_cast<float>(noise_floor);
  numbers.cut =
      static_cast<float>(noise_floor * numerics::exponential(options.least_db / 10.0 * natural_logarithm_of_10));
  numbers.strength = -static_cast<float>(2 * options.strength);
  numbers.least = static_cast<float>(options.least_transmission);
  return numbers;
}

// A voxel below so much optical depth.
CGL_INLINE float brightened(float value, float depth, const AttenuationNumbers& numbers) {
  // The floor is no light that tissue sent back: dividing it would make deep planes bright.
  const float above_floor = value - numbers.floor;
  const float lit = numbers.li ? (value > numbers.floor ? above_floor : 0.0f) : value;
  return compensated(lit, depth, numbers.strength, numbers.least);
}

// The line ends behind the last plane that stands clear of the noise.
template <class Raw>
std::uint32_t end_of_line(const Raw& raw, std::size_t planes, const AttenuationNumbers& numbers) {
  auto end = static_cast<std::uint32_t>(planes);
  while (numbers.li && end > 0 && !(raw(end - 1) >= numbers.cut)) --end;
  return end;
}

// Outside tissue: the darker class of Otsu over the logarithms of voxels, on a sample of them.
Result<double> darker_class_level(const SlabVolume& volume) {
  std::vector<double> logarithms;
  const std::size_t step = std::max<std::size_t>(1, volume.planes() * volume.plane_size() / 200000);
  CGL_TRY(volume.look_at_slabs([&](std::size_t first, const HostVolume& slab) -> Status {
    // Every step-th voxel, counted from the volume's first.
    const std::size_t begin = first * slab.plane_size();
    for (std::size_t i = (begin + step - 1) / step * step - begin; i < slab.values.size(); i += step) {
      if (slab.values[i] > 0) logarithms.push_back(numerics::logarithm(static_cast<double>(slab.values[i])));
    }
    return {};
  }));
  const double threshold = otsu_threshold(logarithms);
  std::erase_if(logarithms, [&](double value) { return value >= threshold; });
  return logarithms.empty() ? 0 : numerics::exponential(median(logarithms));
}

// Means over blocks of the pixels that hold something; 0 where none does.
Result<HostVolume> block_means(const SlabVolume& volume, std::size_t block, ThreadPool* pool) {
  HostVolume means(volume.planes(), (volume.rows() + block - 1) / block, (volume.columns() + block - 1) / block);
  CGL_TRY(volume.look_at_slabs([&](std::size_t first, const HostVolume& slab) -> Status {
    for_each_index(pool, slab.planes * means.rows, [&](std::size_t line) {
      const std::size_t z = line / means.rows, row = line % means.rows;
      for (std::size_t column = 0; column < means.columns; ++column) {
        double sum = 0, count = 0;
        for (std::size_t r = row * block; r < std::min(slab.rows, (row + 1) * block); ++r) {
          for (std::size_t c = column * block; c < std::min(slab.columns, (column + 1) * block); ++c) {
            const float value = slab.at(z, r, c);
            if (!(value > 0)) continue;
            sum += static_cast<double>(value);
            count += 1;
          }
        }
        means.at(first + z, row, column) = count > 0 ? static_cast<float>(sum / count) : 0.0f;
      }
    });
    return {};
  }));
  return means;
}

// Where a pixel lies between the centres of blocks, and how far to the next.
struct BlockPlace {
  std::size_t low = 0, high = 0;
  float part = 0;
};
BlockPlace block_place(std::size_t pixel, std::size_t block, std::size_t blocks) {
  const double at = (static_cast<double>(pixel) + 0.5) / static_cast<double>(block) - 0.5;
  const double inside = std::clamp(at, 0.0, static_cast<double>(blocks - 1));
  BlockPlace place;
  place.low = static_cast<std::size_t>(inside);
  place.high = std::min(place.low + 1, blocks - 1);
  place.part = static_cast<float>(inside - static_cast<double>(place.low));
  return place;
}

// Columns [begin, end) between the centres `low` and `high`, in `block`.
struct BlockRun {
  std::size_t begin = 0, end = 0;
  std::size_t low = 0, high = 0, block = 0;
};

// Optical depths at the four centres around a run of a row: above left and right, below left and right, and how far the
// row is from the upper ones to the lower.
struct BlockDepths {
  float a = 0, b = 0, d = 0, e = 0;
  float down = 0;
};

// `clear`: the block stands clear of the noise.
CGL_SIMD_CLONES void compensate_run(float* row, std::size_t count, const float* parts, const BlockDepths& around,
                                    bool clear, const AttenuationNumbers& numbers) {
  const AttenuationNumbers n = numbers;
  const BlockDepths depth = around;
  // A voxel no brighter than the noise, in a block that stands clear of it, is dark speckle: it stays above 0, which
  // would mean that nothing is there, and take its neighbours with it when slices are placed.
  const float darkest = n.floor * darkest_tissue_voxel;
  const bool lifts = n.li && clear;
  for (std::size_t i = 0; i < count; ++i) {
    const float raw = row[i];
    const bool dark = lifts & (raw > 0.0f) & !(raw > n.floor);
    const float above = depth.a + parts[i] * (depth.b - depth.a);
    const float below = depth.d + parts[i] * (depth.e - depth.d);
    row[i] = brightened(dark ? darkest : raw, above + depth.down * (below - above), n);
  }
}

Result<AttenuationReport> compensate_by_blocks(SlabVolume& volume, const AttenuationOptions& options,
                                               AttenuationReport report) {
  const AttenuationNumbers numbers = attenuation_numbers(options, report.noise_floor);
  CGL_TRY_ASSIGN(const HostVolume means, block_means(volume, options.block_px, options.pool));
  const std::size_t plane = means.plane_size();
  // The mean line of the bright ones, which are tissue, for the decay at its end.
  std::vector<double> light(plane, 0.0);
  for (std::size_t z = 0; z < means.planes; ++z) {
    for (std::size_t block = 0; block < plane; ++block) light[block] += static_cast<double>(means.plane(z)[block]);
  }
  constexpr double bright_share = 0.5;
  const double bright = bright_share * *std::max_element(light.begin(), light.end());
  std::vector<float> line(means.planes);
  for (std::size_t z = 0; z < means.planes; ++z) {
    double sum = 0, count = 0;
    for (std::size_t block = 0; block < plane; ++block) {
      if (light[block] < bright) continue;
      sum += static_cast<double>(means.plane(z)[block]);
      count += 1;
    }
    line[z] = static_cast<float>(sum / count);
  }
  const auto raw_line = [&](std::uint32_t z) { return line[z]; };
  const std::uint32_t line_end = end_of_line(raw_line, means.planes, numbers);
  const auto lower = std::max<std::uint32_t>(2, 3 * (line_end / 4));
  const float decay =
      line_end < lower ? 0.0f : end_decay([&](std::uint32_t z) { return line[z] - numbers.floor; }, line_end, lower);
  HostVolume depths(means.planes, means.rows, means.columns);
  double sum = 0, count = 0;
  for (std::size_t block = 0; block < plane; ++block) {
    const auto raw = [&](std::uint32_t z) { return means.values[block + z * plane]; };
    const auto at = [&](std::uint32_t z) { return raw(z) - numbers.floor; };
    const std::uint32_t end = end_of_line(raw, means.planes, numbers);
    const std::uint32_t fitted = std::min(options.end_planes, end);
    const float below = fitted < 2 ? 0.0f : light_below(at, end, fitted, numbers.end_how, decay);
    std::vector<float> mu(means.planes, 0.0f);
    attenuation_along(at, end, below, [&](std::uint32_t z, float value) { mu[z] = value; });
    float depth = 0.0f;
    for (std::size_t z = 0; z < means.planes; ++z) {
      depths.values[block + z * plane] = depth;
      depth = depth + mu[z];
      if (z >= end) continue;
      sum += static_cast<double>(mu[z]);
      count += 1;
    }
  }
  report.mean_attenuation = count > 0 ? sum / count : 0;
  // Columns between the same centres and in the same block are one run.
  std::vector<BlockRun> runs;
  std::vector<float> parts;
  for (std::size_t c = 0; c < volume.columns(); ++c) {
    const BlockPlace place = block_place(c, options.block_px, means.columns);
    const std::size_t block = c / options.block_px;
    parts.push_back(place.part);
    if (!runs.empty() && runs.back().block == block && runs.back().low == place.low && runs.back().high == place.high) {
      runs.back().end = c + 1;
    } else {
      runs.push_back({c, c + 1, place.low, place.high, block});
    }
  }
  CGL_TRY(volume.change_slabs([&](std::size_t first, HostVolume& slab) -> Status {
    for_each_index(options.pool, slab.planes * slab.rows, [&](std::size_t row_number) {
      const std::size_t z = first + row_number / slab.rows;
      const BlockPlace down = block_place(row_number % slab.rows, options.block_px, means.rows);
      float* const row = slab.values.data() + row_number * slab.columns;
      const float* const block_row = means.values.data() + means.index(z, row_number % slab.rows / options.block_px, 0);
      for (const BlockRun& run : runs) {
        const BlockDepths depth{depths.at(z, down.low, run.low), depths.at(z, down.low, run.high),
                                depths.at(z, down.high, run.low), depths.at(z, down.high, run.high), down.part};
        compensate_run(row + run.begin, run.end - run.begin, parts.data() + run.begin, depth,
                       block_row[run.block] >= numbers.cut, numbers);
      }
    });
    return {};
  }));
  return report;
}

}  // namespace

Result<AttenuationReport> compensate_attenuation(SlabVolume& volume, const AttenuationOptions& options) {
  return catch_out_of_memory([&]() -> Result<AttenuationReport> {
    AttenuationReport report;
    const auto find_floor = [&](const SlabVolume& from) -> Status {
      if (options.method != AttenuationMethod::li) return {};
      if (options.noise_floor) {
        report.noise_floor = *options.noise_floor;
        return {};
      }
      CGL_TRY_ASSIGN(report.noise_floor, darker_class_level(from));
      return {};
    };
    if (options.block_px > 0) {
      CGL_TRY(find_floor(volume));
      return compensate_by_blocks(volume, options, report);
    }
    CGL_TRY_ASSIGN(SlabVolume smooth, volume.another());
    const auto take_medians = [&](std::size_t first, HostVolume& slab) -> Status {
      CGL_TRY(volume.read_box({first, slab.planes, 0, slab.rows}, slab.values));
      if (options.window <= 1) return {};
      for_each_index(options.pool, slab.planes, [&](std::size_t z) {
        const std::vector<float> plane(slab.plane(z).begin(), slab.plane(z).end());
        median_of_plane(plane, slab.rows, slab.columns, options.window, slab.plane(z));
      });
      return {};
    };
    CGL_TRY(smooth.make_slabs(take_medians));
    CGL_TRY(find_floor(smooth));
    const AttenuationNumbers numbers = attenuation_numbers(options, report.noise_floor);
    std::vector<double> sums(volume.rows(), 0.0);
    std::vector<double> counts(volume.rows(), 0.0);
    HostVolume held;
    const auto correct_lines = [&](std::size_t first_row, HostVolume& band) -> Status {
      CGL_TRY_ASSIGN(const HostVolume* const smoothed, smooth.band(first_row, band.rows, held));
      const std::size_t plane = band.plane_size();
      for_each_index(options.pool, band.rows, [&](std::size_t row) {
        std::vector<float> mu(band.planes);
        for (std::size_t column = 0; column < band.columns; ++column) {
          const std::size_t first = row * band.columns + column;
          const auto raw = [&](std::uint32_t z) { return smoothed->values[first + z * plane]; };
          const auto at = [&](std::uint32_t z) { return raw(z) - numbers.floor; };
          const std::uint32_t end = end_of_line(raw, band.planes, numbers);
          const std::uint32_t fitted = std::min(options.end_planes, end);
          const float below = light_below(at, end, fitted, numbers.end_how);
          std::fill(mu.begin(), mu.end(), 0.0f);
          attenuation_along(at, end, below, [&](std::uint32_t z, float value) { mu[z] = value; });
          float depth = 0.0f;  // optical, above the plane
          for (std::size_t z = 0; z < band.planes; ++z) {
            float& value = band.values[first + z * plane];
            value = brightened(value, depth, numbers);
            depth = depth + mu[z];
            if (z < end) {
              sums[first_row + row] += static_cast<double>(mu[z]);
              counts[first_row + row] += 1;
            }
          }
        }
      });
      return {};
    };
    CGL_TRY(volume.change_bands(correct_lines));
    double sum = 0, count = 0;
    for (std::size_t r = 0; r < sums.size(); ++r) {
      sum += sums[r];
      count += counts[r];
    }
    report.mean_attenuation = count > 0 ? sum / count : 0;
    return report;
  });
}

Result<NormaliseReport> normalise_planes(SlabVolume& volume, const NormaliseOptions& options) {
  NormaliseReport report;
  CGL_TRY_ASSIGN(const HostImage mean, mean_projection(volume, options.pool));
  const std::vector<bool> agarose = agarose_lines(mean, options.smoothing_px);
  report.backgrounds.assign(volume.planes(), 0.0);
  std::vector<double> caps(volume.planes(), 0.0), spans(volume.planes(), 0.0);
  CGL_TRY(volume.look_at_slabs([&](std::size_t first, const HostVolume& slab) -> Status {
    for_each_index(options.pool, slab.planes, [&](std::size_t k) {
      const std::span<const float> plane = slab.plane(k);
      const std::size_t z = first + k;
      caps[z] = percentile(std::vector<double>(plane.begin(), plane.end()), options.cap_share);
      report.backgrounds[z] = median(values_where(plane, agarose));
      spans[z] = std::max(0.0, caps[z] - report.backgrounds[z]);
    });
    return {};
  }));
  report.span = percentile(spans, options.span_share);
  if (!(report.span > 0)) return fail(ErrorKind::corrupt, "normalising: the planes hold nothing above the agarose");
  CGL_TRY(volume.change_slabs([&](std::size_t first, HostVolume& slab) -> Status {
    for_each_index(options.pool, slab.planes, [&](std::size_t k) {
      const double cap = caps[first + k], background = report.backgrounds[first + k];
      for (float& value : slab.plane(k)) {
        // Rounded to a voxel's precision between both steps.
        const auto above = static_cast<float>(std::max(0.0, std::min(static_cast<double>(value), cap) - background));
        value = static_cast<float>(static_cast<double>(above) / report.span);
      }
    });
    return {};
  }));
  return report;
}

}  // namespace cingulum::oct
