// Bootstrap over streamlines in a stream: in every replicate each streamline has a weight drawn from the Poisson
// distribution of mean 1, which resamples with replacement without knowing how many there will be (Hanley and
// MacGibbon, Computer Methods and Programs in Biomedicine 83, 2006). A weight is a function of seed, streamline and
// replicate alone, so nothing depends on batches or threads. Called by score.*.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "numerics/random.hpp"

namespace cingulum {

// How many of the cumulative probabilities of Poisson(1), in units of 2^-16, a 16-bit number reaches.
[[nodiscard]] constexpr std::uint8_t poisson_weight(std::uint32_t number) {
  constexpr std::uint32_t cumulative[] = {24109, 48219, 60273, 64291, 65296, 65497, 65530, 65535};
  std::uint8_t weight = 0;
  for (const std::uint32_t bound : cumulative) weight = static_cast<std::uint8_t>(weight + (number >= bound ? 1 : 0));
  return weight;
}

// Weights of one streamline in replicates 0 .. weights.size() - 1.
inline void draw_weights(std::uint64_t seed, std::uint64_t streamline, std::span<std::uint8_t> weights) {
  const numerics::PhiloxKey key = numerics::philox_key(seed);
  for (std::size_t r = 0; r < weights.size(); r += 8) {
    const numerics::PhiloxBlock block =
        numerics::random_block(key,
                               {.index = static_cast<std::uint32_t>(streamline),
                                .purpose = numerics::DrawPurpose::score,
                                .initial_direction = 0,
                                .half = 0,
                                .step = static_cast<std::uint32_t>(r / 8),
                                .attempt = static_cast<std::uint32_t>(streamline >> 32U)},
                               0);
    for (std::size_t i = 0; i < 8 && r + i < weights.size(); ++i) {
      weights[r + i] = poisson_weight((block.word[i / 2] >> (16 * (i % 2))) & 0xffffu);
    }
  }
}

// The 2.5th and 97.5th percentile, between order statistics interpolated. NaN are left out; NaN where nothing is left.
struct PercentileInterval {
  double low;
  double high;
};
[[nodiscard]] PercentileInterval percentile_interval(std::vector<double> replicates);

}  // namespace cingulum
