#include "dmri/series/gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "dmri/models/tensor.hpp"
#include "numerics/pack.hpp"
#include "numerics/portable.hpp"

namespace cingulum {

namespace {

using numerics::Vec3d;
using Matrix = std::array<double, 9>;

constexpr double least_fa = 0.25;
constexpr double step_edges[] = {2, 3};  // step lengths in mean voxel edges: long enough to leave a thin bundle
constexpr std::int64_t block_edge = 4;   // voxels
constexpr std::size_t least_voxels = 100;
constexpr std::size_t least_blocks = 6;
constexpr double largest_b_value = 1600;
constexpr std::size_t enough_directions = 12;
constexpr std::size_t most_starts = 50000;  // voxels that steps start from: enough for any decision
// Large images are judged by the planes in the middle, with so many voxels at least: the gain of the right reading then
// still is dozens of standard errors. So many planes at least, so that most steps across them stay inside.
constexpr std::size_t enough_voxels = 50000;
constexpr std::int64_t least_planes = 24;

Matrix multiply(const Matrix& a, const Matrix& b) {
  Matrix c = {};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      for (std::size_t k = 0; k < 3; ++k) c[3 * i + j] += a[3 * i + k] * b[3 * k + j];
    }
  }
  return c;
}

// Equal up to a common sign, to about half a degree.
bool same_axes(const Matrix& a, const Matrix& b) {
  double plus = 0;
  double minus = 0;
  for (std::size_t i = 0; i < 9; ++i) {
    plus = std::max(plus, std::abs(a[i] - b[i]));
    minus = std::max(minus, std::abs(a[i] + b[i]));
  }
  return std::min(plus, minus) < 0.01;
}

Matrix frame_matrix(GradientFrame frame, const Affine& voxel_to_world) {
  GradientTable axes;
  axes.b_values = {1000, 1000, 1000};
  axes.vectors = {{1, 0, 0}, {0, 1, 0}, {0, 0, 1}};
  const auto columns = directions_in_image_axes(axes, frame, voxel_to_world);
  return {columns[0].x, columns[1].x, columns[2].x, columns[0].y, columns[1].y,
          columns[2].y, columns[0].z, columns[1].z, columns[2].z};
}

struct SignedPermutation {
  Matrix matrix;
  std::string text;  // "(-x, z, y)"
};

