#include "dmri/models/csd.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>

#include "dmri/models/harmonic_fit.hpp"
#include "dmri/models/unroll.hpp"
#include "numerics/pack.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

using EigenMatrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

constexpr int most_lanes = 8;

// A voxel on its way through the iterations. The Gram matrix is kept per voxel and changed only by the directions whose
// state changes; eight of them are laid side by side for the solution.
struct Slot {
  std::size_t voxel = 0;
  bool active = false;
  bool first = true;
  int iterations = 0;
  double threshold = 0;
  std::uint64_t small[csd_largest_directions / 64] = {};
  std::uint64_t before[csd_largest_directions / 64] = {};
  double* gram = nullptr;
  double* right_side = nullptr;
  double* solution = nullptr;
};

struct Workspace {
  explicit Workspace(const CsdView& view)
      : numbers(static_cast<std::size_t>(most_lanes) *
                static_cast<std::size_t>(padded_row_offset(view.stride) + 2 * view.stride)),
        triangle(static_cast<std::size_t>(most_lanes * triangle_index(view.stride, 0))),
        inverse_diagonal(static_cast<std::size_t>(most_lanes * view.stride)),
        solution(static_cast<std::size_t>(most_lanes * view.stride)) {
    double* next = numbers.data();
    for (Slot& slot : slots) {
      slot.gram = next;
      next += padded_row_offset(view.stride);
      slot.right_side = next;
      next += view.stride;
      slot.solution = next;
      next += view.stride;
      // Lanes without a voxel are solved along with the others.
      std::memcpy(slot.gram, view.gram, static_cast<std::size_t>(padded_row_offset(view.stride)) * sizeof(double));
    }
  }

  Slot slots[most_lanes];
  AlignedNumbers numbers;
  // A system per lane, side by side: entry e of lane l at width e + l. (Not vectors of packs: those are aligned for the
  // baseline's registers only.)
  AlignedNumbers triangle;
  AlignedNumbers inverse_diagonal;
  AlignedNumbers solution;
};

struct Counts {
  std::size_t unconstrained = 0;
  std::size_t not_converged = 0;
  std::size_t not_solvable = 0;
  std::uint64_t iterations = 0;
};

// Rows and columns of a square block change places.
template <class Number>
CGL_INLINE void transpose(typename Number::Vector* rows) {
  using Vector = typename Number::Vector;
  using Bits = typename Number::IntegerVector;
  if constexpr (Number::width == 2) {
    const Vector first = rows[0];
    rows[0] = __builtin_shuffle(first, rows[1], Bits{0, 2});
    rows[1] = __builtin_shuffle(first, rows[1], Bits{1, 3});
  } else if constexpr (Number::width == 4) {
    Vector a[4];
    CGL_UNROLL_8
    for (int i = 0; i < 4; i += 2) {
      a[i] = __builtin_shuffle(rows[i], rows[i + 1], Bits{0, 4, 2, 6});
      a[i + 1] = __builtin_shuffle(rows[i], rows[i + 1], Bits{1, 5, 3, 7});
    }
    CGL_UNROLL_8
    for (int i = 0; i < 2; ++i) {
      rows[i] = __builtin_shuffle(a[i], a[i + 2], Bits{0, 1, 4, 5});
      rows[i + 2] = __builtin_shuffle(a[i], a[i + 2], Bits{2, 3, 6, 7});
    }
  } else {
    static_assert(Number::width == 8);
    Vector a[8], b[8];
    CGL_UNROLL_8
    for (int i = 0; i < 8; i += 2) {
      a[i] = __builtin_shuffle(rows[i], rows[i + 1], Bits{0, 8, 2, 10, 4, 12, 6, 14});
      a[i + 1] = __builtin_shuffle(rows[i], rows[i + 1], Bits{1, 9, 3, 11, 5, 13, 7, 15});
    }
    CGL_UNROLL_8
    for (int i = 0; i < 8; i += 4) {
      b[i] = __builtin_shuffle(a[i], a[i + 2], Bits{0, 1, 8, 9, 4, 5, 12, 13});
      b[i + 1] = __builtin_shuffle(a[i + 1], a[i + 3], Bits{0, 1, 8, 9, 4, 5, 12, 13});
      b[i + 2] = __builtin_shuffle(a[i], a[i + 2], Bits{2, 3, 10, 11, 6, 7, 14, 15});
      b[i + 3] = __builtin_shuffle(a[i + 1], a[i + 3], Bits{2, 3, 10, 11, 6, 7, 14, 15});
    }
    CGL_UNROLL_8
    for (int i = 0; i < 4; ++i) {
      rows[i] = __builtin_shuffle(b[i], b[i + 4], Bits{0, 1, 2, 3, 8, 9, 10, 11});
      rows[i + 4] = __builtin_shuffle(b[i], b[i + 4], Bits{4, 5, 6, 7, 12, 13, 14, 15});
    }
  }
}

