// The real-time anomaly detector: an actor that keeps a window of a signal and running statistics, gets the signal in
// small batches and answers which of their values lie more than three standard deviations off. Mean and variance follow
// the batches by an exponential moving average; numbers are float32, sums float64 (batch mean and variance, alpha
// = batch / (window + batch), score = |x - mean| / sqrt(variance + 1e-8)).
#pragma once

#include "ring/actor/actor_context.hpp"
#include "ring/actor/buffer_handle.hpp"
#include "ring/queue/message.hpp"
#include "ring/workloads/echo_and_sum.hpp"
#include "ring/workloads/lane_sums.hpp"

namespace cingulum::ring {

constexpr std::uint32_t most_listed_anomalies = 100;

struct DetectorStart {
  static constexpr const char* message_name = "DetectorStart";
  BufferHandle window;   // floats, the actor's from now on
  BufferHandle indices;  // uint32[100], into which it lists the anomalies of a batch
};

struct SignalBatch {
  static constexpr const char* message_name = "SignalBatch";
  BufferHandle values;  // floats
  std::uint32_t batch = 0;
  std::uint32_t count = 0;  // of the values that are meant, from the first
};

// The answer to both.
struct BatchScores {
  static constexpr const char* message_name = "BatchScores";
  BufferHandle indices;
  std::uint32_t batch = 0;
  std::uint32_t anomalies = 0;  // all of them; the first 100 are listed
  float mean_score = 0;
  float max_score = 0;
};

struct AnomalyBody {
  static constexpr std::uint32_t mask_words = 64;
  // What one lane has found among its values.
  struct Peak {
    float score;
    std::uint32_t anomalies;
  };
  struct State {
    BufferHandle window;
    BufferHandle indices;
    std::uint32_t position;  // in the window, where the next value goes
    float mean;
    float variance;
    std::uint32_t listed;
    std::uint32_t masks[mask_words];
    union {
      double strands[strand_count];
      Peak peaks[strand_count];
    };
  };

  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    State& state = context.template state<State>();
    Message message;
    while (context.receive(message)) {
      BatchScores scores;
      if (holds<DetectorStart>(message)) {
        const auto start = payload<DetectorStart>(message);
        if (context.buffer(start.window) == nullptr || context.buffer(start.indices) == nullptr) {
          return failure_stale_buffer;
        }
        if (context.lane() == 0) {
          state.window = start.window;
          state.indices = start.indices;
          state.position = 0;
          state.mean = 0;
          state.variance = 1;
        }
        scores.indices = start.indices;
      } else if (holds<SignalBatch>(message)) {
        const auto batch = payload<SignalBatch>(message);
        auto* const window = static_cast<float*>(context.buffer(state.window));
        auto* const indices = static_cast<std::uint32_t*>(context.buffer(state.indices));
        const auto* const values = static_cast<const float*>(context.buffer(batch.values));
        if (window == nullptr || indices == nullptr || values == nullptr || batch.count == 0 ||
            batch.count > batch.values.bytes / sizeof(float)) {
          return failure_stale_buffer;
        }
        scores = score(context, state, window, indices, values, batch.count);
        scores.batch = batch.batch;
      } else {
        return failure_unknown_message;
      }
      context.sync();
      Message reply = make_reply(message, scores);
      reply.header.flags |= mark_handle;
      context.send(reply);
    }
    return 0;
  }

 private:
  struct Value {
    const float* values;
    CGL_HD double operator()(std::uint32_t i) const { return static_cast<double>(values[i]); }
  };
  struct SquareOff {
    const float* values;
    double mean;
    CGL_HD double operator()(std::uint32_t i) const {
      const double off = static_cast<double>(values[i]) - mean;
      return off * off;
    }
  };
  struct Score {
    const float* values;
    float mean;
    float deviation;
    CGL_HD float of(std::uint32_t i) const {
      const float off = values[i] - mean;
      return (off < 0 ? -off : off) / deviation;
    }
  };
  CGL_HD static bool is_anomaly(float score) { return score > 3.0f; }
  struct JoinPeaks {
    CGL_HD Peak operator()(const Peak& a, const Peak& b) const {
      return {b.score > a.score ? b.score : a.score, a.anomalies + b.anomalies};
    }
  };

