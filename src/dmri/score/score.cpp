#include "dmri/score/score.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <unordered_map>

#include "dmri/score/score_bootstrap.hpp"
#include "dmri/score/score_streamline.hpp"
#include "formats/nifti.hpp"
#include "streamlines/interior_traversal.hpp"

namespace cingulum {

using numerics::Vec3d;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double share(double part, double whole) {
  return whole > 0 ? part / whole : nan;
}

// The voxels of a true mask, ascending.
std::vector<std::uint32_t> voxels_where(std::span<const float> values, float least, bool or_equal) {
  std::vector<std::uint32_t> voxels;
  for (std::size_t v = 0; v < values.size(); ++v) {
    if (values[v] > least || (or_equal && values[v] == least)) voxels.push_back(static_cast<std::uint32_t>(v));
  }
  return voxels;
}

bool holds(const std::vector<std::uint32_t>& sorted, std::uint32_t voxel) {
  return std::binary_search(sorted.begin(), sorted.end(), voxel);
}

// The voxels that valid streamlines of a bundle pass through, each with the replicates in which they do.
class CrossedVoxels {
 public:
  void set_truth(std::vector<std::uint32_t> any, std::vector<std::uint32_t> half, int replicates) {
    any_ = std::move(any);
    half_ = std::move(half);
    words_ = (static_cast<std::size_t>(replicates) + 63) / 64;
    replicates_ = static_cast<std::size_t>(replicates);
  }

  // `bits` has a bit per replicate that the streamline is in.
  void add(std::uint32_t voxel, std::span<const std::uint64_t> bits) {
    const auto [entry, is_new] = slots_.try_emplace(voxel, static_cast<std::uint32_t>(flags_.size()));
    const std::size_t slot = entry->second;
    if (is_new) {
      flags_.push_back(static_cast<std::uint8_t>((holds(any_, voxel) ? 1 : 0) | (holds(half_, voxel) ? 2 : 0)));
      bits_.resize(bits_.size() + words_, 0);
    }
    for (std::size_t w = 0; w < words_; ++w) bits_[slot * words_ + w] |= bits[w];
  }

  // |A and B| and |B| for A = any (flag 1) or half (flag 2): of all streamlines, and of each replicate.
  struct Counts {
    std::uint64_t both = 0, crossed = 0;
    std::vector<std::uint32_t> replicate_both, replicate_crossed;
  };
  [[nodiscard]] Counts counts(std::uint8_t flag) const {
    Counts counts;
    counts.replicate_both.assign(replicates_, 0);
    counts.replicate_crossed.assign(replicates_, 0);
    std::uint32_t always_both = 0, always_crossed = 0;
    for (std::size_t slot = 0; slot < flags_.size(); ++slot) {
      const std::uint32_t in = (flags_[slot] & flag) != 0 ? 1 : 0;
      counts.both += in;
      ++counts.crossed;
      if (replicates_ == 0) continue;
      const std::uint64_t* const bits = bits_.data() + slot * words_;
      bool all = true;
      for (std::size_t w = 0; w < words_ && all; ++w) {
        const std::size_t remaining = replicates_ - 64 * w;
        all = bits[w] == (remaining >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << remaining) - 1);
      }
      if (all) {
        always_both += in;
        ++always_crossed;
        continue;
      }
      for (std::size_t r = 0; r < replicates_; ++r) {
        const auto bit = static_cast<std::uint32_t>((bits[r / 64] >> (r % 64)) & 1u);
        counts.replicate_crossed[r] += bit;
        counts.replicate_both[r] += bit & in;
      }
    }
    for (std::size_t r = 0; r < replicates_; ++r) {
      counts.replicate_both[r] += always_both;
      counts.replicate_crossed[r] += always_crossed;
    }
    return counts;
  }
  [[nodiscard]] std::size_t true_count(std::uint8_t flag) const { return flag == 1 ? any_.size() : half_.size(); }