template <class Number>
CGL_INLINE void project(const CsdView& view, const double* matrix, const float* signal, const std::uint32_t* volumes,
                        double* result) {
  for (int i = 0; i < view.stride; i += Number::width) {
    Number sum(0.0);
    for (int g = 0; g < view.gradients; ++g) {
      sum = sum + Number::load(matrix + g * view.stride + i) * Number(static_cast<double>(signal[volumes[g]]));
    }
    sum.store(result + i);
  }
}

// The amplitudes of 64 directions, eight packs at a time, compared and gathered into one word.
template <class Number>
CGL_INLINE void find_small(const CsdView& view, const double* coefficients, int count, double threshold,
                           std::uint64_t* small) {
  using Bits = typename Number::IntegerVector;
  constexpr int packs = 8;
  constexpr int together = packs * Number::width;
  static_assert(64 % together == 0);
  Bits lane_bits = {};
  CGL_UNROLL_8
  for (int l = 0; l < Number::width; ++l) lane_bits[l] = std::int64_t{1} << l;
  const Number limit(threshold);
  for (int word = 0; word < view.direction_stride / 64; ++word) {
    Bits found = {};
    for (int part = 0; part < 64; part += together) {
      const double* const table = view.amplitudes + 64 * word + part;
      Number sum[packs];
      CGL_UNROLL_8
      for (int p = 0; p < packs; ++p) sum[p] = Number(0.0);
      for (int i = 0; i < count; ++i) {
        const Number value(coefficients[i]);
        CGL_UNROLL_8
        for (int p = 0; p < packs; ++p) {
          sum[p] = sum[p] + Number::load(table + i * view.direction_stride + Number::width * p) * value;
        }
      }
      CGL_UNROLL_8
      for (int p = 0; p < packs; ++p) {
        found |= (sum[p] < limit).lanes & (lane_bits << (part + Number::width * p));
      }
    }
    std::uint64_t bits = 0;
    CGL_UNROLL_8
    for (int l = 0; l < Number::width; ++l) bits |= static_cast<std::uint64_t>(found[l]);
    const int valid = view.directions - 64 * word;
    small[word] = valid >= 64 ? bits : bits & ((std::uint64_t{1} << valid) - 1);
  }
}

CGL_INLINE int count_bits(const CsdView& view, const std::uint64_t* bits) {
  int count = 0;
  for (int w = 0; w < view.direction_stride / 64; ++w) count += std::popcount(bits[w]);
  return count;
}

// Terms of `Terms` directions, one after the other in each entry: +h h' with `columns` at h, -h h' with it at -h.
template <class Number, int Terms>
CGL_INLINE void add_directions(const CsdView& view, const double* const* rows, const double* const* columns,
                               double* gram) {
  for (int first = 0; first < view.stride; first += Number::width) {  // column of a pack
    FixedArray<Number, Terms> column;
    CGL_UNROLL_8
    for (int t = 0; t < Terms; ++t) column[t] = Number::load(columns[t] + first);
    for (int row_block = first - first % 8; row_block < view.count; row_block += 8) {
      double* entries = gram + padded_row_offset(row_block) + first;
      const int end = row_block + 8 < view.count ? row_block + 8 : view.count;
      for (int row = row_block; row < end; ++row, entries += row_block + 8) {
        Number sum = Number::load(entries);
        CGL_UNROLL_8
        for (int t = 0; t < Terms; ++t) sum = sum + column[t] * Number(rows[t][row]);
        sum.store(entries);
      }
    }
  }
}

