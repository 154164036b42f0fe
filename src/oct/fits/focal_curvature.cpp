#include "oct/fits/focal_curvature.hpp"

#include <numeric>

#include "oct/fits/basic_fit.hpp"
#include "oct/placement/image_filters.hpp"
#include "oct/placement/smooth_field.hpp"
#include "oct/volume/shared_loop.hpp"

namespace cingulum::oct {
namespace {

Status check_interfaces(const std::vector<HostImage>& interfaces) {
  if (interfaces.empty()) return fail(ErrorKind::corrupt, "focal curvature: no tile has an interface");
  for (const HostImage& map : interfaces) {
    if (map.rows == interfaces.front().rows && map.columns == interfaces.front().columns) continue;
    return fail(ErrorKind::corrupt, "focal curvature: maps of {} x {} and of {} x {} pixels", interfaces.front().rows,
                interfaces.front().columns, map.rows, map.columns);
  }
  return {};
}

void centre(HostImage& image) {
  const double mean =
      std::accumulate(image.values.begin(), image.values.end(), 0.0) / static_cast<double>(image.values.size());
  for (double& value : image.values) value -= mean;
}

}  // namespace

Result<HostImage> fit_curvature(const std::vector<HostImage>& interfaces, ThreadPool* pool) {
  constexpr int degree = 4;
  CGL_TRY(check_interfaces(interfaces));
  std::vector<double> level(interfaces.size());
  for_each_index(pool, interfaces.size(), [&](std::size_t t) { level[t] = median(interfaces[t].values); });
  HostImage common(interfaces.front().rows, interfaces.front().columns);
  for_each_index(pool, common.rows, [&](std::size_t row) {
    std::vector<double> values(interfaces.size());
    for (std::size_t i = row * common.columns; i < (row + 1) * common.columns; ++i) {
      for (std::size_t t = 0; t < interfaces.size(); ++t) values[t] = interfaces[t].values[i] - level[t];
      common.values[i] = median(values);
    }
  });
  HostImage field = fit_polynomial(common, degree);
  centre(field);
  return field;
}

Result<HostImage> fit_curvature_basic(const std::vector<HostImage>& interfaces, std::size_t planes) {
  CGL_TRY(check_interfaces(interfaces));
  std::vector<HostImage> shares = interfaces;
  double mean = 0;
  double count = 0;
  for (HostImage& map : shares) {
    for (double& value : map.values) {
      mean += value;
      count += 1;
      value /= static_cast<double>(planes);
    }
  }
  CGL_TRY_ASSIGN(HostImage field, fit_basic(shares));
  for (double& value : field.values) value = (value - 1) * (mean / count);
  return field;
}

}  // namespace cingulum::oct
