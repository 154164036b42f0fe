#include "tract/field/field_builders.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <limits>
#include <mutex>
#include <vector>

#include "base/bulk_memory.hpp"
#include "base/shared_pieces.hpp"
#include "dmri/models/bootstrap.hpp"
#include "dmri/models/harmonic_fit.hpp"
#include "numerics/classify.hpp"
#include "numerics/mirror_sum.hpp"

namespace cingulum {
namespace {

// Records begin on cache lines; short ones on 16 bytes, so that devices may read four numbers at once.
constexpr std::uint32_t stride_for(std::size_t numbers) {
  const std::size_t multiple = numbers > 16 ? 16 : 4;
  return static_cast<std::uint32_t>((numbers + multiple - 1) / multiple * multiple);
}
// Sums of products of larger numbers could leave the range of float32.
constexpr float largest_magnitude = 0x1p60f;

bool is_usable(float value) {
  return numerics::magnitude_bits(value) <= numerics::float_bits(largest_magnitude);
}

// The largest magnitude among the usable numbers: the unit of which 2^-40 still counts.
float unit_of(std::span<const float> values) {
  float unit = 0x1p-86f;
  for (const float value : values) {
    if (is_usable(value)) unit = std::max(unit, numerics::absolute(value));
  }
  return unit;
}

// What backends may see; counts what was replaced, zeros not counted.
float usable(float value, float unit, std::uint64_t& replaced) {
  const float kept = is_usable(value) ? numerics::flush_tiny(value, unit) : 0.0f;
  if (kept == 0.0f && value != 0.0f) ++replaced;
  return kept;
}

Status check_input(const ImageGeometry& geometry, std::span<const float> stop_map, const VoxelRecords& records) {
  const auto voxels = static_cast<std::size_t>(geometry.voxel_count());
  if (stop_map.size() != voxels) {
    return fail(ErrorKind::invalid_argument, "building the field: {} values of the stopping map for {} voxels",
                stop_map.size(), voxels);
  }
  if (records.channels == 0 || records.values.size() != records.voxels.size() * records.channels) {
    return fail(ErrorKind::invalid_argument, "building the field: {} numbers for {} voxels of {} channels",
                records.values.size(), records.voxels.size(), records.channels);
  }
  std::size_t next = 0;
  for (const std::uint32_t voxel : records.voxels) {
    if (voxel < next || voxel >= voxels) {
      return fail(ErrorKind::invalid_argument,
                  "building the field: voxel {} in a list that must rise and stay below {}", voxel, voxels);
    }
    next = std::size_t{voxel} + 1;
  }
  return {};
}

constexpr std::size_t records_at_once = 4096;

// What a piece of the records found, joined in any order.
template <class T, class Join>
void join_into(std::mutex& mutex, T& all, T found, Join&& join) {
  const std::lock_guard lock(mutex);
  all = join(all, found);
}

// An empty field with a record per listed voxel; `fill(i, record)` writes the channels of the i-th, from several
// threads where there is a pool. What it writes is made usable afterwards.
template <class Fill>
Field store_records(FieldKind kind, const ImageGeometry& geometry, std::span<const float> stop_map,
                    std::span<const std::uint32_t> voxels, std::size_t channels, ThreadPool* pool, Fill&& fill) {
  Field field;
  field.kind = kind;
  field.geometry = geometry;
  field.channels = static_cast<std::uint32_t>(channels);
  field.stride = stride_for(channels + 1);
  field.record_of_voxel.assign(static_cast<std::size_t>(geometry.voxel_count()), 0);
  field.records.resize((voxels.size() + 1) * field.stride + Field::record_padding);
  std::fill_n(field.records.begin(), field.stride, 0.0f);
  std::fill_n(field.records.end() - Field::record_padding, Field::record_padding, 0.0f);
  std::mutex mutex;
  float unit = 0x1p-86f;
  share_pieces(pool, voxels.size(), records_at_once, [&](std::size_t begin, std::size_t end) {
    float largest = 0x1p-86f;
    for (std::size_t i = begin; i < end; ++i) {
      float* record = field.records.data() + (i + 1) * field.stride;
      std::fill_n(record, field.stride, 0.0f);
      fill(i, record);
      largest = std::max(largest, unit_of({record, channels}));
    }
    join_into(mutex, unit, largest, [](float a, float b) { return std::max(a, b); });
  });
  const float stop_unit = unit_of(stop_map);
  share_pieces(pool, voxels.size(), records_at_once, [&](std::size_t begin, std::size_t end) {
    std::uint64_t replaced = 0;
    for (std::size_t i = begin; i < end; ++i) {
      float* record = field.records.data() + (i + 1) * field.stride;
      for (std::size_t c = 0; c < channels; ++c) record[c] = usable(record[c], unit, replaced);
      record[channels] = usable(stop_map[voxels[i]], stop_unit, replaced);
      field.record_of_voxel[voxels[i]] = static_cast<std::uint32_t>(i + 1);
    }
    join_into(mutex, field.replaced, replaced, [](std::uint64_t a, std::uint64_t b) { return a + b; });
  });
  return field;
}

// The rotation (or reflection) nearest to the affine's axes: from image axes to world axes.
Result<Eigen::Matrix3d> image_to_world(const ImageGeometry& geometry) {
  Eigen::Matrix3d axes;
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) axes(row, column) = geometry.voxel_to_world.at(row, column);
  }
  for (int column = 0; column < 3; ++column) {
    const double length = axes.col(column).norm();
    if (!(length > 0)) {
      return fail(ErrorKind::invalid_argument, "bringing directions into image axes: column {} of the affine is zero",
                  column);
    }
    axes.col(column) /= length;
  }
  const Eigen::JacobiSVD<Eigen::Matrix3d> parts(axes, Eigen::ComputeFullU | Eigen::ComputeFullV);
  return Eigen::Matrix3d(parts.matrixU() * parts.matrixV().transpose());
}

