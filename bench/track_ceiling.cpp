#include "bench/track_ceiling.hpp"

#include <array>
#include <limits>
#include <mutex>
#include <numeric>

#include "measure/repetitions.hpp"
#include "numerics/pack.hpp"
#include "numerics/trilinear.hpp"

namespace cingulum::bench {
namespace {

volatile double never_read = 0;  // what a measured loop computes must go somewhere

}  // namespace

double read_bytes_per_second(const Field& field, ThreadPool& pool) {
  const float* numbers = field.records.data();
  double best = std::numeric_limits<double>::infinity();
  for (int repetition = 0; repetition < 5; ++repetition) {
    const double begun = measure::processor_seconds();
    std::mutex mutex;
    double sum = 0;
    pool.parallel_for(field.records.size(), std::size_t{1} << 20, [&](std::size_t begin, std::size_t end) {
      numerics::with_packs<float>([&]<class Number>() {
        Number sums[4] = {Number(0.0f), Number(0.0f), Number(0.0f), Number(0.0f)};
        for (std::size_t i = begin; i + 4 * Number::width <= end; i += 4 * Number::width) {
          for (std::size_t k = 0; k < 4; ++k) sums[k] = sums[k] + Number::load(numbers + i + k * Number::width);
        }
        float lanes[64];
        ((sums[0] + sums[1]) + (sums[2] + sums[3])).store(lanes);
        const std::lock_guard lock(mutex);
        sum += static_cast<double>(lanes[0]);
      });
    });
    best = std::min(best, (measure::processor_seconds() - begun) / pool.threads());
    never_read = sum;
  }
  return sizeof(float) * static_cast<double>(field.records.size()) / best;
}

double operations_per_second(int threads) {
  double rate = 0;
  numerics::with_packs<float>([&]<class Number>() {
    constexpr int chains = 16, rounds = 20'000'000;
    Number sums[chains];
    for (int i = 0; i < chains; ++i) sums[i] = Number(static_cast<float>(i));
    const Number factor(0.999f), term(0.001f);
    const double start = measure::processor_seconds();
    for (int round = 0; round < rounds; ++round) {
      for (int i = 0; i < chains; ++i) sums[i] = sums[i] * factor + term;
    }
    rate = 2.0 * chains * rounds * Number::width / (measure::processor_seconds() - start);
    float lanes[64];
    for (const Number& sum : sums) {
      sum.store(lanes);
      never_read = static_cast<double>(lanes[0]);
    }
  });
  return threads * rate;
}

double new_records_per_point(const Field& field, const StreamlineBatch& batch) {
  const numerics::GridSize size{static_cast<std::uint32_t>(field.geometry.size[0]),
                                static_cast<std::uint32_t>(field.geometry.size[1]),
                                static_cast<std::uint32_t>(field.geometry.size[2])};
  std::uint64_t read = 0, points = 0;
  std::array<std::uint32_t, 8> before = {}, now = {};
  for (std::size_t line = 0; line < batch.streamline_count(); ++line) {
    for (std::uint64_t p = batch.offsets[line]; p < batch.offsets[line + 1]; ++p) {
      const float* at = &batch.points[3 * p];
      const numerics::TrilinearCell cell = numerics::trilinear_cell({at[0], at[1], at[2]}, size);
      for (std::uint32_t corner = 0; corner < 8; ++corner) {
        now[corner] = field.record_of_voxel[numerics::corner_voxel(cell, size, corner)];
      }
      if (p > batch.offsets[line]) {
        ++points;
        for (const std::uint32_t record : now) {
          if (record != 0 && std::find(before.begin(), before.end(), record) == before.end()) ++read;
        }
      }
      before = now;
    }
  }
  return points > 0 ? static_cast<double>(read) / static_cast<double>(points) : 0;
}

}  // namespace cingulum::bench