 private:
  std::vector<std::uint32_t> any_, half_;
  std::size_t words_ = 0;
  std::size_t replicates_ = 0;
  std::unordered_map<std::uint32_t, std::uint32_t> slots_;
  std::vector<std::uint8_t> flags_;
  std::vector<std::uint64_t> bits_;
};

VoxelScore voxel_score(std::uint64_t true_voxels, std::uint64_t both, std::uint64_t crossed) {
  VoxelScore score;
  score.true_voxels = true_voxels;
  score.found_voxels = both;
  score.extra_voxels = crossed - both;
  const auto a = static_cast<double>(true_voxels), found = static_cast<double>(both), b = static_cast<double>(crossed);
  score.overlap = a > 0 ? found / a : 0;
  score.overreach = a > 0 ? (b - found) / a : 0;
  score.overreach_share = b > 0 ? (b - found) / b : 0;
  score.f1 = a + b > 0 ? 2 * found / (a + b) : 0;
  return score;
}

// Sums over streamlines that the replicates share.
enum Sum : std::size_t {
  sum_all,
  sum_valid,
  sum_wrong_path,
  sum_invalid,
  sum_no_connection,
  sum_commissural,
  sum_crossing,
  sum_length,
  sum_angle,
  sum_angle_length,
  sum_distance,
  sum_distance_length,
  sum_kinds
};
using Sums = std::array<double, sum_kinds>;

Sums sums_of(const Judgement& judgement) {
  Sums sums{};
  sums[sum_all] = 1;
  sums[sum_valid] = judgement.verdict == ConnectionVerdict::valid ? 1 : 0;
  sums[sum_wrong_path] = judgement.verdict == ConnectionVerdict::wrong_path ? 1 : 0;
  sums[sum_invalid] = judgement.verdict == ConnectionVerdict::invalid ? 1 : 0;
  sums[sum_no_connection] = judgement.verdict == ConnectionVerdict::no_connection ? 1 : 0;
  sums[sum_commissural] = judgement.ends_apart ? 1 : 0;
  sums[sum_crossing] = judgement.crosses_middle ? 1 : 0;
  sums[sum_length] = judgement.length_mm;
  sums[sum_angle] = judgement.angle_sum;
  sums[sum_angle_length] = judgement.angle_length;
  sums[sum_distance] = judgement.distance_sum;
  sums[sum_distance_length] = judgement.distance_length;
  return sums;
}

// Sums for the correlation of (u, w) at both ends.
struct SectionSums {
  double n = 0;
  std::array<double, 2> a{}, b{}, aa{}, bb{}, ab{};

  void add(const Bundle::Section& start, const Bundle::Section& end) {
    const std::array<double, 2> x = {start.u, start.w}, y = {end.u, end.w};
    n += 1;
    for (std::size_t i = 0; i < 2; ++i) {
      a[i] += x[i];
      b[i] += y[i];
      aa[i] += x[i] * x[i];
      bb[i] += y[i] * y[i];
      ab[i] += x[i] * y[i];
    }
  }
  // The two components together, each about its own mean.
  [[nodiscard]] double correlation() const {
    if (n < 3) return nan;
    double covariance = 0, variance_a = 0, variance_b = 0;
    for (std::size_t i = 0; i < 2; ++i) {
      covariance += ab[i] - a[i] * b[i] / n;
      variance_a += aa[i] - a[i] * a[i] / n;
      variance_b += bb[i] - b[i] * b[i] / n;
    }
    const double product = variance_a * variance_b;
    return product > 1e-18 ? covariance / std::sqrt(product) : nan;
  }
};

struct PairCounts {
  std::uint64_t count = 0;
  std::vector<float> replicates;
};

struct BundleState {
  CrossedVoxels crossed;
  std::array<std::vector<std::uint32_t>, 2> end_voxels;  // of the true end regions, ascending
  std::array<std::vector<std::uint8_t>, 2> end_was_met;  // one per end voxel
  std::uint64_t valid = 0, wrong_path = 0;
  double length_sum = 0;
  SectionSums sections;
  std::vector<std::uint64_t> found_bits;  // replicates with a valid streamline
};