// Coefficients of v -> f(A v) from those of f, both in `basis`: f is sampled at A times many directions and fitted at
// the directions themselves, which is exact because the basis is closed under rotations.
Result<Eigen::MatrixXd> turning_matrix(numerics::HarmonicBasis basis, const Eigen::Matrix3d& turn) {
  CGL_TRY_ASSIGN(const Sphere sphere, named_sphere("repulsion724"));
  const auto count = numerics::coefficient_count(basis.degree, basis.full);
  const auto directions = static_cast<Eigen::Index>(sphere.size());
  Eigen::MatrixXd at(directions, count), turned(directions, count);
  std::vector<double> values(static_cast<std::size_t>(count));
  for (Eigen::Index i = 0; i < directions; ++i) {
    const numerics::Vec3d v = sphere.directions[static_cast<std::size_t>(i)];
    numerics::evaluate_harmonics(basis, v, values.data());
    at.row(i) = Eigen::Map<const Eigen::RowVectorXd>(values.data(), count);
    const Eigen::Vector3d w = turn * Eigen::Vector3d(v.x, v.y, v.z);
    numerics::evaluate_harmonics(basis, numerics::Vec3d{w.x(), w.y(), w.z()}, values.data());
    turned.row(i) = Eigen::Map<const Eigen::RowVectorXd>(values.data(), count);
  }
  return Eigen::MatrixXd(at.householderQr().solve(turned));
}

}  // namespace

Result<Field> make_amplitude_field(const ImageGeometry& geometry, std::span<const float> stop_map,
                                   const VoxelRecords& amplitudes, Sphere sphere, ThreadPool* pool) {
  CGL_TRY(check_input(geometry, stop_map, amplitudes));
  if (amplitudes.channels != sphere.size()) {
    return fail(ErrorKind::invalid_argument, "building the field: {} amplitudes per voxel for the {} directions of {}",
                amplitudes.channels, sphere.size(), sphere.name);
  }
  Field field =
      store_records(FieldKind::amplitudes, geometry, stop_map, amplitudes.voxels, amplitudes.channels, pool,
                    [&](std::size_t i, float* record) {
                      std::copy_n(amplitudes.values.data() + i * amplitudes.channels, amplitudes.channels, record);
                    });
  field.sphere = std::move(sphere);
  return field;
}

