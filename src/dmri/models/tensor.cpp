#include "dmri/models/tensor.hpp"

#include <Eigen/QR>
#include <algorithm>
#include <atomic>

#include "dmri/models/tensor_kernel.hpp"
#include "numerics/elementary64.hpp"
#include "numerics/pack.hpp"
#include "numerics/pack_elementary.hpp"

namespace cingulum {

namespace {

// The matrices behind a TensorDesign.
struct DesignTables {
  std::vector<double> rows;
  std::vector<double> products;
  std::vector<double> inverse;
  TensorDesign view = {};
};

Result<DesignTables> prepare_design(std::span<const double> b_values, std::span<const numerics::Vec3d> directions,
                                    const TensorFitOptions& options) {
  const std::size_t volumes = b_values.size();
  const auto is_used = [&](std::size_t i) { return options.use_volume.empty() || options.use_volume[i] != 0; };
  double largest_b = 0;
  for (std::size_t i = 0; i < volumes; ++i) largest_b = is_used(i) ? std::max(largest_b, b_values[i]) : largest_b;
  if (!(largest_b > 0) || !numerics::is_finite(largest_b)) {
    return fail(ErrorKind::invalid_argument,
                "fitting tensors: the largest b-value is {}; diffusion weighting is needed", largest_b);
  }
  DesignTables tables;
  double largest_entry = 1;
  Eigen::Matrix<double, Eigen::Dynamic, tensor_unknowns> matrix(static_cast<Eigen::Index>(volumes), tensor_unknowns);
  // The row of a volume that is left out is zero, and so is its column of the inverse.
  matrix.setZero();
  std::size_t used = 0;
  for (std::size_t i = 0; i < volumes; ++i) {
    if (!is_used(i)) continue;
    ++used;
    const numerics::Vec3d g = directions[i];
    const double b = b_values[i];
    const double outer[6] = {g.x * g.x, g.y * g.y, g.z * g.z, 2 * g.x * g.y, 2 * g.x * g.z, 2 * g.y * g.z};
    for (int j = 0; j < 6; ++j) {
      largest_entry = std::max(largest_entry, outer[j] * b);
      matrix(static_cast<Eigen::Index>(i), j) = -(outer[j] * (b / largest_b));
    }
    matrix(static_cast<Eigen::Index>(i), 6) = 1;
  }
  const Eigen::ColPivHouseholderQR<Eigen::MatrixXd> decomposition(matrix);
  if (decomposition.rank() < tensor_unknowns) {
    return fail(
        ErrorKind::invalid_argument,
        "fitting tensors: {} volumes determine {} of the 7 unknowns; needed are two b-values (b = 0 counts) and "
        "six directions that do not lie on one cone",
        volumes, decomposition.rank());
  }
  Eigen::MatrixXd inverse = decomposition.solve(
      Eigen::MatrixXd::Identity(static_cast<Eigen::Index>(volumes), static_cast<Eigen::Index>(volumes)));
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    if (!is_used(static_cast<std::size_t>(i))) inverse.col(i).setZero();
    for (int j = 0; j < tensor_unknowns; ++j) {
      tables.rows.push_back(matrix(i, j));
      tables.inverse.push_back(inverse(j, i));
      for (int k = 0; k <= j; ++k) tables.products.push_back(matrix(i, j) * matrix(i, k));
    }
  }
  tables.view = {.volumes = static_cast<std::uint32_t>(volumes),
                 .rows = tables.rows.data(),
                 .products = tables.products.data(),
                 .inverse = tables.inverse.data(),
                 .unit = 1 / largest_b,
                 .least_diffusivity = 1e-6 / largest_entry,
                 .min_signal = options.min_signal,
                 .weighted = options.method == TensorMethod::wls};
  return tables;
}

// Writes the lanes that stand for voxels first .. first + count.
template <class Number>
CGL_INLINE void store_estimate(const TensorEstimate<Number>& estimate, std::size_t first, std::size_t count,
                               TensorFit& fit, std::size_t& unsolvable) {
  const TensorMeasures<Number> maps = measure_tensor(estimate);
  for (std::size_t lane = 0; lane < count; ++lane) {
    const std::size_t voxel = first + lane;
    const auto of = [&](const Number& number) { return static_cast<float>(number.lanes[lane]); };
    for (std::size_t j = 0; j < 6; ++j) fit.tensor[6 * voxel + j] = of(estimate.tensor[j]);
    for (std::size_t j = 0; j < 3; ++j) fit.eigenvalues[3 * voxel + j] = of(estimate.eigenvalues[j]);
    for (std::size_t j = 0; j < 3; ++j) fit.v1[3 * voxel + j] = of(estimate.eigenvectors[j]);
    fit.fa[voxel] = of(maps.fa);
    fit.md[voxel] = of(maps.md);
    fit.rd[voxel] = of(maps.rd);
    fit.s0[voxel] = of(maps.s0);
    unsolvable += estimate.solvable.lanes[lane] == 0.0 ? 1 : 0;
  }
}

// Voxels begin .. end.
template <class Number>
CGL_INLINE std::size_t fit_range(const FitRecords& signals, const TensorDesign& design, std::size_t begin,
                                 std::size_t end, std::span<double> scratch, TensorFit& fit) {
  constexpr std::size_t width = Number::width;
  std::size_t unsolvable = 0;
  for (std::size_t first = begin; first < end; first += width) {
    const std::size_t count = std::min(width, end - first);
    for (std::size_t lane = 0; lane < width; ++lane) {
      // Lanes without a voxel repeat the last one.
      const float* record = signals.values.data() + (first + std::min(lane, count - 1)) * signals.stride;
      for (std::size_t i = 0; i < signals.stride; ++i) scratch[i * width + lane] = static_cast<double>(record[i]);
    }
    for (std::size_t i = 0; i < signals.stride; ++i) {
      clamped_log_signal(Number::load(&scratch[i * width]), design.min_signal).store(&scratch[i * width]);
    }
    const auto estimate =
        fit_tensor<Number>(design, [&](std::uint32_t i) { return Number::load(&scratch[i * width]); });
    store_estimate(estimate, first, count, fit, unsolvable);
  }
  return unsolvable;
}

constexpr std::size_t widest_pack = 8;
constexpr std::size_t voxels_per_piece = 512;

}  // namespace