// The scores of a bundle's voxels, one per replicate.
struct VoxelReplicates {
  std::vector<double> overlap, overreach, overreach_share, f1;
};

// What is found out about the streamlines of a batch: of each its judgement, and its weight in each replicate.
struct JudgedBatch {
  std::size_t replicates, words;  // the bits of one streamline are so many words
  std::vector<Judgement> judgements;
  std::vector<std::uint8_t> weights;
  std::vector<std::uint64_t> bits;  // of a weight that is not 0

  JudgedBatch(std::size_t count, std::size_t replicate_count)
      : replicates(replicate_count),
        words((replicates + 63) / 64),
        judgements(count),
        weights(count * replicates),
        bits(count * words, 0) {}
  [[nodiscard]] std::size_t count() const { return judgements.size(); }
};

}  // namespace

PercentileInterval percentile_interval(std::vector<double> replicates) {
  replicates.erase(std::remove_if(replicates.begin(), replicates.end(), [](double x) { return std::isnan(x); }),
                   replicates.end());
  if (replicates.empty()) return {nan, nan};
  std::sort(replicates.begin(), replicates.end());
  const auto at = [&](double p) {
    const double place = p * static_cast<double>(replicates.size() - 1);
    const auto below = static_cast<std::size_t>(place);
    const std::size_t above = std::min(below + 1, replicates.size() - 1);
    const double part = place - static_cast<double>(below);
    return replicates[below] * (1 - part) + replicates[above] * part;
  };
  return {at(0.025), at(0.975)};
}

namespace {

template <class OfReplicate>
Estimate with_interval(double value, std::size_t replicates, OfReplicate&& of_replicate) {
  Estimate estimate{value, nan, nan};
  if (replicates == 0 || std::isnan(value)) return estimate;
  std::vector<double> values(replicates);
  for (std::size_t r = 0; r < replicates; ++r) values[r] = of_replicate(r);
  const PercentileInterval interval = percentile_interval(std::move(values));
  estimate.low = interval.low;
  estimate.high = interval.high;
  return estimate;
}

// A replicate holds about 63 % of the distinct streamlines, so what grows with their number (voxels and bundles met)
// or suffers from few (correlations) is lower in it. Only the spread of the replicates is used: their mean is moved
// to the value.
template <class OfReplicate>
Estimate with_centred_interval(double value, double lowest, double highest, std::size_t replicates,
                               OfReplicate&& of_replicate) {
  double sum = 0, defined = 0;
  for (std::size_t r = 0; r < replicates; ++r) {
    const double x = of_replicate(r);
    if (std::isnan(x)) continue;
    sum += x;
    defined += 1;
  }
  const double shift = defined > 0 ? value - sum / defined : 0;
  Estimate estimate = with_interval(value, replicates, of_replicate);
  estimate.low = std::clamp(estimate.low + shift, lowest, highest);
  estimate.high = std::clamp(estimate.high + shift, lowest, highest);
  return estimate;
}

double median_of(std::vector<float> values) {
  if (values.empty()) return nan;
  const auto upper = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), upper, values.end());
  if (values.size() % 2 != 0) return *upper;
  return 0.5 * (static_cast<double>(*upper) + *std::max_element(values.begin(), upper));
}

}  // namespace

struct Scorer::State {
  State(PhantomTruth phantom, const ScoreOptions& chosen, Affine inverse)
      : truth(std::move(phantom)),
        options(chosen),
        world_to_voxel(inverse),
        judge(truth.bundles, truth.geometry.smallest_edge_mm(), chosen.end_tolerance_mm),
        bundles(truth.bundles.size()),
        replicate_sums(sum_kinds * static_cast<std::size_t>(chosen.bootstrap), 0.0) {}

  PhantomTruth truth;
  ScoreOptions options;
  Affine world_to_voxel;
  StreamlineJudge judge;
  std::vector<BundleState> bundles;
  Sums sums{};
  std::vector<double> replicate_sums;                                   // kind after kind
  std::map<std::pair<std::uint32_t, std::uint32_t>, PairCounts> pairs;  // the lower region first
  JudgeHistograms histograms;
  std::vector<float> lengths;
  std::uint64_t not_finite = 0;

