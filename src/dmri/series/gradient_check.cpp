#include "dmri/series/gradient_check.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "dmri/models/tensor.hpp"
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
// Of large images the planes in the middle decide, so many voxels at least: the gain of the right reading then still is
// dozens of standard errors. As many planes at least, so that most steps across them stay inside.
constexpr std::size_t enough_voxels = 50000;
constexpr std::int64_t least_planes = 24;
constexpr std::uint32_t no_fibre = std::numeric_limits<std::uint32_t>::max();

Vec3d apply(const Matrix& m, Vec3d v) {
  return {(m[0] * v.x + m[1] * v.y) + m[2] * v.z, (m[3] * v.x + m[4] * v.y) + m[5] * v.z,
          (m[6] * v.x + m[7] * v.y) + m[8] * v.z};
}

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
  std::vector<std::uint32_t> at_voxel;     // number of the fibre, or no_fibre
  std::vector<std::uint32_t> voxels;       // of each fibre
  std::vector<Vec3d> directions;           // as the file has the b-vectors
  std::vector<std::size_t> block_offsets;  // fibres of one block lie together
};

Fibres collect_fibres(const DwiSignals& signals, const Slab& slab, const TensorFit& fit) {
  Fibres fibres;
  fibres.size = {signals.geometry.size[0], signals.geometry.size[1], slab.planes};
  const auto first_voxel = static_cast<std::uint32_t>(slab.first_plane * fibres.size[0] * fibres.size[1]);
  const auto voxel_of = [&](std::size_t record) { return signals.voxels[slab.first_record + record] - first_voxel; };
  fibres.voxel_mm = signals.geometry.voxel_mm();
  fibres.mean_edge_mm = (fibres.voxel_mm[0] + fibres.voxel_mm[1] + fibres.voxel_mm[2]) / 3;
  const std::int64_t blocks_x = (fibres.size[0] + block_edge - 1) / block_edge;
  const std::int64_t blocks_y = (fibres.size[1] + block_edge - 1) / block_edge;
  std::vector<std::pair<std::int64_t, std::uint32_t>> by_block;  // block, record of the slab
  for (std::size_t i = 0; i < fit.size(); ++i) {
    // Where nothing diffuses, or everything in one direction alone, the voxel is background or damage.
    if (!(fit.fa[i] > least_fa) || !(fit.eigenvalues[3 * i + 1] > fit.least_diffusivity)) continue;
    const auto voxel = static_cast<std::int64_t>(voxel_of(i));
    const std::int64_t x = voxel % fibres.size[0];
    const std::int64_t y = voxel / fibres.size[0] % fibres.size[1];
    const std::int64_t z = voxel / (fibres.size[0] * fibres.size[1]);
    const std::int64_t block = x / block_edge + blocks_x * (y / block_edge + blocks_y * (z / block_edge));
    by_block.emplace_back(block, static_cast<std::uint32_t>(i));
  }
  std::sort(by_block.begin(), by_block.end());
  fibres.at_voxel.assign(static_cast<std::size_t>(fibres.size[0] * fibres.size[1] * fibres.size[2]), no_fibre);
  for (std::size_t i = 0; i < by_block.size(); ++i) {
    const auto& [block, place] = by_block[i];
    if (i == 0 || block != by_block[i - 1].first) fibres.block_offsets.push_back(i);
    fibres.at_voxel[voxel_of(place)] = static_cast<std::uint32_t>(i);
    fibres.voxels.push_back(voxel_of(place));
    const float* v = fit.v1.data() + std::size_t{3} * place;
    fibres.directions.push_back({v[0], v[1], v[2]});
  }
  fibres.block_offsets.push_back(by_block.size());
  return fibres;
}

constexpr float left_the_image = -1;
constexpr std::size_t steps_per_fibre = 2 * std::size(step_edges);

// The voxel of a fibre, the same for every reading.
std::array<double, 3> start_of(const Fibres& fibres, std::size_t fibre) {
  const auto voxel = static_cast<std::int64_t>(fibres.voxels[fibre]);
  const std::int64_t row = voxel / fibres.size[0];
  return {static_cast<double>(voxel % fibres.size[0]), static_cast<double>(row % fibres.size[1]),
          static_cast<double>(row / fibres.size[1])};
}