Result<Field> make_harmonic_field(const ImageGeometry& geometry, std::span<const float> stop_map,
                                  const VoxelRecords& coefficients, numerics::HarmonicBasis basis, DirectionFrame frame,
                                  Sphere sphere, ThreadPool* pool) {
  CGL_TRY(check_input(geometry, stop_map, coefficients));
  if (basis.full || basis.degree < 0 || basis.degree % 2 != 0 || basis.degree > numerics::largest_harmonic_degree) {
    return fail(ErrorKind::invalid_argument,
                "building the field: a series of degree {}{}; tracked are even series up to degree {}", basis.degree,
                basis.full ? " with odd terms" : "", numerics::largest_harmonic_degree);
  }
  const auto count = static_cast<std::size_t>(numerics::coefficient_count(basis.degree, false));
  if (coefficients.channels != count) {
    return fail(ErrorKind::invalid_argument, "building the field: {} coefficients per voxel, degree {} has {}",
                coefficients.channels, basis.degree, count);
  }
  constexpr auto target = numerics::HarmonicConvention::descoteaux07_legacy;
  const numerics::HarmonicBasis legacy{target, basis.degree, false};
  Eigen::MatrixXd turn;
  if (frame == DirectionFrame::world) {
    CGL_TRY_ASSIGN(const Eigen::Matrix3d axes, image_to_world(geometry));
    CGL_TRY_ASSIGN(turn, turning_matrix(legacy, axes));
  }
  std::vector<std::uint32_t> order(count);
  for (std::uint32_t j = 0; j < count; ++j) order[j] = j;
  if (sphere.mirror_symmetric) numerics::sort_by_mirror_class(target, basis.degree, order.data());
  Field field = store_records(
      FieldKind::harmonics, geometry, stop_map, coefficients.voxels, count, pool, [&](std::size_t i, float* record) {
        double given[numerics::largest_coefficient_count];
        double converted[numerics::largest_coefficient_count];
        const float* from = coefficients.values.data() + i * count;
        // A record with a number that is not finite would spread it over all others.
        const bool finite = std::all_of(from, from + count, is_usable);
        for (std::size_t j = 0; j < count; ++j) {
          given[j] = finite ? static_cast<double>(from[j]) : std::numeric_limits<double>::quiet_NaN();
        }
        numerics::convert_coefficients(basis, target, given, converted);
        if (turn.size() > 0) {
          const Eigen::VectorXd turned =
              turn * Eigen::Map<const Eigen::VectorXd>(converted, static_cast<Eigen::Index>(count));
          std::copy_n(turned.data(), count, converted);
        }
        for (std::size_t j = 0; j < count; ++j) record[j] = static_cast<float>(converted[order[j]]);
      });
  field.degree = basis.degree;
  field.sphere = std::move(sphere);
  return field;
}

Result<Field> make_peak_field(const ImageGeometry& geometry, std::span<const float> stop_map, const VoxelRecords& peaks,
                              DirectionFrame frame) {
  CGL_TRY(check_input(geometry, stop_map, peaks));
  if (peaks.channels % 3 != 0) {
    return fail(ErrorKind::invalid_argument, "building the field: {} numbers per voxel are not x y z of peaks",
                peaks.channels);
  }
  Eigen::Matrix3d axes = Eigen::Matrix3d::Identity();
  if (frame == DirectionFrame::world) {
    CGL_TRY_ASSIGN(axes, image_to_world(geometry));
  }
  return store_records(
      FieldKind::peaks, geometry, stop_map, peaks.voxels, peaks.channels, nullptr, [&](std::size_t i, float* record) {
        const float* from = peaks.values.data() + i * peaks.channels;
        std::copy_n(from, peaks.channels, record);
        if (frame == DirectionFrame::image) return;
        for (std::size_t c = 0; c < peaks.channels; c += 3) {
          const Eigen::Vector3d turned =
              axes.transpose() * Eigen::Vector3d(static_cast<double>(from[c]), static_cast<double>(from[c + 1]),
                                                 static_cast<double>(from[c + 2]));
          for (int k = 0; k < 3; ++k) {
            record[c + static_cast<std::size_t>(k)] = static_cast<float>(turned[k]);
          }
        }
      });
}

Result<Field> make_tensor_field(const ImageGeometry& geometry, std::span<const float> stop_map,
                                const VoxelRecords& tensors, TensorOrder order, DirectionFrame frame) {
  CGL_TRY(check_input(geometry, stop_map, tensors));
  if (tensors.channels != 6) {
    return fail(ErrorKind::invalid_argument, "building the field: {} numbers per voxel, a tensor has 6",
                tensors.channels);
  }
  // Where the file has xx, yy, zz, xy, xz, yz.
  constexpr std::size_t places[3][6] = {{0, 1, 2, 3, 4, 5}, {0, 2, 5, 1, 3, 4}, {0, 3, 5, 1, 2, 4}};
  const std::size_t* place = places[static_cast<std::size_t>(order)];
  Eigen::Matrix3d axes = Eigen::Matrix3d::Identity();
  if (frame == DirectionFrame::world) {
    CGL_TRY_ASSIGN(axes, image_to_world(geometry));
  }
  return store_records(
      FieldKind::tensor, geometry, stop_map, tensors.voxels, 6, nullptr, [&](std::size_t i, float* record) {
        const float* from = tensors.values.data() + i * 6;
        for (std::size_t c = 0; c < 6; ++c) record[c] = from[place[c]];
        if (frame == DirectionFrame::image) return;
        const auto at = [record](std::size_t c) { return static_cast<double>(record[c]); };
        Eigen::Matrix3d tensor;
        tensor << at(0), at(3), at(4), at(3), at(1), at(5), at(4), at(5), at(2);
        const Eigen::Matrix3d turned = axes.transpose() * tensor * axes;
        const double result[6] = {turned(0, 0), turned(1, 1), turned(2, 2), turned(0, 1), turned(0, 2), turned(1, 2)};
        for (std::size_t c = 0; c < 6; ++c) record[c] = static_cast<float>(result[c]);
      });
}