  [[nodiscard]] std::size_t replicates() const { return static_cast<std::size_t>(options.bootstrap); }
  [[nodiscard]] double replicate_sum(Sum kind, std::size_t r) const { return replicate_sums[kind * replicates() + r]; }
  [[nodiscard]] Estimate ratio(Sum part, Sum whole) const {
    return with_interval(share(sums[part], sums[whole]), replicates(),
                         [&](std::size_t r) { return share(replicate_sum(part, r), replicate_sum(whole, r)); });
  }
  [[nodiscard]] double weight_matrix_correlation(std::size_t replicate, bool all) const;

  // Steps of add(), in this order.
  void judge_batch(const TractogramBatch& batch, ThreadPool& pool, JudgedBatch& judged);
  void add_sums(const JudgedBatch& judged, ThreadPool& pool);
  void add_pairs(const JudgedBatch& judged);
  void add_to_bundles(const TractogramBatch& batch, ThreadPool& pool, const JudgedBatch& judged);
  void add_valid(std::span<const float> points, const Judgement& judgement, std::span<const std::uint64_t> in,
                 InteriorTraversal& traversal, std::vector<std::uint32_t>& voxels);

  // Steps of finish().
  void score_streamlines(Score& score) const;
  [[nodiscard]] BundleScore score_bundle(std::size_t b, std::array<VoxelReplicates, 2>& in_replicates) const;
  void score_bundles(Score& score, ThreadPool& pool) const;
  void list_false_connections(Score& score) const;
};