  CGL_HD_GENERIC template <class Context>
  CGL_HD static BatchScores score(Context& context, State& state, float* window, std::uint32_t* indices,
                                  const float* values, std::uint32_t count) {
    const auto size = static_cast<std::uint32_t>(state.window.bytes / sizeof(float));
    const std::uint32_t position = state.position;
    // A batch longer than the window leaves its end in it.
    const std::uint32_t skipped = count > size ? count - size : 0;
    const std::uint32_t begin = (position + skipped) % size;
    for (std::uint32_t i = context.lane(); i < count - skipped; i += context.lanes()) {
      const std::uint32_t before_end = size - begin;
      window[i < before_end ? begin + i : i - before_end] = values[skipped + i];
    }
    const double n = count;
    const double batch_mean = join_over_lanes(context, state.strands, count, Value{values}, Add{}) / n;
    const double batch_variance =
        join_over_lanes(context, state.strands, count, SquareOff{values, batch_mean}, Add{}) / n;
    const auto alpha = static_cast<float>(n / (static_cast<double>(size) + n));
    const float mean = (1.0f - alpha) * state.mean + alpha * static_cast<float>(batch_mean);
    const float variance = (1.0f - alpha) * state.variance + alpha * static_cast<float>(batch_variance);
    context.sync();  // all lanes have read the state
    if (context.lane() == 0) {
      state.position = (position + count) % size;
      state.mean = mean;
      state.variance = variance;
      state.listed = 0;
    }
    const Score scored = {values, mean, numerics::root(variance + 1e-8f)};
    BatchScores scores;
    scores.indices = state.indices;
#if !defined(__CUDA_ARCH__)
    if (context.lanes() == 1) {
      score_in_order(context, state, indices, scored, count, scores);
      return scores;
    }
#endif
    score_by_lanes(context, state, indices, scored, count, scores);
    return scores;
  }

  // By a single lane, on the host: each value is looked at once, in the order of memory.
  CGL_HD_GENERIC template <class Context>
  CGL_HD static void score_in_order(Context& context, State& state, std::uint32_t* indices, const Score& scored,
                                    std::uint32_t count, BatchScores& scores) {
    float largest[strand_count] = {};
    for (std::uint32_t s = 0; s < strand_count; ++s) state.strands[s] = 0;
    for_each_tile(context, count, [&](std::uint32_t first, std::uint32_t size) {
      std::uint32_t found[strand_count];
      std::uint32_t anomalies = 0;
      for (std::uint32_t s = 0; s < size; ++s) {
        const float score = scored.of(first + s);
        state.strands[s] += static_cast<double>(score);
        largest[s] = score > largest[s] ? score : largest[s];
        found[s] = is_anomaly(score) ? 1 : 0;
        anomalies += found[s];
      }
      scores.anomalies += anomalies;
      for (std::uint32_t s = 0; anomalies != 0 && state.listed < most_listed_anomalies; ++s) {
        if (found[s] == 0) continue;
        indices[state.listed++] = first + s;
        --anomalies;
      }
    });
    for (const float one : largest) scores.max_score = one > scores.max_score ? one : scores.max_score;
    scores.mean_score = static_cast<float>(join_strands(context, state.strands, Add{}) / count);
  }

  CGL_HD_GENERIC template <class Context>
  CGL_HD static void score_by_lanes(Context& context, State& state, std::uint32_t* indices, const Score& scored,
                                    std::uint32_t count, BatchScores& scores) {
    Peak peak = {0, 0};  // of this lane's values
    for (std::uint32_t s = context.lane(); s < strand_count; s += context.lanes()) {
      double sum = 0;
      for (std::uint32_t i = s; i < count; i += strand_count) {
        const float score = scored.of(i);
        sum += static_cast<double>(score);
        peak = JoinPeaks{}(peak, {score, is_anomaly(score) ? 1u : 0u});
      }
      state.strands[s] = sum;
    }
    scores.mean_score = static_cast<float>(join_strands(context, state.strands, Add{}) / count);
    for (std::uint32_t s = context.lane(); s < strand_count; s += context.lanes()) {
      state.peaks[s] = s == context.lane() ? peak : Peak{0, 0};
    }
    const Peak highest = join_strands(context, state.peaks, JoinPeaks{});
    scores.max_score = highest.score;
    scores.anomalies = highest.anomalies;
    if (scores.anomalies > 0) list(context, state, indices, scored, count);
  }

  // The indices of the first anomalies in ascending order: all lanes mark, 2048 values at a time, one writes down.
  CGL_HD_GENERIC template <class Context>
  CGL_HD static void list(Context& context, State& state, std::uint32_t* indices, const Score& scored,
                          std::uint32_t count) {
    constexpr std::uint32_t tile = mask_words * 32;
    for (std::uint32_t begin = 0; begin < count && state.listed < most_listed_anomalies; begin += tile) {
      for (std::uint32_t word = context.lane(); word < mask_words; word += context.lanes()) {
        std::uint32_t mask = 0;
        for (std::uint32_t bit = 0; bit < 32; ++bit) {
          const std::uint32_t i = begin + word * 32 + bit;
          if (i < count && is_anomaly(scored.of(i))) mask |= 1u << bit;
        }
        state.masks[word] = mask;
      }
      context.sync();
      if (context.lane() == 0) {
        std::uint32_t listed = state.listed;
        for (std::uint32_t word = 0; word < mask_words; ++word) {
          for (std::uint32_t mask = state.masks[word]; mask != 0 && listed < most_listed_anomalies; mask &= mask - 1) {
            indices[listed++] = begin + word * 32 + numerics::lowest_set_bit(mask);
          }
        }
        state.listed = listed;
      }
      context.sync();
    }
  }
};

}  // namespace cingulum::ring
