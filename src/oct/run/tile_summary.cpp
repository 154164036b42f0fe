#include "oct/run/tile_summary.hpp"

#include <algorithm>
#include <utility>

#include "oct/kernel/layer_line.hpp"
#include "oct/placement/tile_placement.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {

std::size_t layers_of(std::size_t planes) {
  return std::clamp<std::size_t>(planes / 2 / layer_planes, 1, most_layers);
}

std::size_t projected_planes(std::size_t planes) {
  return std::max<std::size_t>(1, planes / 3);
}

TileSummary summary_of_sums(const LayerSums& sums, ThreadPool* pool) {
  TileSummary summary;
  const std::size_t lines = sums.rows * sums.columns;
  const auto image = [&](std::size_t number) {
    HostImage made(sums.rows, sums.columns);
    std::copy_n(sums.sums.begin() + static_cast<std::ptrdiff_t>(number * lines), lines, made.values.begin());
    return made;
  };
  summary.layers.resize(sums.layers);
  for_each_index(pool, sums.layers, [&](std::size_t k) { summary.layers[k] = log_image(image(k)); });
  summary.projection = image(sums.layers);
  summary.interface = HostImage(sums.rows, sums.columns);
  std::copy(sums.surface.begin(), sums.surface.end(), summary.interface.values.begin());
  const auto depth = static_cast<std::int32_t>(projected_planes(sums.planes));
  const auto end = static_cast<std::int32_t>(sums.planes);
  const std::span<const float> above = sums.sums.subspan((sums.layers + 1) * lines, lines);
  for (std::size_t i = 0; i < lines; ++i) {
    const LineParts parts = line_parts(sums.surface[i], end);
    summary.projection.values[i] /= static_cast<double>(std::min(parts.first + depth, end) - parts.first);
    summary.above_sum += static_cast<double>(above[i]);
    summary.above_count += static_cast<std::uint64_t>(std::max(0, parts.water));
  }
  return summary;
}

TileSummary summary_without_surface(std::span<const float> mean, std::size_t rows, std::size_t columns) {
  TileSummary summary;
  summary.projection = HostImage(rows, columns);
  std::copy(mean.begin(), mean.end(), summary.projection.values.begin());
  summary.layers.push_back(log_image(summary.projection));
  return summary;
}

}  // namespace cingulum::oct