Scorer::Scorer(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
Scorer::Scorer(Scorer&&) noexcept = default;
Scorer& Scorer::operator=(Scorer&&) noexcept = default;
Scorer::~Scorer() = default;

Result<Scorer> Scorer::create(const std::filesystem::path& truth, const ScoreOptions& options) {
  return catch_out_of_memory([&]() -> Result<Scorer> {
    if (options.bootstrap < 0 || options.bootstrap > 10'000) {
      return fail_argument("bootstrap", "{} bootstrap replicates (0 to 10000 are accepted)", options.bootstrap);
    }
    CGL_TRY_ASSIGN(PhantomTruth phantom, read_phantom(truth));
    ScoreOptions chosen = options;
    if (!(chosen.end_tolerance_mm > 0)) chosen.end_tolerance_mm = 0.5 * phantom.geometry.smallest_edge_mm();
    CGL_TRY_ASSIGN(const Affine inverse, phantom.geometry.voxel_to_world.inverse());
    auto state = std::make_unique<State>(std::move(phantom), chosen, inverse);
    const ImageGeometry& geometry = state->truth.geometry;
    const auto read = [&](const std::string& name) -> Result<Image> {
      const std::filesystem::path path = truth / name;
      CGL_TRY_ASSIGN(Image image, read_image(path));
      CGL_TRY(check_same_grid(image.geometry, path.string(), geometry, "phantom.json"));
      if (image.volumes != 1) return fail(ErrorKind::corrupt, "{} has {} volumes, not 1", path.string(), image.volumes);
      return image;
    };
    for (std::size_t b = 0; b < state->truth.bundles.size(); ++b) {
      const std::string& name = state->truth.bundles[b].name();
      BundleState& bundle = state->bundles[b];
      CGL_TRY_ASSIGN(const Image fractions, read("bundles/" + name + ".nii.gz"));
      bundle.crossed.set_truth(voxels_where(fractions.values, 0, false), voxels_where(fractions.values, 0.5f, true),
                               chosen.bootstrap);
      for (std::size_t end = 0; end < 2; ++end) {
        CGL_TRY_ASSIGN(const Image region, read("ends/" + name + (end == 0 ? "_a" : "_b") + ".nii.gz"));
        bundle.end_voxels[end] = voxels_where(region.values, 0, false);
        bundle.end_was_met[end].assign(bundle.end_voxels[end].size(), 0);
      }
      bundle.found_bits.assign((state->replicates() + 63) / 64, 0);
    }
    return Scorer(std::move(state));
  });
}

void Scorer::add(const TractogramBatch& batch, ThreadPool& pool) {
  JudgedBatch judged(batch.streamline_count(), state_->replicates());
  state_->judge_batch(batch, pool, judged);
  state_->add_sums(judged, pool);
  state_->add_pairs(judged);
  state_->add_to_bundles(batch, pool, judged);
}

void Scorer::State::judge_batch(const TractogramBatch& batch, ThreadPool& pool, JudgedBatch& judged) {
  const std::uint64_t first = lengths.size();
  std::mutex histogram_mutex;
  pool.parallel_for(judged.count(), 16, [&](std::size_t begin, std::size_t end) {
    // Histograms are large: one per thread and batch would do, one per piece is added under the lock.
    static thread_local JudgeHistograms local;
    local = JudgeHistograms{};
    for (std::size_t i = begin; i < end; ++i) {
      judged.judgements[i] = judge.judge(batch.streamline(i), local);
      const std::span<std::uint8_t> drawn = std::span(judged.weights).subspan(i * judged.replicates, judged.replicates);
      draw_weights(options.seed, first + i, drawn);
      for (std::size_t r = 0; r < judged.replicates; ++r) {
        if (drawn[r] != 0) judged.bits[i * judged.words + r / 64] |= std::uint64_t{1} << (r % 64);
      }
    }
    const std::lock_guard lock(histogram_mutex);
    histograms.angle.add(local.angle);
    histograms.distance.add(local.distance);
  });
}

// Sums of the whole and of each replicate, in the order of the streamlines.
void Scorer::State::add_sums(const JudgedBatch& judged, ThreadPool& pool) {
  std::vector<Sums> of_each(judged.count());
  for (std::size_t i = 0; i < judged.count(); ++i) {
    const Judgement& judgement = judged.judgements[i];
    of_each[i] = sums_of(judgement);
    for (std::size_t kind = 0; kind < sum_kinds; ++kind) sums[kind] += of_each[i][kind];
    lengths.push_back(static_cast<float>(judgement.length_mm));
    not_finite += judgement.not_finite ? 1u : 0u;
  }
  pool.parallel_for(judged.replicates, 64, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = 0; i < of_each.size(); ++i) {
      const std::uint8_t* const weight = judged.weights.data() + i * judged.replicates;
      for (std::size_t kind = 0; kind < sum_kinds; ++kind) {
        const double value = of_each[i][kind];
        if (value == 0) continue;
        double* const sum = replicate_sums.data() + kind * judged.replicates;
        for (std::size_t r = begin; r < end; ++r) sum[r] += value * weight[r];
      }
    }
  });
}

void Scorer::State::add_pairs(const JudgedBatch& judged) {
  for (std::size_t i = 0; i < judged.count(); ++i) {
    const Judgement& judgement = judged.judgements[i];
    if (judgement.verdict == ConnectionVerdict::no_connection) continue;
    PairCounts& pair = pairs[std::minmax(judgement.start_region, judgement.end_region)];
    pair.replicates.resize(judged.replicates, 0);
    ++pair.count;
    for (std::size_t r = 0; r < judged.replicates; ++r) {
      pair.replicates[r] += judged.weights[i * judged.replicates + r];
    }
  }
}

// A bundle at a time, so that threads never share one.
void Scorer::State::add_to_bundles(const TractogramBatch& batch, ThreadPool& pool, const JudgedBatch& judged) {
  std::vector<std::vector<std::uint32_t>> members(bundles.size());
  for (std::size_t i = 0; i < judged.count(); ++i) {
    const std::uint32_t bundle = judged.judgements[i].bundle;
    if (bundle != no_region) members[bundle].push_back(static_cast<std::uint32_t>(i));
  }
  pool.parallel_for(members.size(), 1, [&](std::size_t begin, std::size_t end) {
    InteriorTraversal traversal(truth.geometry.size);
    std::vector<std::uint32_t> voxels;
    for (std::size_t b = begin; b < end; ++b) {
      for (const std::uint32_t i : members[b]) {
        const Judgement& judgement = judged.judgements[i];
        if (judgement.verdict == ConnectionVerdict::wrong_path) {
          ++bundles[b].wrong_path;
          continue;
        }
        const std::span in = std::span(judged.bits).subspan(i * judged.words, judged.words);
        add_valid(batch.streamline(i), judgement, in, traversal, voxels);
      }
    }
  });
}

