#include "dmri/phantom/phantom_signal.hpp"

#include <algorithm>
#include <array>

#include "numerics/elementary64.hpp"
#include "numerics/random.hpp"
#include "numerics/spherical_harmonics.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

struct AxisRule {
  std::array<double, 3> at = {0, 0, 0};
  std::array<double, 3> weight = {1, 0, 0};
  std::size_t count = 1;
};

// Nodes 0, x1, x2 that have the given central moments up to the fourth. For a measure on x1 and x2 alone the moments
// obey m(k+2) = p m(k+1) - q m(k) with p = x1 + x2 and q = x1 x2; Pearson's inequality m4 m2 >= m3^2 + m2^3 makes q
// negative and the weight at 0 not negative.
AxisRule axis_rule(double m2, double m3, double m4) {
  constexpr double smallest_square = 1e-7;  // rad^2: 0.018 degrees
  if (!(m2 > smallest_square)) return {};
  const double p = m3 / m2;
  const double q = p * p - m4 / m2;
  const double width = numerics::root(std::max(p * p - 4 * q, 0.0));
  if (!(q < 0) || !(width > 0)) return {};
  const double x1 = 0.5 * (p + width);
  const double x2 = 0.5 * (p - width);
  const double w1 = m2 / (x1 * width);
  const double w2 = -m2 / (x2 * width);
  const double w0 = 1.0 - (w1 + w2);
  AxisRule rule;
  if (w0 > 1e-9) {
    rule.at = {0, x1, x2};
    rule.weight = {w0, w1, w2};
    rule.count = 3;
  } else {
    rule.at = {x1, x2, 0};
    rule.weight = {w1, w2, 0};
    rule.count = 2;
  }
  return rule;
}

Vec3d perpendicular(Vec3d v) {
  const double ax = numerics::absolute(v.x), ay = numerics::absolute(v.y), az = numerics::absolute(v.z);
  const Vec3d least = ax <= ay && ax <= az ? Vec3d{1, 0, 0} : ay <= az ? Vec3d{0, 1, 0} : Vec3d{0, 0, 1};
  return numerics::normalise(least - v * dot(least, v));
}

// Tissue where no tube is, with answers for whole voxels where a region's surface is far.
struct RegionTest {
  const TissueRegion* region;
  double smallest_half;

  enum class Answer { inside, outside, near };
  // Where a ball lies. The distance in units of the semi-axes changes by at most 1/smallest_half per mm.
  [[nodiscard]] Answer ball(Vec3d centre, double radius) const {
    const Vec3d off = centre - region->centre;
    const Vec3d share{off.x / region->half.x, off.y / region->half.y, off.z / region->half.z};
    const double norm =
        region->form == TissueRegion::Form::ellipsoid
            ? numerics::length(share)
            : std::max({numerics::absolute(share.x), numerics::absolute(share.y), numerics::absolute(share.z)});
    const double slack = radius / smallest_half + 1e-9;
    return norm + slack < 1 ? Answer::inside : norm - slack > 1 ? Answer::outside : Answer::near;
  }
};

// What the voxels of one slice contain.
struct Slice {
  std::vector<std::uint32_t> counts;  // contents per voxel
  std::vector<VoxelBundle> contents;  // first_direction counted within the slice
  std::vector<FieldDirection> directions;
};

struct Candidate {
  std::uint32_t bundle;
  std::size_t hint;
  std::uint32_t inside = 0, at_start = 0, at_end = 0;
  std::vector<WeightedDirection> directions;
};

class VoxelSampler {
 public:
  VoxelSampler(const PhantomModel& model, const PhantomField& field, const BundleIndex& index)
      : field_(field), index_(index), voxel_to_world_(field.grid.canonical.voxel_to_world) {
    for (const TissueRegion& region : model.regions) {
      regions_.push_back({&region, std::min({region.half.x, region.half.y, region.half.z})});
    }
    const double share = 1.0 / field.subsamples;
    for (int i = 0; i < field.subsamples; ++i) offsets_.push_back((i + 0.5) * share - 0.5);
  }