template <class Number>
CGL_INLINE void change_gram(const CsdView& view, const std::uint64_t* small, const std::uint64_t* before,
                            double* gram) {
  constexpr int most_terms = 8;
  const int words = view.direction_stride / 64;
  const int chosen = count_bits(view, small);
  int changed = 0;
  if (before != nullptr) {
    for (int w = 0; w < words; ++w) changed += std::popcount(small[w] ^ before[w]);
  }
  const int others = view.directions - chosen;
  const bool from_none = chosen <= others;
  const bool from_before = before != nullptr && changed <= (from_none ? chosen : others);
  if (!from_before) {
    __builtin_memcpy(gram, from_none ? view.gram : view.gram_all,
                     static_cast<std::size_t>(padded_row_offset(view.stride)) * sizeof(double));
  }
  const double* rows[most_terms];
  const double* columns[most_terms];
  int waiting = 0;
  for (int w = 0; w < words; ++w) {
    const int valid = view.directions - 64 * w;
    const std::uint64_t all = valid >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << valid) - 1;
    const std::uint64_t was = from_before ? before[w] : (from_none ? 0 : all);
    for (std::uint64_t remaining = small[w] ^ was; remaining != 0; remaining &= remaining - 1) {
      const int bit = std::countr_zero(remaining);
      const int offset = (64 * w + bit) * view.stride;
      rows[waiting] = view.constraint + offset;
      columns[waiting] = ((small[w] >> bit & 1) != 0 ? view.constraint : view.negated_constraint) + offset;
      if (++waiting == most_terms) {
        add_directions<Number, most_terms>(view, rows, columns, gram);
        waiting = 0;
      }
    }
  }
  int done = 0;
  for (; done + 4 <= waiting; done += 4) add_directions<Number, 4>(view, rows + done, columns + done, gram);
  for (; done < waiting; ++done) add_directions<Number, 1>(view, rows + done, columns + done, gram);
}

// Lays the systems of all slots side by side, solves them and hands the solutions back; tells which lanes failed.
template <class Number>
CGL_INLINE void solve_slots(const CsdView& view, Workspace& work, bool* failed_lanes) {
  using Vector = typename Number::Vector;
  constexpr int width = Number::width;
  Number* const triangle = reinterpret_cast<Number*>(work.triangle.data());
  Number* const inverse_diagonal = reinterpret_cast<Number*>(work.inverse_diagonal.data());
  Number* const solution = reinterpret_cast<Number*>(work.solution.data());
  for (int row = 0; row < view.count; ++row) {
    for (int first = 0; first <= row; first += width) {
      FixedArray<Vector, width> entries;
      CGL_UNROLL_8
      for (int l = 0; l < width; ++l) {
        entries[l] = Number::load(work.slots[l].gram + padded_row_offset(row) + first).lanes;
      }
      transpose<Number>(entries);
      // Entries beyond the diagonal land where the next row will be written.
      CGL_UNROLL_8
      for (int c = 0; c < width; ++c) triangle[triangle_index(row, first + c)] = Number::of(entries[c]);
    }
  }
  for (int first = 0; first < view.stride; first += width) {
    FixedArray<Vector, width> entries;
    CGL_UNROLL_8
    for (int l = 0; l < width; ++l) entries[l] = Number::load(work.slots[l].right_side + first).lanes;
    transpose<Number>(entries);
    CGL_UNROLL_8
    for (int c = 0; c < width; ++c) solution[first + c] = Number::of(entries[c]);
  }
  Number failed(0.0);
  factor_cholesky(view.count, triangle, inverse_diagonal, failed);
  solve_cholesky(view.count, triangle, inverse_diagonal, solution);
  for (int first = 0; first < view.stride; first += width) {
    FixedArray<Vector, width> entries;
    CGL_UNROLL_8
    for (int c = 0; c < width; ++c) entries[c] = solution[first + c].lanes;
    transpose<Number>(entries);
    CGL_UNROLL_8
    for (int l = 0; l < width; ++l) Number::of(entries[l]).store(work.slots[l].solution + first);
  }
  for (int l = 0; l < width; ++l) failed_lanes[l] = failed.lanes[l] != 0.0;
}