// Adds a valid streamline to its bundle; `in` has a bit per replicate that the streamline is in.
void Scorer::State::add_valid(std::span<const float> points, const Judgement& judgement,
                              std::span<const std::uint64_t> in, InteriorTraversal& traversal,
                              std::vector<std::uint32_t>& voxels) {
  BundleState& bundle = bundles[judgement.bundle];
  ++bundle.valid;
  bundle.length_sum += judgement.length_mm;
  bundle.sections.add(judgement.start_section, judgement.end_section);
  for (std::size_t w = 0; w < in.size(); ++w) bundle.found_bits[w] |= in[w];
  const auto voxel_position = [&](std::size_t p) {
    return world_to_voxel.apply({points[3 * p], points[3 * p + 1], points[3 * p + 2]});
  };
  const std::size_t last = points.size() / 3 - 1;
  voxels.clear();
  for (std::size_t p = 0; p < last; ++p) traversal.append(voxel_position(p), voxel_position(p + 1), voxels);
  std::sort(voxels.begin(), voxels.end());
  voxels.erase(std::unique(voxels.begin(), voxels.end()), voxels.end());
  for (const std::uint32_t voxel : voxels) bundle.crossed.add(voxel, in);
  // The streamline's first point belongs to the start region or, where it runs backwards, to the end region.
  for (std::size_t which = 0; which < 2; ++which) {
    const std::uint32_t voxel = traversal.voxel_at(voxel_position(which == 0 ? 0 : last));
    const std::uint32_t region = (which == 0 ? judgement.start_region : judgement.end_region) % 2;
    const auto& true_voxels = bundle.end_voxels[region];
    const auto found = std::lower_bound(true_voxels.begin(), true_voxels.end(), voxel);
    if (found != true_voxels.end() && *found == voxel) {
      bundle.end_was_met[region][static_cast<std::size_t>(found - true_voxels.begin())] = 1;
    }
  }
}

// Pearson's r over the upper triangle of the matrix of end regions; true weights are cross-sections.
double Scorer::State::weight_matrix_correlation(std::size_t replicate, bool all) const {
  const double regions = 2.0 * static_cast<double>(truth.bundles.size());
  const double n = regions * (regions - 1) / 2;
  double x = 0, xx = 0, t = 0, tt = 0, xt = 0;
  for (const auto& [ends, pair] : pairs) {
    if (ends.first == ends.second) continue;
    const double value = all ? static_cast<double>(pair.count) : static_cast<double>(pair.replicates[replicate]);
    x += value;
    xx += value * value;
    if (ends.first / 2 == ends.second / 2) xt += value * truth.bundles[ends.first / 2].cross_section_mm2();
  }
  for (const Bundle& bundle : truth.bundles) {
    const double weight = bundle.cross_section_mm2();
    t += weight;
    tt += weight * weight;
  }
  const double product = (xx - x * x / n) * (tt - t * t / n);
  return n > 1 && product > 0 ? (xt - x * t / n) / std::sqrt(product) : nan;
}