// For each step along the fibre's direction as `to_image` reads it: the squared cosine between the fibre and that at
// the end (0 where there is none), or left_the_image. How alike two directions are does not depend on the reading.
void step_values(const Fibres& fibres, std::size_t fibre, const std::array<double, 3>& start, const Matrix& to_image,
                 float (&values)[steps_per_fibre]) {
  const Vec3d own = fibres.directions[fibre];
  const Vec3d direction = numerics::normalise(apply(to_image, own));
  const double turn[3] = {direction.x, direction.y, direction.z};
  for (std::size_t step = 0; step < std::size(step_edges); ++step) {
    double way[3];
    for (std::size_t axis = 0; axis < 3; ++axis) {
      way[axis] = turn[axis] * (step_edges[step] * fibres.mean_edge_mm) / fibres.voxel_mm[axis];
    }
    for (std::size_t back = 0; back < 2; ++back) {
      std::size_t index = 0;
      bool inside = true;
      for (std::size_t axis = 3; axis-- > 0;) {
        const double position = (back == 0 ? start[axis] + way[axis] : start[axis] - way[axis]) + 0.5;
        inside = inside && position >= 0 && position < static_cast<double>(fibres.size[axis]);
        index = index * static_cast<std::size_t>(fibres.size[axis]) + (inside ? static_cast<std::size_t>(position) : 0);
      }
      float& value = values[2 * step + back];
      value = left_the_image;
      if (!inside) continue;
      const std::uint32_t other = fibres.at_voxel[index];
      const double cosine = other == no_fibre ? 0 : dot(own, fibres.directions[other]);
      value = static_cast<float>(cosine * cosine);
    }
  }
}

// Sums over a block's fibres for one reading against a reference, over the steps that stay in the image in both.
struct Tally {
  double own = 0;  // all steps of this reading that stay in the image
  double own_count = 0;
  double difference = 0;
  double reference = 0;
  double count = 0;
};

struct Comparison {
  double coherence = 0;
  double gain = 0;  // share of the reference
  double standard_errors = 0;
};

std::vector<Comparison> compare_with(const Fibres& fibres, const std::vector<GradientReading>& readings,
                                     std::size_t reference, ThreadPool& pool) {
  const std::size_t blocks = fibres.block_offsets.size() - 1;
  const std::size_t stride = fibres.voxels.size() / most_starts + 1;
  std::vector<Tally> tallies(readings.size() * blocks);
  pool.parallel_for(blocks, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t block = begin; block < end; ++block) {
      for (std::size_t fibre = fibres.block_offsets[block]; fibre < fibres.block_offsets[block + 1]; fibre += stride) {
        const std::array<double, 3> start = start_of(fibres, fibre);
        float known[steps_per_fibre];
        step_values(fibres, fibre, start, readings[reference].to_image, known);
        for (std::size_t r = 0; r < readings.size(); ++r) {
          float values[steps_per_fibre];
          step_values(fibres, fibre, start, readings[r].to_image, values);
          Tally& tally = tallies[r * blocks + block];
          for (std::size_t i = 0; i < steps_per_fibre; ++i) {
            if (values[i] == left_the_image) continue;
            tally.own += static_cast<double>(values[i]);
            tally.own_count += 1;
            if (known[i] == left_the_image) continue;
            tally.difference += static_cast<double>(values[i]) - static_cast<double>(known[i]);
            tally.reference += static_cast<double>(known[i]);
            tally.count += 1;
          }
        }
      }
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
      const double rest = tally.difference - mean * tally.count;
      squares += rest * rest;
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
    // In the file's own axes; each reading then turns the result.
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
    check.voxels = fibres.voxels.size();
    check.blocks = fibres.block_offsets.size() - 1;
    if (check.voxels >= least_voxels && check.blocks >= least_blocks) judge(check, fibres, machine.pool);
    check.message = describe(check);
    return check;
  });
}

}  // namespace cingulum
