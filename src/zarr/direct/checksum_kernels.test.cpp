#include "zarr/direct/checksum_kernels.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "support/each_device.hpp"
#include "zarr/codec.hpp"

namespace cingulum::zarr {
namespace checksum_kernel_tests {

class ChecksumKernelTest : public cingulum::testing::EachDevice {};

// Chunks of these sizes, some of them at odd places, with the checksum that the codec writes.
struct Chunks {
  std::vector<std::byte> bytes;
  std::vector<ChecksumPlace> places;
};

Chunks random_chunks(std::uint32_t seed) {
  std::mt19937 generator(seed);
  Chunks chunks;
  for (const std::uint64_t size : {1u, 3u, 4u, 5u, 1023u, 4096u, 65535u, 65536u, 65537u, 200001u, 1048576u}) {
    const std::uint64_t at = (chunks.bytes.size() + 15) / 16 * 16 + (generator() % 2 == 0 ? 0 : generator() % 16);
    chunks.places.push_back({at, size});
    chunks.bytes.resize(at + size + 4);
    for (std::uint64_t i = 0; i < size; ++i) chunks.bytes[at + i] = static_cast<std::byte>(generator());
    const std::uint32_t crc = crc32c(std::span<const std::byte>(chunks.bytes).subspan(at, size));
    for (std::uint64_t b = 0; b < 4; ++b) chunks.bytes[at + size + b] = static_cast<std::byte>(crc >> (8 * b));
  }
  return chunks;
}

TEST_P(ChecksumKernelTest, every_flipped_bit_and_no_whole_chunk_is_found) {
  ASSERT_OK_AND_ASSIGN(const auto kernels, ChecksumKernels::create(device()));
  for (std::uint32_t seed = 1; seed <= 4; ++seed) {
    const Chunks chunks = random_chunks(seed);
    ASSERT_OK_AND_ASSIGN(const auto staging, device().allocate(chunks.bytes.size()));
    ASSERT_OK(queue().upload(*staging, 0, chunks.bytes));
    ASSERT_OK_AND_ASSIGN(const std::vector<bool> whole, kernels->verify(queue(), *staging, chunks.places));
    EXPECT_EQ(whole, std::vector<bool>(chunks.places.size(), true)) << "seed " << seed;
    // One bit of each chunk, the first and last bytes and the checksum among them.
    std::mt19937 generator(seed);
    std::vector<std::byte> damaged = chunks.bytes;
    for (std::size_t i = 0; i < chunks.places.size(); ++i) {
      const ChecksumPlace& place = chunks.places[i];
      const std::uint64_t byte = i % 3 == 0 ? 0 : i % 3 == 1 ? place.bytes + 3 : generator() % place.bytes;
      damaged[place.at + byte] ^= static_cast<std::byte>(1u << generator() % 8);
    }
    ASSERT_OK(queue().upload(*staging, 0, damaged));
    ASSERT_OK_AND_ASSIGN(const std::vector<bool> found, kernels->verify(queue(), *staging, chunks.places));
    EXPECT_EQ(found, std::vector<bool>(chunks.places.size(), false)) << "seed " << seed;
  }
}

CGL_FOR_DEVICES(ChecksumKernelTest, "cpu", "cuda");

}  // namespace checksum_kernel_tests
}  // namespace cingulum::zarr