// Everything but what is said of bundles: counts, and means over streamlines or their length.
void Scorer::State::score_streamlines(Score& score) const {
  const auto count_of = [&](Sum kind) { return static_cast<std::uint64_t>(sums[kind]); };
  score.streamlines = lengths.size();
  score.valid_count = count_of(sum_valid);
  score.wrong_path_count = count_of(sum_wrong_path);
  score.invalid_count = count_of(sum_invalid);
  score.no_connection_count = count_of(sum_no_connection);
  score.commissural_count = count_of(sum_commissural);
  score.crossing_midline_count = count_of(sum_crossing);
  score.not_finite_count = not_finite;
  score.valid = ratio(sum_valid, sum_all);
  score.wrong_path = ratio(sum_wrong_path, sum_all);
  score.invalid = ratio(sum_invalid, sum_all);
  score.no_connection = ratio(sum_no_connection, sum_all);
  score.commissural = ratio(sum_commissural, sum_all);
  score.crossing_midline = ratio(sum_crossing, sum_all);
  score.valid_of_connections =
      with_interval(share(sums[sum_valid], sums[sum_valid] + sums[sum_invalid]), replicates(), [&](std::size_t r) {
        return share(replicate_sum(sum_valid, r), replicate_sum(sum_valid, r) + replicate_sum(sum_invalid, r));
      });
  score.length_mm = ratio(sum_length, sum_all);
  score.angular_error_deg = ratio(sum_angle, sum_angle_length);
  score.distance_mm = ratio(sum_distance, sum_distance_length);
  score.share_in_tubes = share(sums[sum_angle_length], sums[sum_length]);
  score.angular_error_median_deg = sums[sum_angle_length] > 0 ? histograms.angle.quantile(0.5) : nan;
  score.distance_p95_mm = sums[sum_distance_length] > 0 ? histograms.distance.quantile(0.95) : nan;
  score.length_median_mm = median_of(lengths);
  // Resampling adds the scatter of Poisson counts to every entry of the matrix a second time, which lowers Pearson's r
  // in every replicate (attenuation): the interval is centred.
  score.connectivity_correlation =
      with_centred_interval(weight_matrix_correlation(0, true), -1.0, 1.0, replicates(),
                            [&](std::size_t r) { return weight_matrix_correlation(r, false); });
}

// One bundle, and its voxels in each replicate: with f > 0 and with f >= 0.5.
BundleScore Scorer::State::score_bundle(std::size_t b, std::array<VoxelReplicates, 2>& in_replicates) const {
  const BundleState& bundle = bundles[b];
  BundleScore result;
  result.name = truth.bundles[b].name();
  result.valid_count = bundle.valid;
  result.wrong_path_count = bundle.wrong_path;
  result.length_mean_mm = share(bundle.length_sum, static_cast<double>(bundle.valid));
  result.topography = bundle.sections.correlation();
  std::size_t met = 0, end_voxels = 0;
  for (std::size_t side = 0; side < 2; ++side) {
    end_voxels += bundle.end_voxels[side].size();
    met += static_cast<std::size_t>(std::count(bundle.end_was_met[side].begin(), bundle.end_was_met[side].end(), 1));
  }
  result.endpoint_overlap = end_voxels > 0 ? static_cast<double>(met) / static_cast<double>(end_voxels) : 0;
  for (std::size_t kind = 0; kind < 2; ++kind) {
    const auto flag = static_cast<std::uint8_t>(kind + 1);
    const CrossedVoxels::Counts counts = bundle.crossed.counts(flag);
    const std::size_t true_count = bundle.crossed.true_count(flag);
    (kind == 0 ? result.any : result.half_filled) = voxel_score(true_count, counts.both, counts.crossed);
    VoxelReplicates& values = in_replicates[kind];
    for (std::size_t r = 0; r < replicates(); ++r) {
      const VoxelScore one = voxel_score(true_count, counts.replicate_both[r], counts.replicate_crossed[r]);
      values.overlap.push_back(one.overlap);
      values.overreach.push_back(one.overreach);
      values.overreach_share.push_back(one.overreach_share);
      values.f1.push_back(one.f1);
    }
  }
  return result;
}