std::vector<SignedPermutation> signed_permutations() {
  constexpr std::array<std::array<std::size_t, 3>, 6> orders = {
      {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};
  std::vector<SignedPermutation> result;
  for (const auto& order : orders) {
    for (int negated = -1; negated < 3; ++negated) {
      SignedPermutation one;
      one.matrix = {};
      for (std::size_t i = 0; i < 3; ++i) {
        const bool is_negated = static_cast<int>(i) == negated;
        one.matrix[3 * i + order[i]] = is_negated ? -1 : 1;
        one.text += i == 0 ? "(" : ", ";
        if (is_negated) one.text += '-';
        one.text += "xyz"[order[i]];
      }
      one.text += ')';
      result.push_back(std::move(one));
    }
  }
  return result;
}

// fsl, voxel and world come first, so that a frame is preferred among equals.
std::vector<GradientReading> make_readings(const Affine& voxel_to_world) {
  std::vector<GradientReading> readings;
  const auto find = [&](const Matrix& matrix) {
    return std::find_if(readings.begin(), readings.end(),
                        [&](const GradientReading& reading) { return same_axes(reading.to_image, matrix); });
  };
  for (const GradientFrame frame : {GradientFrame::fsl, GradientFrame::voxel, GradientFrame::world}) {
    const Matrix matrix = frame_matrix(frame, voxel_to_world);
    auto known = find(matrix);
    if (known == readings.end()) {
      readings.push_back({.name = std::string(gradient_frame_name(frame)), .frames = {}, .to_image = matrix});
      known = readings.end() - 1;
    }
    known->frames.push_back(frame);
  }
  for (const GradientFrame frame : {GradientFrame::voxel, GradientFrame::world}) {
    const Matrix matrix = frame_matrix(frame, voxel_to_world);
    for (const SignedPermutation& permutation : signed_permutations()) {
      // The permutation is of the file's columns, so it comes first.
      const Matrix turned = multiply(matrix, permutation.matrix);
      if (find(turned) != readings.end()) continue;
      readings.push_back(
          {.name = fmt::format("{} with (x, y, z) read as {}", gradient_frame_name(frame), permutation.text),
           .frames = {},
           .to_image = turned});
    }
  }
  return readings;
}

// The volumes to fit: those of small b-values where they are enough.
std::vector<std::uint8_t> choose_volumes(const GradientTable& table) {
  std::vector<std::uint8_t> use(table.size(), 1);
  std::size_t weighted = 0;
  for (std::size_t i = 0; i < table.size(); ++i) {
    use[i] = table.b_values[i] <= largest_b_value ? 1 : 0;
    weighted += use[i] != 0 && table.b_values[i] > default_b0_threshold ? 1U : 0U;
  }
  if (weighted < enough_directions) std::fill(use.begin(), use.end(), std::uint8_t{1});
  return use;
}

// Planes of the image across its last axis, and the records of their voxels, which lie together.
struct Slab {
  std::int64_t first_plane = 0;
  std::int64_t planes = 0;
  std::size_t first_record = 0;
  std::size_t records = 0;
};

// The fewest planes about that of the middle voxel that are enough.
Slab middle_of(const DwiSignals& signals) {
  const auto [x, y, z] = signals.geometry.size;
  const std::int64_t plane_voxels = x * y;
  const std::span<const std::uint32_t> voxels = signals.voxels;
  const auto record_of_plane = [&](std::int64_t plane) {
    return static_cast<std::size_t>(
        std::lower_bound(voxels.begin(), voxels.end(), static_cast<std::uint64_t>(plane * plane_voxels)) -
        voxels.begin());
  };
  Slab slab = {.first_plane = 0, .planes = z, .first_record = 0, .records = voxels.size()};
  if (voxels.size() <= enough_voxels || z <= least_planes) return slab;
  const std::int64_t middle = static_cast<std::int64_t>(voxels[voxels.size() / 2]) / plane_voxels;
  for (std::int64_t half = least_planes / 2; half < z; ++half) {
    const std::int64_t first = std::max<std::int64_t>(middle - half, 0);
    const std::int64_t end = std::min(middle + half, z);
    const std::size_t first_record = record_of_plane(first);
    const std::size_t records = record_of_plane(end) - first_record;
    slab = {.first_plane = first, .planes = end - first, .first_record = first_record, .records = records};
    if (records >= enough_voxels && end - first >= least_planes) break;
  }
  return slab;
}

// The voxels that have a clear main direction, block by block, and where they are in the slab.
struct Fibres {
  std::array<std::int64_t, 3> size = {};  // of the slab
  std::array<double, 3> voxel_mm = {};
  double mean_edge_mm = 0;
  std::vector<std::uint32_t> at_voxel;     // number of the fibre; where there is none, count()
  std::vector<std::uint32_t> voxels;       // of each fibre
  std::vector<Vec3d> directions;           // as the file has the b-vectors; a zero behind the last, for voxels without
  std::vector<std::size_t> block_offsets;  // fibres of one block lie together

  [[nodiscard]] std::size_t count() const { return voxels.size(); }
};

Fibres collect_fibres(const DwiSignals& signals, const Slab& slab, const TensorFit& fit) {
  Fibres fibres;
  fibres.size = {signals.geometry.size[0], signals.geometry.size[1], slab.planes};
  const auto first_voxel = static_cast<std::uint32_t>(slab.first_plane * fibres.size[0] * fibres.size[1]);
  const auto voxel_of = [&](std::size_t record) { return signals.voxels[slab.first_record + record] - first_voxel; };
  fibres.voxel_mm = signals.geometry.voxel_mm();
  fibres.mean_edge_mm = (fibres.voxel_mm[0] + fibres.voxel_mm[1] + fibres.voxel_mm[2]) / 3;
  std::array<std::int64_t, 3> blocks;
  for (std::size_t axis = 0; axis < 3; ++axis) blocks[axis] = (fibres.size[axis] + block_edge - 1) / block_edge;
  std::vector<std::pair<std::size_t, std::uint32_t>> found;  // block, record of the slab
  std::vector<std::size_t> first_of_block(static_cast<std::size_t>(blocks[0] * blocks[1] * blocks[2]) + 1, 0);
  for (std::size_t i = 0; i < fit.size(); ++i) {
    // Where nothing diffuses, or everything in one direction alone, the voxel is background or damage.
    if (!(fit.fa[i] > least_fa) || !(fit.eigenvalues[3 * i + 1] > fit.least_diffusivity)) continue;
    const auto voxel = static_cast<std::int64_t>(voxel_of(i));
    const std::int64_t x = voxel % fibres.size[0];
    const std::int64_t y = voxel / fibres.size[0] % fibres.size[1];
    const std::int64_t z = voxel / (fibres.size[0] * fibres.size[1]);
    const auto block =
        static_cast<std::size_t>(x / block_edge + blocks[0] * (y / block_edge + blocks[1] * (z / block_edge)));
    found.emplace_back(block, static_cast<std::uint32_t>(i));
    ++first_of_block[block + 1];
  }
  for (std::size_t block = 0; block + 1 < first_of_block.size(); ++block) {
    if (first_of_block[block + 1] > 0) fibres.block_offsets.push_back(first_of_block[block]);
    first_of_block[block + 1] += first_of_block[block];
  }
  fibres.block_offsets.push_back(found.size());
  fibres.at_voxel.assign(static_cast<std::size_t>(fibres.size[0] * fibres.size[1] * fibres.size[2]),
                         static_cast<std::uint32_t>(found.size()));
  fibres.voxels.resize(found.size());
  fibres.directions.resize(found.size() + 1, Vec3d{0, 0, 0});
  for (const auto& [block, record] : found) {
    const std::size_t fibre = first_of_block[block]++;
    fibres.at_voxel[voxel_of(record)] = static_cast<std::uint32_t>(fibre);
    fibres.voxels[fibre] = voxel_of(record);
    const float* v = fit.v1.data() + std::size_t{3} * record;
    fibres.directions[fibre] = {v[0], v[1], v[2]};
  }
  return fibres;
}

constexpr double left_the_image = -1;
constexpr std::size_t steps_per_fibre = 2 * std::size(step_edges);

// The voxel of a fibre, the same for every reading.
std::array<double, 3> start_of(const Fibres& fibres, std::size_t fibre) {
  const auto voxel = static_cast<std::int64_t>(fibres.voxels[fibre]);
  const std::int64_t row = voxel / fibres.size[0];
  return {static_cast<double>(voxel % fibres.size[0]), static_cast<double>(row % fibres.size[1]),
          static_cast<double>(row / fibres.size[1])};
}

// All readings side by side, a lane each. Lanes behind the last reading read every direction as zero, and nobody looks
// at them.
struct ReadingLanes {
  std::size_t lanes = 0;        // a multiple of the widest registers
  std::vector<double> entries;  // 9 rows of `lanes`: an entry of to_image each

  explicit ReadingLanes(const std::vector<GradientReading>& readings)
      : lanes((readings.size() + 7) / 8 * 8), entries(9 * lanes, 0.0) {
    for (std::size_t r = 0; r < readings.size(); ++r) {
      for (std::size_t i = 0; i < 9; ++i) entries[i * lanes + r] = readings[r].to_image[i];
    }
  }
};

// Sums over a block's fibres for one reading against a reference, over the steps that stay in the image in both.
struct Tally {
  double own = 0;  // all steps of this reading that stay in the image
  double own_count = 0;
  double difference = 0;
  double reference = 0;
  double count = 0;
};

// The tallies of all readings over some fibres. Loops run over the lanes of plain rows, so that the compiler makes
// instructions for whole registers of them.
class TallyLanes {
 public:
  explicit TallyLanes(const ReadingLanes& readings)
      : readings_(readings),
        turn_(3 * readings.lanes),
        way_(3 * readings.lanes),
        index_(readings.lanes),
        values_(steps_per_fibre * readings.lanes),
        sums_(5 * readings.lanes) {}

  // Sums over the fibres begin, begin + stride, ... below `end`, in this order.
  void count_fibres(const Fibres& fibres, std::size_t begin, std::size_t end, std::size_t stride,
                    std::size_t reference) {
    std::fill(sums_.begin(), sums_.end(), 0.0);
    for (std::size_t fibre = begin; fibre < end; fibre += stride) {
      take_steps(fibres, fibre, readings_.entries.data(), readings_.lanes, turn_.data(), way_.data(), index_.data(),
                 values_.data());
      add_steps(values_.data(), readings_.lanes, reference, sums_.data());
    }
  }
  [[nodiscard]] Tally of(std::size_t reading) const {
    const auto sum = [&](std::size_t row) { return sums_[row * readings_.lanes + reading]; };
    return {.own = sum(0), .own_count = sum(1), .difference = sum(2), .reference = sum(3), .count = sum(4)};
  }

 private:
  // For each step along the fibre's direction as each reading has it, a row of lanes: the squared cosine between the
  // fibre and that at the end (0 where there is none), as float32, or left_the_image. How alike two directions are does
  // not depend on the reading.
  CGL_SIMD_CLONES static void take_steps(const Fibres& fibres, std::size_t fibre, const double* __restrict entries,
                                         std::size_t lanes, double* __restrict turn, double* __restrict way,
                                         double* __restrict index, double* __restrict values) {
    const std::array<double, 3> start = start_of(fibres, fibre);
    const Vec3d own = fibres.directions[fibre];
    double* const turn_x = turn;
    double* const turn_y = turn + lanes;
    double* const turn_z = turn + 2 * lanes;
    for (std::size_t r = 0; r < lanes; ++r) {
      const auto entry = [&](std::size_t i) { return entries[i * lanes + r]; };
      const double x = (entry(0) * own.x + entry(1) * own.y) + entry(2) * own.z;
      const double y = (entry(3) * own.x + entry(4) * own.y) + entry(5) * own.z;
      const double z = (entry(6) * own.x + entry(7) * own.y) + entry(8) * own.z;
      // As numerics::normalise.
      const double square = (x * x + y * y) + z * z;
      const double inverse = 1 / __builtin_sqrt(square);
      const double scale = square >= 0x1p-120 ? inverse : 0;
      turn_x[r] = x * scale;
      turn_y[r] = y * scale;
      turn_z[r] = z * scale;
    }
    const auto size_x = static_cast<double>(fibres.size[0]);
    const auto size_y = static_cast<double>(fibres.size[1]);
    const auto size_z = static_cast<double>(fibres.size[2]);
    const std::uint32_t* const at_voxel = fibres.at_voxel.data();
    const Vec3d* const directions = fibres.directions.data();
    double* const way_x = way;
    double* const way_y = way + lanes;
    double* const way_z = way + 2 * lanes;
    for (std::size_t step = 0; step < steps_per_fibre; ++step) {
      const bool back = step % 2 != 0;
      const double edge = step_edges[step / 2] * fibres.mean_edge_mm;
      for (std::size_t r = 0; r < lanes && !back; ++r) {
        way_x[r] = turn_x[r] * edge / fibres.voxel_mm[0];
        way_y[r] = turn_y[r] * edge / fibres.voxel_mm[1];
        way_z[r] = turn_z[r] * edge / fibres.voxel_mm[2];
      }
      const double sign = back ? -1 : 1;
      for (std::size_t r = 0; r < lanes; ++r) {
        const double x = (start[0] + sign * way_x[r]) + 0.5;
        const double y = (start[1] + sign * way_y[r]) + 0.5;
        const double z = (start[2] + sign * way_z[r]) + 0.5;
        const bool inside = (x >= 0) & (x < size_x) & (y >= 0) & (y < size_y) & (z >= 0) & (z < size_z);
        const auto whole = [&](double position) {
          return static_cast<double>(static_cast<int>(inside ? position : 0));
        };
        const double voxel = (whole(z) * size_y + whole(y)) * size_x + whole(x);
        index[r] = inside ? voxel : left_the_image;
      }
      double* const likeness = values + step * lanes;
      for (std::size_t r = 0; r < lanes; ++r) {
        // Steps that left look at the first voxel: no branch, which nobody could foretell.
        const auto voxel = static_cast<std::int64_t>(index[r] < 0 ? 0.0 : index[r]);
        const double cosine = dot(own, directions[at_voxel[voxel]]);
        const auto rounded = static_cast<double>(static_cast<float>(cosine * cosine));
        likeness[r] = index[r] < 0 ? left_the_image : rounded;
      }
    }
  }

  // A step that left the image adds zeros, which change no sum.
  CGL_SIMD_CLONES static void add_steps(const double* __restrict values, std::size_t lanes, std::size_t reference,
                                        double* __restrict sums) {
    for (std::size_t step = 0; step < steps_per_fibre; ++step) {
      const double* const likeness = values + step * lanes;
      const double known = likeness[reference];
      const double counted = known >= 0 ? 1 : 0;
      for (std::size_t r = 0; r < lanes; ++r) {
        const bool stays = likeness[r] >= 0;
        sums[r] += stays ? likeness[r] : 0;
        sums[lanes + r] += stays ? 1 : 0;
        sums[2 * lanes + r] += stays ? (likeness[r] - known) * counted : 0;
        sums[3 * lanes + r] += stays ? known * counted : 0;
        sums[4 * lanes + r] += stays ? counted : 0;
      }
    }
  }

  const ReadingLanes& readings_;
  std::vector<double> turn_;    // 3 rows
  std::vector<double> way_;     // 3 rows: a step in voxels
  std::vector<double> index_;   // of the voxel where a step ends, or left_the_image
  std::vector<double> values_;  // a row per step
  std::vector<double> sums_;    // 5 rows, as the members of Tally
};

struct Comparison {
  double coherence = 0;
  double gain = 0;  // share of the reference
  double standard_errors = 0;
};

std::vector<Comparison> compare_with(const Fibres& fibres, const std::vector<GradientReading>& readings,
                                     std::size_t reference, ThreadPool& pool) {
  const std::size_t blocks = fibres.block_offsets.size() - 1;
  const std::size_t stride = fibres.count() / most_starts + 1;
  const ReadingLanes lanes(readings);
  std::vector<Tally> tallies(readings.size() * blocks);
  pool.parallel_for(blocks, 16, [&](std::size_t begin, std::size_t end) {
    TallyLanes tally(lanes);
    for (std::size_t block = begin; block < end; ++block) {
      tally.count_fibres(fibres, fibres.block_offsets[block], fibres.block_offsets[block + 1], stride, reference);
      for (std::size_t r = 0; r < readings.size(); ++r) tallies[r * blocks + block] = tally.of(r);
    }
  });
  std::vector<Comparison> result(readings.size());
  for (std::size_t r = 0; r < readings.size(); ++r) {
    Tally sum;
    for (std::size_t block = 0; block < blocks; ++block) {
      const Tally& tally = tallies[r * blocks + block];
      sum.own += tally.own;
      sum.own_count += tally.own_count;
      sum.difference += tally.difference;
      sum.reference += tally.reference;
      sum.count += tally.count;
    }
    if (sum.own_count > 0) result[r].coherence = sum.own / sum.own_count;
    if (!(sum.count > 0) || !(sum.reference > 0)) continue;
    // The standard error of a ratio of sums over blocks, which are taken as independent.
    const double mean = sum.difference / sum.count;
    double squares = 0;
    for (std::size_t block = 0; block < blocks; ++block) {
      const Tally& tally = tallies[r * blocks + block];
      const double deviation = tally.difference - mean * tally.count;
      squares += deviation * deviation;
    }
    result[r].gain = sum.difference / sum.reference;
    if (squares > 0) {
      const double few = static_cast<double>(blocks) / static_cast<double>(blocks - 1);
      result[r].standard_errors = sum.difference / numerics::root(squares * few);
    }
  }
  return result;
}

bool is_clear(double gain, double standard_errors) {
  return gain > clear_gain && standard_errors > clear_standard_errors;
}

void judge(GradientCheck& check, const Fibres& fibres, ThreadPool& pool) {
  const auto against_used = compare_with(fibres, check.readings, check.used, pool);
  std::size_t top = check.used;
  for (std::size_t r = 0; r < check.readings.size(); ++r) {
    GradientReading& reading = check.readings[r];
    reading.coherence = against_used[r].coherence;
    reading.gain = against_used[r].gain;
    reading.standard_errors = against_used[r].standard_errors;
    if (is_clear(reading.gain, reading.standard_errors) && reading.gain > check.readings[top].gain) top = r;
  }
  const auto against_top = top == check.used ? against_used : compare_with(fibres, check.readings, top, pool);
  // How many readings the top one is clearly better than; seen from it their gain is negative.
  const auto is_clearly_worse = [&](std::size_t r) {
    return is_clear(-against_top[r].gain / (1 + std::min(against_top[r].gain, 0.0)), -against_top[r].standard_errors);
  };
  std::size_t worse = 0;
  for (std::size_t r = 0; r < check.readings.size(); ++r) worse += is_clearly_worse(r) ? 1U : 0U;
  if (top == check.used) {
    check.verdict = 2 * worse >= check.readings.size() ? GradientVerdict::agrees : GradientVerdict::undecided;
    return;
  }
  check.verdict = GradientVerdict::another_is_better;
  check.best = top;
  // A frame that is not clearly worse than the top reading, and itself clearly better than the one in use, has the
  // name.
  for (std::size_t r = 0; r < check.readings.size() && !check.readings[r].frames.empty(); ++r) {
    if (is_clearly_worse(r) || !is_clear(check.readings[r].gain, check.readings[r].standard_errors)) continue;
    check.best = r;
    break;
  }
  if (!check.readings[check.best].frames.empty()) check.better_frame = check.readings[check.best].frames.front();
}

std::string describe(const GradientCheck& check) {
  const GradientReading& used = check.readings[check.used];
  switch (check.verdict) {
    case GradientVerdict::agrees:
      return fmt::format("checking the b-vectors: read as {} they follow the fibres (coherence {:.3f})", used.name,
                         used.coherence);
    case GradientVerdict::undecided:
      return fmt::format("checking the b-vectors: {} voxels with a clear direction do not tell whether {} is right",
                         check.voxels, used.name);
    case GradientVerdict::another_is_better: break;
  }
  const GradientReading& best = check.readings[check.best];
  const std::string advice = check.better_frame ? fmt::format("give {} {}", argument_name("bvec_frame"),
                                                              gradient_frame_name(*check.better_frame))
                                                : std::string("mend the file: its columns are exchanged or negated");
  return fmt::format(
      "checking the b-vectors: read as {} they do not follow the fibres (coherence {:.3f}), read as {} they do "
      "({:.3f}); {}, or give {} {} to keep them as they are",
      used.name, used.coherence, best.name, best.coherence, advice, argument_name("bvec_frame"),
      gradient_frame_name(used.frames.front()));
}

}  // namespace