  void sample(std::int64_t x, std::int64_t y, std::int64_t z, Slice& slice, float& white, float& grey, float& fluid) {
    const Vec3d centre =
        voxel_to_world_.apply({static_cast<double>(x), static_cast<double>(y), static_cast<double>(z)});
    const double half_diagonal = half_diagonal_mm(field_.grid.canonical);
    find_candidates(centre);
    find_regions(centre, half_diagonal);
    const int n = field_.subsamples;
    const double share = 1.0 / (static_cast<double>(n) * n * n);
    std::uint32_t white_count = 0, grey_count = 0, fluid_count = 0;
    if (used_ == 0 && open_.empty()) {
      const auto all = static_cast<std::uint32_t>(n * n * n);
      if (base_ == Tissue::grey_matter) grey_count = all;
      if (base_ == Tissue::fluid) fluid_count = all;
    } else {
      for (int k = 0; k < n; ++k) {
        for (int j = 0; j < n; ++j) {
          for (int i = 0; i < n; ++i) {
            const Vec3d point = voxel_to_world_.apply({static_cast<double>(x) + offsets_[static_cast<std::size_t>(i)],
                                                       static_cast<double>(y) + offsets_[static_cast<std::size_t>(j)],
                                                       static_cast<double>(z) + offsets_[static_cast<std::size_t>(k)]});
            if (add_fibres(point, share)) {
              ++white_count;
              continue;
            }
            const Tissue tissue = tissue_at(point);
            grey_count += tissue == Tissue::grey_matter ? 1u : 0u;
            fluid_count += tissue == Tissue::fluid ? 1u : 0u;
          }
        }
      }
    }
    white = static_cast<float>(white_count * share);
    grey = static_cast<float>(grey_count * share);
    fluid = static_cast<float>(fluid_count * share);
    store(share, slice);
  }

  [[nodiscard]] static double half_diagonal_mm(const ImageGeometry& geometry) {
    const auto edges = geometry.voxel_mm();
    return 0.5 * numerics::length(Vec3d{edges[0], edges[1], edges[2]});
  }
  // How far from the voxel's centre a tube's surface may be, besides the radius at the centre's foot, and still meet
  // the voxel: half a diagonal, and more where the radius changes along the tube.
  [[nodiscard]] static double margin_mm(const ImageGeometry& geometry) { return 1.8 * half_diagonal_mm(geometry); }

 private:
  void find_candidates(Vec3d centre) {
    used_ = 0;
    const double margin = margin_mm(field_.grid.canonical);
    for (const BundleIndex::Entry& entry : index_.near(centre)) {
      const Bundle& bundle = field_.bundles[entry.bundle];
      const CurveFoot foot = bundle.curve().foot(centre, entry.first_sample, entry.last_sample);
      const BundlePosition position = bundle.position_of(foot);
      if (position.distance > position.radius + margin) continue;
      if (used_ == candidates_.size()) candidates_.emplace_back();
      Candidate& candidate = candidates_[used_++];
      candidate.bundle = entry.bundle;
      candidate.hint = foot.interval;
      candidate.inside = candidate.at_start = candidate.at_end = 0;
      candidate.directions.clear();
    }
  }

  void find_regions(Vec3d centre, double half_diagonal) {
    base_ = Tissue::air;
    open_.clear();
    for (const RegionTest& test : regions_) {
      const auto answer = test.ball(centre, half_diagonal);
      if (answer == RegionTest::Answer::inside) {
        base_ = test.region->tissue;
        open_.clear();
      } else if (answer == RegionTest::Answer::near) {
        open_.push_back(test.region);
      }
    }
  }