// Each bundle, and the means over all of them.
void Scorer::State::score_bundles(Score& score, ThreadPool& pool) const {
  const std::size_t bundle_count = bundles.size();
  const auto whole = static_cast<double>(bundle_count);
  score.bundles.resize(bundle_count);
  std::vector<std::array<VoxelReplicates, 2>> in_replicates(bundle_count);
  pool.parallel_for(bundle_count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t b = begin; b < end; ++b) score.bundles[b] = score_bundle(b, in_replicates[b]);
  });
  for (std::size_t kind = 0; kind < 2; ++kind) {
    const auto mean = [&](double VoxelScore::*value, std::vector<double> VoxelReplicates::*list) {
      double sum = 0;
      for (const BundleScore& bundle : score.bundles) sum += (kind == 0 ? bundle.any : bundle.half_filled).*value;
      const double highest = value == &VoxelScore::overreach ? std::numeric_limits<double>::infinity() : 1;
      return with_centred_interval(sum / whole, 0, highest, replicates(), [&](std::size_t r) {
        double total = 0;
        for (const auto& bundle : in_replicates) total += (bundle[kind].*list)[r];
        return total / whole;
      });
    };
    Score::Means& means = kind == 0 ? score.any : score.half_filled;
    means.overlap = mean(&VoxelScore::overlap, &VoxelReplicates::overlap);
    means.overreach = mean(&VoxelScore::overreach, &VoxelReplicates::overreach);
    means.overreach_share = mean(&VoxelScore::overreach_share, &VoxelReplicates::overreach_share);
    means.f1 = mean(&VoxelScore::f1, &VoxelReplicates::f1);
  }
  double topography = 0, topography_count = 0;
  for (const BundleScore& bundle : score.bundles) {
    score.bundles_found += bundle.valid_count > 0 ? 1 : 0;
    score.endpoint_overlap += bundle.endpoint_overlap / whole;
    if (std::isnan(bundle.topography)) continue;
    topography += bundle.topography;
    topography_count += 1;
  }
  score.topography = share(topography, topography_count);
  score.bundles_found_share =
      with_centred_interval(static_cast<double>(score.bundles_found) / whole, 0, 1, replicates(), [&](std::size_t r) {
        double found = 0;
        for (const BundleState& bundle : bundles)
          found += static_cast<double>((bundle.found_bits[r / 64] >> (r % 64)) & 1u);
        return found / whole;
      });
}

void Scorer::State::list_false_connections(Score& score) const {
  const auto region_name = [&](std::uint32_t region) {
    return truth.bundles[region / 2].name() + (region % 2 == 0 ? "_a" : "_b");
  };
  for (const auto& [ends, pair] : pairs) {
    if (ends.first / 2 == ends.second / 2 && ends.first != ends.second) continue;
    ++score.invalid_bundles;
    score.false_connections.push_back({region_name(ends.first), region_name(ends.second), pair.count});
  }
  std::stable_sort(score.false_connections.begin(), score.false_connections.end(),
                   [](const FalseConnection& a, const FalseConnection& b) { return a.count > b.count; });
}

Score Scorer::finish(ThreadPool& pool) const {
  Score score;
  score.preset = state_->truth.preset;
  score.end_tolerance_mm = state_->options.end_tolerance_mm;
  score.replicates = state_->options.bootstrap;
  state_->score_streamlines(score);
  state_->score_bundles(score, pool);
  state_->list_false_connections(score);
  return score;
}

Result<Score> score_tractogram(const std::filesystem::path& tractogram, const std::filesystem::path& truth,
                               const ScoreOptions& options, ThreadPool& pool, const RunContext& context) {
  CGL_TRY_ASSIGN(Scorer scorer, Scorer::create(truth, options));
  return catch_out_of_memory([&]() -> Result<Score> {
    CGL_TRY_ASSIGN(const std::unique_ptr<TractogramReader> reader, TractogramReader::open(tractogram));
    const std::int64_t total = reader->layout().streamline_count;
    Progress progress("scoring", total > 0 ? static_cast<std::uint64_t>(total) : 0, "streamlines", context.progress);
    TractogramBatch batch;
    while (true) {
      CGL_TRY(context.cancel.check());
      CGL_TRY_ASSIGN(const bool more, reader->next(batch, default_batch_points, true));
      if (!more) break;
      scorer.add(batch, pool);
      progress.advance(batch.streamline_count());
    }
    progress.finish();
    return scorer.finish(pool);
  });
}

}  // namespace cingulum