std::string_view gradient_verdict_name(GradientVerdict verdict) {
  switch (verdict) {
    case GradientVerdict::agrees: return "agrees";
    case GradientVerdict::another_is_better: return "another_is_better";
    case GradientVerdict::undecided: break;
  }
  return "undecided";
}

Result<GradientCheck> check_gradients(const DwiSignals& signals, const GradientTable& table, GradientFrame used,
                                      const FitMachine& machine) {
  if (table.size() != signals.volumes) {
    return fail(ErrorKind::invalid_argument, "checking the b-vectors: {} volumes, but {} entries in the table",
                signals.volumes, table.size());
  }
  return catch_out_of_memory([&]() -> Result<GradientCheck> {
    const std::vector<std::uint8_t> use = choose_volumes(table);
    const Slab slab = middle_of(signals);
    const FitRecords records = {
        std::span(signals.values).subspan(slab.first_record * signals.volumes, slab.records * signals.volumes),
        signals.volumes};
    // The fit is made in the file's own axes; each reading then turns its result.
    CGL_TRY_ASSIGN(const TensorFit fit,
                   add_context(fit_tensors(records, table.b_values, table.vectors,
                                           {.method = TensorMethod::ols, .use_volume = use}, machine),
                               "checking the b-vectors"));
    GradientCheck check;
    check.readings = make_readings(signals.geometry.voxel_to_world);
    const auto is_used = [&](const GradientReading& reading) {
      return std::find(reading.frames.begin(), reading.frames.end(), used) != reading.frames.end();
    };
    check.used = static_cast<std::size_t>(std::find_if(check.readings.begin(), check.readings.end(), is_used) -
                                          check.readings.begin());
    check.readings[check.used].name = gradient_frame_name(used);
    check.best = check.used;
    const Fibres fibres = collect_fibres(signals, slab, fit);
    check.voxels = fibres.count();
    check.blocks = fibres.block_offsets.size() - 1;
    if (check.voxels >= least_voxels && check.blocks >= least_blocks) judge(check, fibres, machine.pool);
    check.message = describe(check);
    return check;
  });
}

}  // namespace cingulum