  [[nodiscard]] Tissue tissue_at(Vec3d point) const {
    Tissue tissue = base_;
    for (const TissueRegion* region : open_) {
      if (region->contains(point)) tissue = region->tissue;
    }
    return tissue;
  }

  bool add_fibres(Vec3d point, double share) {
    std::uint32_t tubes = 0;
    for (std::size_t c = 0; c < used_; ++c) {
      Candidate& candidate = candidates_[c];
      const Bundle& bundle = field_.bundles[candidate.bundle];
      const CurveFoot foot = bundle.curve().foot_near(point, candidate.hint);
      if (foot.beyond || foot.distance > bundle.largest_radius()) continue;
      const BundlePosition position = bundle.position_of(foot);
      if (!position.inside) continue;
      ++tubes;
      ++candidate.inside;
      candidate.at_start += position.at_start ? 1u : 0u;
      candidate.at_end += position.at_end ? 1u : 0u;
      candidate.directions.push_back({bundle.direction(point, position), 0});
      touched_.push_back(&candidate);
    }
    for (Candidate* candidate : touched_) candidate->directions.back().weight = share / tubes;
    touched_.clear();
    return tubes > 0;
  }

  void store(double share, Slice& slice) {
    std::uint32_t count = 0;
    for (std::size_t c = 0; c < used_; ++c) {
      const Candidate& candidate = candidates_[c];
      if (candidate.inside == 0) continue;
      ++count;
      VoxelBundle content;
      content.bundle = candidate.bundle;
      content.fraction = static_cast<float>(candidate.inside * share);
      content.start_fraction = static_cast<float>(candidate.at_start * share);
      content.end_fraction = static_cast<float>(candidate.at_end * share);
      content.first_direction = static_cast<std::uint32_t>(slice.directions.size());
      for (const WeightedDirection& node : merge_directions(candidate.directions)) {
        slice.directions.push_back({static_cast<float>(node.direction.x), static_cast<float>(node.direction.y),
                                    static_cast<float>(node.direction.z), static_cast<float>(node.weight)});
      }
      content.direction_count = static_cast<std::uint32_t>(slice.directions.size()) - content.first_direction;
      slice.contents.push_back(content);
    }
    slice.counts.push_back(count);
  }

  const PhantomField& field_;
  const BundleIndex& index_;
  const Affine& voxel_to_world_;
  std::vector<RegionTest> regions_;
  std::vector<double> offsets_;
  std::vector<Candidate> candidates_;
  std::size_t used_ = 0;
  std::vector<Candidate*> touched_;
  Tissue base_ = Tissue::air;
  std::vector<const TissueRegion*> open_;
};

}  // namespace

std::vector<WeightedDirection> merge_directions(std::span<const WeightedDirection> directions) {
  Vec3d sum{0, 0, 0};
  double weight = 0;
  for (const WeightedDirection& d : directions) {
    sum = sum + d.direction * d.weight;
    weight = weight + d.weight;
  }
  const Vec3d mean = numerics::normalise(sum);
  Vec3d e1 = perpendicular(mean);
  Vec3d e2 = cross(mean, e1);
  double aa = 0, ab = 0, bb = 0;
  for (const WeightedDirection& d : directions) {
    const double a = dot(d.direction, e1), b = dot(d.direction, e2);
    aa = aa + d.weight * (a * a);
    ab = ab + d.weight * (a * b);
    bb = bb + d.weight * (b * b);
  }
  // The principal axes of the spread.
  const double t = 0.5 * (aa - bb);
  const double r = numerics::root(t * t + ab * ab);
  if (r > 0) {
    const double c = t >= 0 ? t + r : ab;
    const double s = t >= 0 ? ab : r - t;
    const double norm = numerics::root(c * c + s * s);
    if (norm > 0) {
      const Vec3d turned = (e1 * c + e2 * s) * (1.0 / norm);
      e1 = turned;
      e2 = cross(mean, e1);
    }
  }
  double m[2][5] = {};
  for (const WeightedDirection& d : directions) {
    const double at[2] = {dot(d.direction, e1), dot(d.direction, e2)};
    for (int axis = 0; axis < 2; ++axis) {
      const double square = at[axis] * at[axis];
      m[axis][2] += d.weight * square;
      m[axis][3] += d.weight * (square * at[axis]);
      m[axis][4] += d.weight * (square * square);
    }
  }
  const AxisRule first = axis_rule(m[0][2] / weight, m[0][3] / weight, m[0][4] / weight);
  const AxisRule second = axis_rule(m[1][2] / weight, m[1][3] / weight, m[1][4] / weight);
  std::vector<WeightedDirection> nodes;
  for (std::size_t i = 0; i < first.count; ++i) {
    for (std::size_t j = 0; j < second.count; ++j) {
      const double a = first.at[i], b = second.at[j];
      const double along = numerics::root(std::max(1.0 - (a * a + b * b), 0.0));
      nodes.push_back(
          {numerics::normalise(mean * along + e1 * a + e2 * b), weight * first.weight[i] * second.weight[j]});
    }
  }
  return nodes;
}

