// Sums of products of planes, and the correlations that the host makes of them in float64.
#include <algorithm>
#include <cmath>

#include "oct/kernel/kernel_records.hpp"
#include "oct/kernel_backend.hpp"
#include "oct/oct_kernels.hpp"

namespace cingulum::oct {
namespace {

Status check_rectangle(const VolumeShape& shape, std::uint32_t z, std::uint32_t y, std::uint32_t x,
                       const PlaneProduct& product) {
  if (product.rows == 0 || product.columns == 0 || z >= shape.z || y > shape.y || product.rows > shape.y - y ||
      x > shape.x || product.columns > shape.x - x) {
    return fail(ErrorKind::invalid_argument,
                "products of planes: {} x {} pixels from ({}, {}, {}) on are not in a volume of {} x {} x {}",
                product.rows, product.columns, z, y, x, shape.z, shape.y, shape.x);
  }
  return {};
}

bool reads_a(ProductKind kind) {
  return kind <= ProductKind::product;
}
bool reads_b(ProductKind kind) {
  return kind >= ProductKind::product;
}

struct PlaneSpan {
  std::uint32_t first = UINT32_MAX;
  std::uint32_t end = 0;
  void add(std::uint32_t z) {
    first = std::min(first, z);
    end = std::max(end, z + 1);
  }
  [[nodiscard]] KernelRange of(const DeviceVolume& volume) const { return planes_range(volume, first, end - first); }
};

// Means, deviations and products over `count` pixels, from sums of values less an offset (which drops out).
double correlation_of_sums(double a, double aa, double b, double bb, double ab, double count) {
  constexpr double little = 1e-8;  // as the reference has it, against flat planes
  const double a_mean = a / count;
  const double b_mean = b / count;
  const double a_sigma = std::sqrt(std::max(aa / count - a_mean * a_mean, 0.0));
  const double b_sigma = std::sqrt(std::max(bb / count - b_mean * b_mean, 0.0));
  return (ab / count - a_mean * b_mean) / ((a_sigma + little) * (b_sigma + little));
}

}  // namespace

Result<std::vector<float>> OctKernels::plane_products(Queue& queue, const DeviceVolume& a, const DeviceVolume& b,
                                                      float a_offset, float b_offset,
                                                      std::span<const PlaneProduct> products) {
  std::vector<float> results(products.size());
  std::uint32_t most_rows = 0;
  for (const PlaneProduct& one : products) most_rows = std::max(most_rows, one.rows);
  // Sums of their rows are bound at once.
  const auto at_a_time = static_cast<std::size_t>(std::clamp<std::uint64_t>(
      most_elements_ / std::max<std::uint64_t>(1, most_rows), 1, std::uint64_t{most_products}));
  for (std::size_t done = 0; done < products.size(); done += at_a_time) {
    const auto batch = products.subspan(done, std::min(at_a_time, products.size() - done));
    PlaneSpan a_planes;
    PlaneSpan b_planes;
    for (const PlaneProduct& one : batch) {
      if (reads_a(one.kind)) {
        CGL_TRY(check_rectangle(a.shape, one.a_z, one.a_y, one.a_x, one));
        a_planes.add(one.a_z);
      }
      if (reads_b(one.kind)) {
        CGL_TRY(check_rectangle(b.shape, one.b_z, one.b_y, one.b_x, one));
        b_planes.add(one.b_z);
      }
    }
    if (a_planes.end == 0) a_planes.add(0);
    if (b_planes.end == 0) b_planes.add(0);
    std::vector<std::uint32_t> words;
    words.reserve(batch.size() * product_words);
    for (const PlaneProduct& one : batch) {
      // What is not read begins where the range does.
      const std::uint32_t in_a = reads_a(one.kind) ? 1 : 0;
      const std::uint32_t in_b = reads_b(one.kind) ? 1 : 0;
      const std::array<std::uint32_t, product_words> item = {static_cast<std::uint32_t>(one.kind),
                                                             in_a * (one.a_z - a_planes.first),
                                                             in_a * one.a_y,
                                                             in_a * one.a_x,
                                                             in_b * (one.b_z - b_planes.first),
                                                             in_b * one.b_y,
                                                             in_b * one.b_x,
                                                             one.rows,
                                                             one.columns};
      words.insert(words.end(), item.begin(), item.end());
    }
    const auto count = static_cast<std::uint32_t>(batch.size());
    const std::uint64_t row_sums = std::uint64_t{count} * most_rows;
    if (std::max({a_planes.of(a).count, b_planes.of(b).count, row_sums}) > most_elements_) {
      return fail(ErrorKind::device,
                  "device {}: products of {} planes are more than one binding; ask for fewer at a time", device_.id(),
                  a_planes.end - a_planes.first);
    }
    CGL_TRY_ASSIGN(const auto items, pool_->acquire(words.size() * 4));
    CGL_TRY_ASSIGN(const auto sums, pool_->acquire(row_sums * 4));
    CGL_TRY_ASSIGN(const auto totals, pool_->acquire(std::uint64_t{count} * 4));
    CGL_TRY(cingulum::upload(queue, **items, std::span<const std::uint32_t>(words)));
    const KernelRange item_range{items->get(), 0, words.size()};
    const KernelRange sum_range{sums->get(), 0, row_sums};
    const ProductRowsRecord rows{count, most_rows, a.shape.y, a.shape.x, b.shape.y, b.shape.x, a_offset, b_offset};
    CGL_TRY(backend_->launch(queue, OctKernel::product_rows, rows,
                             {a_planes.of(a), b_planes.of(b), item_range, sum_range}, {32, most_rows, count}));
    CGL_TRY(backend_->launch(queue, OctKernel::product_fold, ProductFoldRecord{count, most_rows},
                             {item_range, sum_range, {totals->get(), 0, count}}, {32, count, 1}));
    CGL_TRY(cingulum::download(queue, std::span(results).subspan(done, count), **totals));
    CGL_TRY(queue.synchronise());
  }
  return results;
}

Result<OverlapFound> OctKernels::find_z_overlap(Queue& queue, const DeviceVolume& fixed, const DeviceVolume& moving,
                                                const OverlapSearch& search) {
  if (fixed.shape.y != moving.shape.y || fixed.shape.x != moving.shape.x) {
    return fail(ErrorKind::invalid_argument, "overlap along z: planes of {} x {} and of {} x {}", fixed.shape.y,
                fixed.shape.x, moving.shape.y, moving.shape.x);
  }
  const std::int64_t deepest = std::min(fixed.shape.z, moving.shape.z);
  const std::int64_t lowest = std::max<std::int64_t>(search.lowest, 1);
  const std::int64_t highest = std::min(search.highest, deepest);
  OverlapFound found;
  found.planes = search.expected;
  if (lowest >= highest) return found;

  const std::uint32_t margin = std::min(fixed.shape.y, fixed.shape.x) / 4;
  PlaneProduct window;
  window.a_y = window.b_y = window.a_x = window.b_x = margin;
  window.rows = fixed.shape.y - 2 * margin;
  window.columns = fixed.shape.x - 2 * margin;
  const double pixels = static_cast<double>(window.rows) * window.columns;
  const auto band = static_cast<std::uint32_t>(highest);
  const std::uint32_t fixed_first = fixed.shape.z - band;

  // The mean of one plane of each is taken from all: sums of small numbers lose less.
  std::array<PlaneProduct, 2> middles = {window, window};
  middles[0].kind = ProductKind::sum;
  middles[0].a_z = fixed_first + band / 2;
  middles[1].kind = ProductKind::other_sum;
  middles[1].b_z = band / 2;
  CGL_TRY_ASSIGN(const std::vector<float> middle_sums, plane_products(queue, fixed, moving, 0.0f, 0.0f, middles));
  const auto fixed_offset = static_cast<float>(middle_sums[0] / pixels);
  const auto moving_offset = static_cast<float>(middle_sums[1] / pixels);

  // Four sums of each plane of the band, then the products.
  std::vector<PlaneProduct> products;
  for (std::uint32_t i = 0; i < band; ++i) {
    for (const ProductKind kind :
         {ProductKind::sum, ProductKind::square, ProductKind::other_sum, ProductKind::other_square}) {
      PlaneProduct one = window;
      one.kind = kind;
      one.a_z = fixed_first + i;
      one.b_z = i;
      products.push_back(one);
    }
  }
  // Overlap o pairs plane i of the band with plane i - (highest - o) of the other volume.
  for (std::int64_t o = lowest; o <= highest; ++o) {
    for (std::uint32_t t = 0; t < o; ++t) {
      PlaneProduct one = window;
      one.a_z = fixed_first + static_cast<std::uint32_t>(highest - o) + t;
      one.b_z = t;
      products.push_back(one);
    }
  }
  CGL_TRY_ASSIGN(const std::vector<float> found_sums,
                 plane_products(queue, fixed, moving, fixed_offset, moving_offset, products));

  std::size_t next_product = 4 * std::size_t{band};
  double best = 0.0;
  for (std::int64_t o = lowest; o <= highest; ++o) {
    double sums[5] = {};
    for (std::uint32_t t = 0; t < o; ++t) {
      const std::size_t of_fixed = 4 * (static_cast<std::size_t>(highest - o) + t);
      const std::size_t of_moving = 4 * std::size_t{t} + 2;
      sums[0] += found_sums[of_fixed];
      sums[1] += found_sums[of_fixed + 1];
      sums[2] += found_sums[of_moving];
      sums[3] += found_sums[of_moving + 1];
      sums[4] += found_sums[next_product++];
    }
    const double value =
        correlation_of_sums(sums[0], sums[1], sums[2], sums[3], sums[4], pixels * static_cast<double>(o));
    if (found.correlations.empty() || value > best) {
      best = value;
      found.planes = o;
      found.correlation = value;
    }
    found.correlations.push_back(value);
  }
  return found;
}

Result<std::vector<float>> OctKernels::shift_products(Queue& queue, const DeviceVolume& fixed,
                                                      const DeviceVolume& moving, float offset,
                                                      std::span<const PlanePair> pairs) {
  std::vector<float> results;
  std::vector<PlaneProduct> products;
  std::vector<std::size_t> places;  // of products among the results
  // Few enough at a time that their descriptions are small beside the planes.
  const auto make = [&]() -> Status {
    CGL_TRY_ASSIGN(const std::vector<float> sums, plane_products(queue, fixed, moving, offset, offset, products));
    for (std::size_t i = 0; i < sums.size(); ++i) results[places[i]] = sums[i];
    products.clear();
    places.clear();
    return {};
  };
  for (const PlanePair& pair : pairs) {
    for_each_shift({fixed.shape.y, fixed.shape.x}, {moving.shape.y, moving.shape.x}, pair.window,
                   [&](const SharedPixels& shared) {
                     results.push_back(0.0f);
                     if (shared.rows == 0) return;
                     PlaneProduct one;
                     one.rows = static_cast<std::uint32_t>(shared.rows);
                     one.columns = static_cast<std::uint32_t>(shared.columns);
                     one.a_z = pair.fixed_z;
                     one.a_y = static_cast<std::uint32_t>(shared.fixed_row);
                     one.a_x = static_cast<std::uint32_t>(shared.fixed_column);
                     one.b_z = pair.moving_z;
                     one.b_y = static_cast<std::uint32_t>(shared.moving_row);
                     one.b_x = static_cast<std::uint32_t>(shared.moving_column);
                     products.push_back(one);
                     places.push_back(results.size() - 1);
                   });
    if (products.size() >= most_products) CGL_TRY(make());
  }
  CGL_TRY(make());
  return results;
}

}  // namespace cingulum::oct
