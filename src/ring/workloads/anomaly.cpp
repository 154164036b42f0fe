#include "ring/workloads/anomaly.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <random>
#include <utility>

#include "base/elapsed.hpp"
#include "base/interrupt.hpp"
#include "base/settings.hpp"
#include "numerics/elementary64.hpp"
#include "ring/workloads/anomaly_body.hpp"

namespace cingulum::ring {
namespace {

using Clock = std::chrono::steady_clock;

// Some six microseconds: longer than a batch of a thousand takes.
constexpr std::uint32_t spins_per_batch = 150;

struct RunTotals {
  std::uint64_t anomalies = 0;
  double sum_of_means = 0;
  float max_score = 0;
};

Result<BatchScores> score_batch(Actor& actor, const SharedBuffer& staging, std::span<const float> values,
                                std::uint32_t number) {
  std::memcpy(staging.bytes.data(), values.data(), values.size_bytes());
  const SignalBatch batch{staging.handle, number, static_cast<std::uint32_t>(values.size())};
  CGL_TRY(actor.send(make_buffer_message(batch)));
  CGL_TRY_ASSIGN(const Message answer, actor.receive(answer_limit));
  if (!holds<BatchScores>(answer) || payload<BatchScores>(answer).batch != number) {
    return fail(ErrorKind::corrupt, "batch {} got another answer", number);
  }
  return payload<BatchScores>(answer);
}

}  // namespace

Result<std::vector<float>> example_signal(std::uint32_t points, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto uniform = [&] { return static_cast<double>(random() >> 11U) * 0x1p-53; };
  constexpr double two_pi = 6.283185307179586;
  std::vector<float> signal(points);
  for (std::uint32_t t = 0; t < points; ++t) {
    if (t % 65536 == 0) CGL_TRY(check_interrupt());
    // Twelve uniforms make a variance of one: normal enough for noise, and the same on every machine.
    double noise = -6;
    for (int i = 0; i < 12; ++i) noise += uniform();
    double value =
        numerics::sine(two_pi * (t % 1000) / 1000) + 0.5 * numerics::sine(two_pi * (t % 100) / 100) + 0.1 * noise;
    if (uniform() < 0.01) value += (uniform() < 0.5 ? -1 : 1) * (3 + 2 * uniform());
    signal[t] = static_cast<float>(value);
  }
  return signal;
}

Result<AnomalyResult> run_anomaly(WorkloadPlace& place, std::span<const float> signal, const AnomalyOptions& options) {
  if (signal.empty() || options.batch == 0 || options.window == 0 || options.runs == 0) {
    return fail(ErrorKind::invalid_argument, "{} points in batches of {} with a window of {}: none may be 0",
                signal.size(), options.batch, options.window);
  }
  CGL_TRY_ASSIGN(const SharedBuffer staging, place.share(options.batch * sizeof(float)));
  CGL_TRY_ASSIGN(const SharedBuffer indices, place.share(most_listed_anomalies * sizeof(std::uint32_t)));
  const std::vector<std::byte> empty_window(options.window * sizeof(float));
  CGL_TRY_ASSIGN(const BufferHandle window, place.keep(empty_window));
  ActorOptions actor_options;
  // One batch in flight: of requester and actor one waits while the other works. Where they share a processor, who
  // spins keeps the other from it.
  if (place.waiting_takes_a_processor())
    actor_options.waiting.spins = default_thread_count() == 1 ? 1 : spins_per_batch;
  CGL_TRY_ASSIGN(const ActorHandle actor,
                 place.start("detector", WorkloadBody::anomaly, Traffic::answers, actor_options));
  const auto start_afresh = [&]() -> Status {
    CGL_TRY(actor->send(make_buffer_message(DetectorStart{window, indices.handle})));
    return actor->receive(answer_limit).map([](const Message&) {});
  };
  const auto batch_at = [&](std::size_t begin) {
    return signal.subspan(begin, std::min<std::size_t>(options.batch, signal.size() - begin));
  };

  CGL_TRY(start_afresh());
  for (std::uint32_t i = 0; i < options.warm_up_batches; ++i) {
    CGL_TRY(score_batch(*actor, staging, batch_at(std::size_t{i} * options.batch % signal.size()), i)
                .map([](const BatchScores&) {}));
  }
  AnomalyResult result;
  std::vector<double> microseconds;
  for (std::uint32_t run = 0; run < options.runs; ++run) {
    CGL_TRY(start_afresh());
    RunTotals totals;
    std::uint32_t batches = 0;
    const auto start = Clock::now();
    for (std::size_t begin = 0; begin < signal.size(); begin += options.batch, ++batches) {
      CGL_TRY(check_interrupt());
      const auto sent = Clock::now();
      CGL_TRY_ASSIGN(const BatchScores scores, score_batch(*actor, staging, batch_at(begin), batches));
      microseconds.push_back(std::chrono::duration<double, std::micro>(Clock::now() - sent).count());
      totals.anomalies += scores.anomalies;
      totals.sum_of_means += static_cast<double>(scores.mean_score);
      totals.max_score = std::max(totals.max_score, scores.max_score);
      if (run > 0) continue;
      const auto* const listed = reinterpret_cast<const std::uint32_t*>(indices.bytes.data());
      for (std::uint32_t i = 0; i < std::min(scores.anomalies, most_listed_anomalies); ++i) {
        result.first_indices.push_back(static_cast<std::uint32_t>(begin) + listed[i]);
      }
    }
    result.seconds += seconds_since(start) / options.runs;
    if (run > 0 && totals.anomalies != result.anomalies) {
      return fail(ErrorKind::corrupt, "run {} found {} anomalies, the first {}", run, totals.anomalies,
                  result.anomalies);
    }
    result.batches = batches;
    result.anomalies = totals.anomalies;
    result.mean_score = totals.sum_of_means / batches;
    result.max_score = static_cast<double>(totals.max_score);
  }
  result.points_per_s = static_cast<double>(signal.size()) / result.seconds;
  result.batch_latency = summarise_latency(std::move(microseconds));
  CGL_TRY(place.runtime().terminate("detector").map([](const TerminationReport&) {}));
  for (const BufferHandle handle : {staging.handle, indices.handle, window}) CGL_TRY(place.release(handle));
  return result;
}

}  // namespace cingulum::ring