struct Piece {
  const float* signals;
  std::size_t stride;
  const std::uint32_t* volumes;
  float* coefficients;
  std::size_t begin;
  std::size_t end;
};

CGL_INLINE void store(const CsdView& view, const Piece& piece, const Slot& slot, bool zero) {
  float* const to = piece.coefficients + slot.voxel * static_cast<std::size_t>(view.count);
  for (int i = 0; i < view.count; ++i) to[i] = zero ? 0.0f : static_cast<float>(slot.solution[i]);
}

// Takes voxels of the piece until one needs iterations; false when none is left.
template <class Number>
CGL_INLINE bool fill(const CsdView& view, const Piece& piece, std::size_t& next, Slot& slot, Counts& counts) {
  while (next < piece.end) {
    slot.voxel = next++;
    const float* const signal = piece.signals + slot.voxel * piece.stride;
    project<Number>(view, view.start, signal, piece.volumes, slot.solution);
    slot.threshold = view.threshold_factor * slot.solution[0];
    slot.iterations = 0;
    slot.first = true;
    find_small<Number>(view, slot.solution, view.low_order_count, slot.threshold, slot.small);
    if (count_bits(view, slot.small) == 0)
      find_small<Number>(view, slot.solution, view.count, slot.threshold, slot.small);
    if (count_bits(view, slot.small) == 0 || view.iterations == 0) {
      counts.unconstrained += 1;
      store(view, piece, slot, false);
      continue;
    }
    project<Number>(view, view.projection, signal, piece.volumes, slot.right_side);
    return slot.active = true;
  }
  return slot.active = false;
}

template <class Number>
CGL_INLINE void fit_piece(const CsdView& view, const Piece& piece, Workspace& work, Counts& counts) {
  std::size_t next = piece.begin;
  int active = 0;
  const std::span<Slot> slots(work.slots, Number::width);
  for (Slot& slot : slots) active += fill<Number>(view, piece, next, slot, counts) ? 1 : 0;
  const int words = view.direction_stride / 64;
  while (active > 0) {
    for (Slot& slot : slots) {
      if (!slot.active) continue;
      change_gram<Number>(view, slot.small, slot.first ? nullptr : slot.before, slot.gram);
      slot.first = false;
      ++slot.iterations;
    }
    bool failed[most_lanes];
    solve_slots<Number>(view, work, failed);
    for (std::size_t l = 0; l < slots.size(); ++l) {
      Slot& slot = slots[l];
      if (!slot.active) continue;
      bool ended = failed[l];
      if (!ended) {
        for (int w = 0; w < words; ++w) slot.before[w] = slot.small[w];
        find_small<Number>(view, slot.solution, view.count, slot.threshold, slot.small);
        bool equal = true;
        for (int w = 0; w < words; ++w) equal = equal && slot.before[w] == slot.small[w];
        if (!equal && slot.iterations == view.iterations) ++counts.not_converged;
        ended = equal || slot.iterations == view.iterations;
      } else {
        ++counts.not_solvable;
      }
      if (!ended) continue;
      counts.iterations += static_cast<std::uint64_t>(slot.iterations);
      store(view, piece, slot, failed[l]);
      if (!fill<Number>(view, piece, next, slot, counts)) --active;
    }
  }
}

// Fails where a pivot is not positive.
bool is_positive_definite(const EigenMatrix& matrix) {
  return Eigen::LLT<Eigen::MatrixXd>(matrix).info() == Eigen::Success;
}