Result<TensorFit> fit_tensors(const FitRecords& signals, std::span<const double> b_values,
                              std::span<const numerics::Vec3d> directions, const TensorFitOptions& options,
                              const FitMachine& machine, Progress* progress) {
  if (b_values.size() != signals.stride || directions.size() != signals.stride) {
    return fail(ErrorKind::invalid_argument, "fitting tensors: {} volumes, but {} b-values and {} directions",
                signals.stride, b_values.size(), directions.size());
  }
  if (!options.use_volume.empty() && options.use_volume.size() != signals.stride) {
    return fail(ErrorKind::invalid_argument, "fitting tensors: {} volumes, but {} are chosen from", signals.stride,
                options.use_volume.size());
  }
  if (!(options.min_signal > 0)) {
    return fail_argument("min_signal", "fitting tensors: the smallest signal is {}; it must be above 0",
                         options.min_signal);
  }
  return catch_out_of_memory([&]() -> Result<TensorFit> {
    CGL_TRY_ASSIGN(const DesignTables tables, prepare_design(b_values, directions, options));
    const std::size_t count = signals.count();
    TensorFit fit;
    fit.tensor.resize(6 * count);
    fit.eigenvalues.resize(3 * count);
    fit.v1.resize(3 * count);
    for (MappedVector<float>* map : {&fit.fa, &fit.md, &fit.rd, &fit.s0}) map->resize(count);
    fit.least_diffusivity = tables.view.least_diffusivity;
    if (machine.device != nullptr) {
      CGL_TRY(
          machine.device->fit_tensors(tables.view, signals, fit, machine.pool, machine.cancel, [&](std::size_t voxels) {
            if (progress != nullptr) progress->advance(voxels);
          }));
      return fit;
    }
    std::atomic<std::size_t> unsolvable = 0;
    machine.pool.parallel_for(count, voxels_per_piece, [&](std::size_t begin, std::size_t end) {
      if (machine.cancel.cancelled()) return;
      std::vector<double> scratch(signals.stride * widest_pack);
      std::size_t found = 0;
      numerics::with_packs<double>(
          [&]<class Number>() { found = fit_range<Number>(signals, tables.view, begin, end, scratch, fit); });
      unsolvable += found;
      if (progress != nullptr) progress->advance(end - begin);
    });
    CGL_TRY(machine.cancel.check());
    fit.unsolvable = unsolvable;
    return fit;
  });
}

std::vector<float> colour_fa(const TensorFit& fit) {
  std::vector<float> colours(fit.v1.size());
  for (std::size_t i = 0; i < colours.size(); ++i) {
    const float fa = std::min(fit.fa[i / 3], 1.0f);
    colours[i] = numerics::absolute(fit.v1[i]) * fa;
  }
  return colours;
}

std::array<std::uint8_t, 6> tensor_order(TensorOrder order) {
  switch (order) {
    case TensorOrder::dipy: return {0, 3, 1, 4, 5, 2};
    case TensorOrder::fsl: return {0, 3, 4, 1, 5, 2};
    case TensorOrder::mrtrix: break;
  }
  return {0, 1, 2, 3, 4, 5};
}

Result<TensorOrder> parse_tensor_order(std::string_view name) {
  if (name == "mrtrix") return TensorOrder::mrtrix;
  if (name == "dipy") return TensorOrder::dipy;
  if (name == "fsl") return TensorOrder::fsl;
  return fail_argument("tensor_order", "there is no order of tensors '{}' (known: mrtrix, dipy, fsl)", name);
}

void convert_tensors(std::span<float> tensors, TensorOrder from, TensorOrder to) {
  const auto source = tensor_order(from);
  const auto target = tensor_order(to);
  for (std::size_t first = 0; first + 6 <= tensors.size(); first += 6) {
    std::array<float, 6> ours = {};
    for (std::size_t i = 0; i < 6; ++i) ours[source[i]] = tensors[first + i];
    for (std::size_t i = 0; i < 6; ++i) tensors[first + i] = ours[target[i]];
  }
}

}  // namespace cingulum
