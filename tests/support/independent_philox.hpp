// Philox4x32-10 written a second time, from the paper (Salmon et al., SC 2011, section 4) with 64-bit products, and the
// counters of the contract's section 4 as plain words: what tests of the product's draws are compared with. Shares no
// line and no constant's name with src/numerics.
#pragma once

#include <array>
#include <cstdint>

namespace cingulum::test {

// The purposes of the contract's table, by number.
enum ContractPurpose : std::uint32_t {
  contract_seed_position = 0,
  contract_initial_direction = 1,
  contract_step = 2,
  contract_phantom_noise = 3,
  contract_score = 4,
  contract_shuffle = 5,
};

inline std::array<std::uint32_t, 4> independent_philox(std::array<std::uint32_t, 4> c, std::uint64_t key) {
  auto k0 = static_cast<std::uint32_t>(key & 0xffffffffu), k1 = static_cast<std::uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xD2511F53u} * c[0], b = std::uint64_t{0xCD9E8D57u} * c[2];
    c = {static_cast<std::uint32_t>(b >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(b),
         static_cast<std::uint32_t>(a >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(a)};
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return c;
}

struct ContractCounter {
  std::uint32_t index = 0;
  ContractPurpose purpose = contract_seed_position;
  std::uint32_t initial_direction = 0;
  std::uint32_t half = 0;
  std::uint32_t step = 0;
  std::uint32_t attempt = 0;
  std::uint32_t block = 0;
};

inline std::array<std::uint32_t, 4> contract_block(std::uint64_t key, const ContractCounter& c) {
  return independent_philox(
      {c.index, c.purpose * (1u << 24) + c.initial_direction * 2u + c.half, c.step, c.attempt * 65536u + c.block}, key);
}

inline double contract_uniform(std::uint32_t word) {
  return static_cast<double>(word >> 8) / 16777216.0;
}

}  // namespace cingulum::test