AlignedNumbers padded_triangle(const EigenMatrix& matrix, int count, int stride) {
  AlignedNumbers result(static_cast<std::size_t>(padded_row_offset(stride)));
  for (int row = 0; row < count; ++row) {
    for (int column = 0; column <= row; ++column) {
      result[static_cast<std::size_t>(padded_row_offset(row) + column)] = matrix(row, column);
    }
  }
  return result;
}

}  // namespace

Result<CsdModel> CsdModel::create(std::span<const Vec3d> directions, std::span<const double> response,
                                  std::span<const Vec3d> constraint, const CsdOptions& options) {
  const int count = numerics::coefficient_count(options.degree, false);
  if (options.degree < 0 || options.degree % 2 != 0 || options.degree > numerics::largest_harmonic_degree) {
    return fail_argument("sh_order", "csd: degree {} is not an even number from 0 to {}", options.degree,
                         numerics::largest_harmonic_degree);
  }
  if (directions.empty() || constraint.empty()) {
    return fail(ErrorKind::invalid_argument,
                "csd: {} gradient directions and {} constraint directions; both are needed", directions.size(),
                constraint.size());
  }
  if (constraint.size() > static_cast<std::size_t>(csd_largest_directions)) {
    return fail_argument("csd_sphere", "csd: {} constraint directions, at most {} are supported", constraint.size(),
                         csd_largest_directions);
  }
  if (response.size() < static_cast<std::size_t>(options.degree / 2 + 1)) {
    return fail_argument(
        "sh_order", "csd: the response has {} zonal coefficients (degree {}), degree {} needs {}; use {} {}",
        response.size(), 2 * (static_cast<int>(response.size()) - 1), options.degree, options.degree / 2 + 1,
        argument_name("sh_order"), 2 * (static_cast<int>(response.size()) - 1));
  }
  CsdModel model;
  model.basis_ = {options.convention, options.degree, false};
  model.count_ = count;
  model.low_order_count_ = std::min(count, numerics::coefficient_count(4, false));
  model.gradients_ = static_cast<int>(directions.size());
  model.directions_ = static_cast<int>(constraint.size());
  model.iterations_ = options.iterations;
  const int stride = padded_count(count);
  const auto stride_size = static_cast<std::size_t>(stride);

  // Rotational harmonics: a zonal coefficient over the one of a delta function along z, Y_l0(z) (Healy, Hendriks and
  // Kim 1998; Tournier et al., NeuroImage 23, 2004). Convolution multiplies by them.
  double along_z[numerics::largest_coefficient_count];
  numerics::evaluate_harmonics(model.basis_, Vec3d{0, 0, 1}, along_z);
  std::vector<double> rotational(static_cast<std::size_t>(options.degree / 2 + 1));
  for (int l = 0; l <= options.degree; l += 2) {
    rotational[static_cast<std::size_t>(l / 2)] =
        response[static_cast<std::size_t>(l / 2)] / along_z[numerics::coefficient_index(l, 0, false)];
  }
  if (!(rotational[0] > 0)) {
    return fail_argument("response", "csd: the response has the mean {}, which is not positive", response[0]);
  }

  const DenseMatrix gradient_basis = harmonic_matrix(model.basis_, directions);
  EigenMatrix x(model.gradients_, count);
  for (int g = 0; g < model.gradients_; ++g) {
    for (int i = 0; i < count; ++i) {
      const int l = numerics::harmonic_of_coefficient(i, false).l;
      x(g, i) = gradient_basis.at(static_cast<std::size_t>(g), static_cast<std::size_t>(i)) *
                rotational[static_cast<std::size_t>(l / 2)];
    }
  }
  EigenMatrix normal = x.transpose() * x;
  if (!is_positive_definite(normal)) normal += 1e-5 * EigenMatrix::Identity(count, count);
  const EigenMatrix start = Eigen::LLT<Eigen::MatrixXd>(normal).solve(Eigen::MatrixXd(x.transpose()));

  // lambda counts in units of the response and of the number of coefficients, per direction of a sphere of 362, so
  // that the hemisphere and the whole one weigh the same.
  const double scale = options.lambda * static_cast<double>(count) * rotational[0] /
                       (numerics::root(static_cast<double>(constraint.size())) * numerics::root(362.0));
  const DenseMatrix basis_matrix = harmonic_matrix(model.basis_, constraint);
  const int direction_stride = (model.directions_ + 63) / 64 * 64;
  model.amplitudes_ = AlignedNumbers(static_cast<std::size_t>(count * direction_stride));
  model.constraint_ = AlignedNumbers(constraint.size() * stride_size);
  model.negated_constraint_ = AlignedNumbers(constraint.size() * stride_size);
  for (std::size_t d = 0; d < constraint.size(); ++d) {
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
      model.amplitudes_[i * static_cast<std::size_t>(direction_stride) + d] = basis_matrix.at(d, i);
      model.constraint_[d * stride_size + i] = scale * basis_matrix.at(d, i);
      model.negated_constraint_[d * stride_size + i] = -(scale * basis_matrix.at(d, i));
    }
  }
  model.threshold_factor_ = options.tau * along_z[0];

  model.projection_ = AlignedNumbers(directions.size() * stride_size);
  model.start_ = AlignedNumbers(directions.size() * stride_size);
  for (int g = 0; g < model.gradients_; ++g) {
    for (int i = 0; i < count; ++i) {
      model.projection_[static_cast<std::size_t>(g * stride + i)] = x(g, i);
      model.start_[static_cast<std::size_t>(g * stride + i)] = start(i, g);
    }
  }
  model.gram_ = padded_triangle(normal, count, stride);
  model.gram_all_ = model.gram_;
  const CsdView view = model.view();
  for (int d = 0; d < model.directions_; ++d) csd_add_direction(view, d, 1.0, model.gram_all_.data());
  return model;
}