Result<Field> make_bootstrap_field(const ImageGeometry& geometry, std::span<const float> stop_map,
                                   const VoxelRecords& signals, std::span<const numerics::Vec3d> gradients,
                                   std::span<const std::uint8_t> is_b0, const BootstrapOptions& options, Sphere sphere,
                                   const FitMachine& machine) {
  CGL_TRY(check_input(geometry, stop_map, signals));
  if (gradients.size() != signals.channels || is_b0.size() != signals.channels) {
    return fail(ErrorKind::invalid_argument, "building the field: {} gradients and {} b0 marks for {} volumes",
                gradients.size(), is_b0.size(), signals.channels);
  }
  std::vector<std::uint32_t> weighted, b0;
  std::vector<numerics::Vec3d> directions;
  for (std::uint32_t volume = 0; volume < is_b0.size(); ++volume) {
    (is_b0[volume] != 0 ? b0 : weighted).push_back(volume);
    if (is_b0[volume] == 0) directions.push_back(gradients[volume]);
  }
  const QBallOptions model{.kind = options.csa ? QBallModelKind::csa : QBallModelKind::opdt,
                           .degree = options.degree,
                           .smoothing = options.lambda};
  CGL_TRY_ASSIGN(const BootstrapMatrices matrices, make_bootstrap_matrices(directions, model));
  // A number that is not finite would spread over the whole voxel: such a signal counts as zero here already.
  MappedVector<float> clean(signals.values.size());
  std::uint64_t replaced = 0;
  ThreadPool* const pool = &machine.pool;
  const float unit = unit_of(signals.values);
  std::mutex mutex;
  share_pieces(pool, signals.voxels.size(), records_at_once, [&](std::size_t begin, std::size_t end) {
    std::uint64_t found = 0;
    for (std::size_t i = begin * signals.channels; i < end * signals.channels; ++i) {
      clean[i] = usable(signals.values[i], unit, found);
    }
    join_into(mutex, replaced, found, [](std::uint64_t a, std::uint64_t b) { return a + b; });
  });
  CGL_TRY_ASSIGN(const BootstrapVoxels voxels,
                 prepare_bootstrap(matrices, clean, signals.channels, weighted, b0, machine));
  const std::size_t coefficients = voxels.coefficient_count;
  const std::size_t count = voxels.direction_count;
  Field field = store_records(FieldKind::bootstrap, geometry, stop_map, signals.voxels, coefficients + 1 + count, pool,
                              [&](std::size_t i, float* record) {
                                std::copy_n(voxels.coefficients.data() + i * coefficients, coefficients, record);
                                record[coefficients] = voxels.b0[i];
                                std::copy_n(voxels.residuals.data() + i * count, count, record + coefficients + 1);
                              });
  field.replaced = replaced;  // what rounding left near zero in the fits is not worth reporting
  field.degree = matrices.model.basis.degree;
  field.sphere = std::move(sphere);
  BootstrapTables& tables = field.bootstrap;
  tables.csa = options.csa;
  tables.gradients = static_cast<std::uint32_t>(count);
  tables.coefficients = static_cast<std::uint32_t>(coefficients);
  tables.basis.resize(count * coefficients);
  tables.fit.resize(count * coefficients);
  tables.residual_scale.resize(count);
  for (std::size_t g = 0; g < count; ++g) {
    for (std::size_t j = 0; j < coefficients; ++j) {
      tables.basis[g * coefficients + j] = static_cast<float>(matrices.basis_matrix.at(g, j));
      // Both matrices of OPDT are rows of F invB: the quadratic one four times, the linear one -l(l + 1) times.
      const double fit = options.csa ? matrices.model.linear.at(j, g) : matrices.model.quadratic.at(j, g) / 4;
      tables.fit[j * count + g] = static_cast<float>(fit);
    }
    tables.residual_scale[g] = static_cast<float>(numerics::root(std::max(0.0, 1 - matrices.hat.at(g, g))));
  }
  return field;
}

}  // namespace cingulum