Result<PhantomField> PhantomField::create(const PhantomModel& model, PhantomGrid grid, int subsamples,
                                          ThreadPool& pool) {
  if (subsamples < 1 || subsamples > 15) {
    return fail_argument("subsamples", "{} sub-samples along a voxel's edge (1 to 15 are accepted)", subsamples);
  }
  PhantomField field;
  field.grid = std::move(grid);
  field.subsamples = subsamples;
  for (const BundleShape& shape : model.bundles) {
    CGL_TRY_ASSIGN(Bundle bundle, Bundle::create(shape));
    field.bundles.push_back(std::move(bundle));
  }
  const auto& size = field.grid.canonical.size;
  const auto voxels = static_cast<std::size_t>(field.grid.canonical.voxel_count());
  field.white.assign(voxels, 0);
  field.grey.assign(voxels, 0);
  field.fluid.assign(voxels, 0);
  const BundleIndex index(field.bundles, VoxelSampler::margin_mm(field.grid.canonical));
  std::vector<Slice> slices(static_cast<std::size_t>(size[2]));
  pool.parallel_for(slices.size(), 1, [&](std::size_t begin, std::size_t end) {
    VoxelSampler sampler(model, field, index);
    for (std::size_t z = begin; z < end; ++z) {
      for (std::int64_t y = 0; y < size[1]; ++y) {
        for (std::int64_t x = 0; x < size[0]; ++x) {
          const auto v =
              static_cast<std::size_t>(voxel_index(field.grid.canonical, x, y, static_cast<std::int64_t>(z)));
          sampler.sample(x, y, static_cast<std::int64_t>(z), slices[z], field.white[v], field.grey[v], field.fluid[v]);
        }
      }
    }
  });
  field.first.push_back(0);
  for (Slice& slice : slices) {
    const auto before = static_cast<std::uint32_t>(field.directions.size());
    for (const std::uint32_t count : slice.counts) field.first.push_back(field.first.back() + count);
    for (VoxelBundle content : slice.contents) {
      content.first_direction += before;
      field.contents.push_back(content);
    }
    field.directions.insert(field.directions.end(), slice.directions.begin(), slice.directions.end());
    slice = {};
  }
  return field;
}

