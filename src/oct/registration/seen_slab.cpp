#include "oct/registration/seen_slab.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "numerics/elementary64.hpp"
#include "numerics/pack_elementary.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

// The logarithm of the sum over some planes of a row; `seen` is 1 where none of them is empty, else 0. The value is how
// many pixels are not seen.
std::size_t log_of_sum(const float* from, std::size_t plane, std::size_t planes, std::size_t columns, double* to,
                       double* seen) {
  std::size_t unseen = 0;
  numerics::with_packs<double>([=, &unseen]<class Number>() {
    for (std::size_t c = 0; c < columns; ++c) {
      double sum = 0, here = 1;
      for (std::size_t z = 0; z < planes; ++z) {
        const float value = from[z * plane + c];
        sum += static_cast<double>(value);
        here = value > 0.0f ? here : 0.0;
      }
      to[c] = sum;
      seen[c] = here;
    }
    std::size_t c = 0;
    for (; c + Number::width <= columns; c += Number::width) numerics::logarithm(Number::load(to + c)).store(to + c);
    for (; c < columns; ++c) to[c] = numerics::logarithm(to[c]);
    for (c = 0; c < columns; ++c) unseen += seen[c] == 0.0 ? 1U : 0U;
  });
  return unseen;
}

}  // namespace

SeenImage all_seen(const HostImage& image) {
  SeenImage result{image, image};
  std::fill(result.seen.values.begin(), result.seen.values.end(), 1.0);
  return result;
}

SeenImage seen_slab(const HostVolume& volume, std::size_t first, std::size_t count, double smoothing_px,
                    ThreadPool* pool) {
  SeenImage slab = all_seen(HostImage(volume.rows, volume.columns));
  std::vector<std::size_t> unseen(volume.rows, 0);
  for_each_index(pool, volume.rows, [&](std::size_t row) {
    const std::size_t begin = row * volume.columns;
    unseen[row] = log_of_sum(volume.values.data() + first * volume.plane_size() + begin, volume.plane_size(), count,
                             volume.columns, slab.image.values.data() + begin, slab.seen.values.data() + begin);
  });
  const bool all = std::all_of(unseen.begin(), unseen.end(), [](std::size_t pixels) { return pixels == 0; });
  if (!all) {
    std::vector<double> logarithms;
    logarithms.reserve(slab.image.values.size());
    for (std::size_t i = 0; i < slab.image.values.size(); ++i) {
      if (slab.seen.values[i] != 0) logarithms.push_back(slab.image.values[i]);
    }
    const double middle = median(std::move(logarithms));
    for (std::size_t i = 0; i < slab.image.values.size(); ++i) {
      if (slab.seen.values[i] == 0) slab.image.values[i] = middle;
    }
  }
  slab.image = smooth_image(slab.image, smoothing_px, pool);
  // A smoothed mask is 1 where the window meets seen pixels alone.
  if (all) return slab;
  slab.seen = smooth_image(slab.seen, smoothing_px, pool);
  for (double& value : slab.seen.values) value = value < fully_seen ? 0 : 1;
  return slab;
}

void stretch(SeenImage& slab) {
  std::vector<double> values;
  values.reserve(slab.image.values.size());
  for (std::size_t i = 0; i < slab.image.values.size(); ++i) {
    if (slab.seen.values[i] > 0) values.push_back(slab.image.values[i]);
  }
  const std::vector<double> ends = percentiles(values, std::array{0.05, 0.95});
  for (double& value : slab.image.values) value = std::clamp(value, ends[0], ends[1]);
}

}  // namespace cingulum::oct