CsdView CsdModel::view() const {
  const int stride = padded_count(count_);
  return {.count = count_,
          .stride = stride,
          .low_order_count = low_order_count_,
          .gradients = gradients_,
          .directions = directions_,
          .direction_stride = (directions_ + 63) / 64 * 64,
          .iterations = iterations_,
          .threshold_factor = threshold_factor_,
          .projection = projection_.data(),
          .start = start_.data(),
          .amplitudes = amplitudes_.data(),
          .constraint = constraint_.data(),
          .negated_constraint = negated_constraint_.data(),
          .gram = gram_.data(),
          .gram_all = gram_all_.data()};
}

Result<CsdFit> fit_csd(const CsdModel& model, std::span<const float> signals, std::size_t stride,
                       std::span<const std::uint32_t> volumes, const FitMachine& machine,
                       const std::function<void(std::size_t)>& advance, numerics::SimdLevel level) {
  const CsdView view = model.view();
  const std::size_t voxels = stride == 0 ? 0 : signals.size() / stride;
  CsdFit fit;
  fit.coefficients.resize(voxels * model.coefficient_count());
  if (machine.device != nullptr) {
    CGL_TRY(machine.device->fit_csd(view, {signals, stride}, volumes, fit, machine.pool, machine.cancel, advance));
    return fit;
  }
  std::atomic<std::size_t> unconstrained{0}, not_converged{0}, not_solvable{0};
  std::atomic<std::uint64_t> iterations{0};
  // Large enough that the lanes left empty at the end of a piece do not matter.
  constexpr std::size_t grain = 1024;
  machine.pool.parallel_for(voxels, grain, [&](std::size_t begin, std::size_t end) {
    if (machine.cancel.cancelled()) return;
    Workspace work(view);
    Counts counts;
    const Piece piece = {signals.data(), stride, volumes.data(), fit.coefficients.data(), begin, end};
    numerics::with_packs<double>([&]<class Number>() { fit_piece<Number>(view, piece, work, counts); }, level);
    unconstrained += counts.unconstrained;
    not_converged += counts.not_converged;
    not_solvable += counts.not_solvable;
    iterations += counts.iterations;
    if (advance) advance(end - begin);
  });
  CGL_TRY(machine.cancel.check());
  fit.unconstrained = unconstrained;
  fit.not_converged = not_converged;
  fit.not_solvable = not_solvable;
  fit.iterations = iterations;
  return fit;
}

}  // namespace cingulum