void synthesise(const PhantomField& field, const PhantomTissueSignals& signals, double b_value, Vec3d direction,
                const PhantomNoise& noise, std::uint32_t volume, std::span<float> stored, ThreadPool& pool) {
  const auto& size = field.grid.canonical.size;
  const double grey = signals.grey_s0 * numerics::exponential(-b_value * signals.grey);
  const double fluid = signals.fluid_s0 * numerics::exponential(-b_value * signals.fluid);
  const double across = b_value * signals.fibre_across;
  const double more_along = b_value * (signals.fibre_along - signals.fibre_across);
  const numerics::PhiloxKey key = numerics::philox_key(noise.seed);
  const auto rows = static_cast<std::size_t>(size[1] * size[2]);
  pool.parallel_for(rows, 16, [&](std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; ++row) {
      const auto y = static_cast<std::int64_t>(row) % size[1];
      const auto z = static_cast<std::int64_t>(row) / size[1];
      for (std::int64_t x = 0; x < size[0]; ++x) {
        const auto v = static_cast<std::size_t>(voxel_index(field.grid.canonical, x, y, z));
        double fibres = 0;
        if (field.first[v] != field.first[v + 1]) {
          const VoxelBundle& last = field.contents[field.first[v + 1] - 1];
          const std::size_t stop = last.first_direction + last.direction_count;
          for (std::size_t d = field.contents[field.first[v]].first_direction; d < stop; ++d) {
            const FieldDirection& fibre = field.directions[d];
            const double cosine = (fibre.x * direction.x + fibre.y * direction.y) + fibre.z * direction.z;
            fibres += fibre.weight * numerics::exponential(-(across + more_along * (cosine * cosine)));
          }
        }
        double signal = (signals.white_s0 * fibres + grey * field.grey[v]) + fluid * field.fluid[v];
        if (noise.sigma > 0) {
          const numerics::PhiloxBlock block = numerics::random_block(key,
                                                                     {.index = static_cast<std::uint32_t>(v),
                                                                      .purpose = numerics::DrawPurpose::phantom_noise,
                                                                      .initial_direction = 0,
                                                                      .half = 0,
                                                                      .step = volume,
                                                                      .attempt = 0},
                                                                     0);
          const auto normals = numerics::normals64_from_words(block.word[0], block.word[1]);
          const double real = signal + noise.sigma * normals.first;
          const double imaginary = noise.sigma * normals.second;
          signal = numerics::root(real * real + imaginary * imaginary);
        }
        stored[field.grid.stored_index(x, y, z)] = static_cast<float>(signal);
      }
    }
  });
}

double true_fod_damping(int degree) {
  constexpr double t = 0.042;
  return numerics::exponential(-t * degree * (degree + 1));
}

TrueFod true_fod(const PhantomField& field, ThreadPool& pool) {
  constexpr numerics::HarmonicBasis basis{numerics::HarmonicConvention::tournier07, true_fod_degree, false};
  constexpr int count = numerics::coefficient_count(true_fod_degree, false);
  TrueFod fod;
  const std::size_t voxels = field.first.size() - 1;
  for (std::size_t v = 0; v < voxels; ++v) {
    if (field.first[v] != field.first[v + 1]) fod.voxels.push_back(static_cast<std::uint32_t>(v));
  }
  std::array<double, count> damping{};
  for (int i = 0; i < count; ++i) {
    damping[static_cast<std::size_t>(i)] = true_fod_damping(numerics::harmonic_of_coefficient(i, false).l);
  }
  fod.coefficients.assign(fod.voxels.size() * count, 0);
  pool.parallel_for(fod.voxels.size(), 256, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      const std::size_t v = fod.voxels[i];
      const VoxelBundle& last = field.contents[field.first[v + 1] - 1];
      const std::size_t stop = last.first_direction + last.direction_count;
      std::array<double, count> sum{};
      for (std::size_t d = field.contents[field.first[v]].first_direction; d < stop; ++d) {
        const FieldDirection& fibre = field.directions[d];
        std::array<double, count> values{};
        numerics::evaluate_harmonics(basis, Vec3d{fibre.x, fibre.y, fibre.z}, values.data());
        for (std::size_t c = 0; c < count; ++c) sum[c] += fibre.weight * values[c];
      }
      for (std::size_t c = 0; c < count; ++c) fod.coefficients[i * count + c] = static_cast<float>(sum[c] * damping[c]);
    }
  });
  return fod;
}

}  // namespace cingulum
