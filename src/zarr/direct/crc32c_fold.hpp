// CRC-32C by many threads at once: the arithmetic that a kernel and its twin on the host share. Without its constants
// the checksum is linear: bytes are a polynomial over GF(2), so parts may be taken in any order, each multiplied by the
// power of x that says how far from the end it stands, and added by exclusive or. Leading zeros count for nothing.
// Numbers are reflected: the highest bit of a word is x^0, as in the words that little-endian loads give.
#pragma once

#include <cstddef>
#include <cstdint>

#include "numerics/portable.hpp"

namespace cingulum::zarr {

constexpr std::uint32_t crc32c_polynomial = 0x82f63b78u;
constexpr std::uint32_t crc_threads = 256;
constexpr std::uint32_t crc_words_per_thread = 64;
// A block's part of a chunk: 64 KiB, counted from the chunk's end.
constexpr std::uint64_t crc_segment_words = std::uint64_t{crc_threads} * crc_words_per_thread;

// a times b, modulo the polynomial.
CGL_HD inline std::uint32_t crc_product(std::uint32_t a, std::uint32_t b) {
  std::uint32_t product = 0;
  for (std::uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = (b >> 1) ^ ((b & 1) != 0 ? crc32c_polynomial : 0);
  }
  return product;
}

struct CrcTables {
  // byte b of a word, times x^(32 * crc_threads): the step from a thread's word to its next.
  std::uint32_t step[4][256];
  // x^(32 * (crc_threads - t)): from the sum of thread t to the end of the segment.
  std::uint32_t of_thread[crc_threads];
  // x^(32 * crc_segment_words * 2^k): from segment to segment.
  std::uint32_t of_segments[32];
};

// x^(8 * bytes).
[[nodiscard]] std::uint32_t crc_power(std::uint64_t bytes);
[[nodiscard]] const CrcTables& crc_tables();
// Makes of the sum of a chunk's segments the checksum that is stored behind it.
[[nodiscard]] std::uint32_t finished_crc32c(std::uint32_t sum, std::uint64_t bytes);

// A chunk in staging memory; its checksum stands behind its bytes.
struct CrcTask {
  std::uint64_t at;
  std::uint64_t bytes;
  std::uint32_t first_block;  // of the launch
  std::uint32_t segments;
};
struct CrcAnswer {
  std::uint32_t sum;
  std::uint32_t stored;
};

// The word of the chunk that ends `words_from_end` words before its end (1: the last); bytes before the chunk are zero.
CGL_HD inline std::uint32_t crc_word(const std::byte* staging, const CrcTask& task, std::uint64_t words_from_end) {
  if (4 * words_from_end >= task.bytes + 4) return 0;
  const std::byte* const end = staging + task.at + task.bytes;
  if (4 * words_from_end <= task.bytes && reinterpret_cast<std::uintptr_t>(end) % 4 == 0) {
    return *reinterpret_cast<const std::uint32_t*>(end - 4 * words_from_end);
  }
  std::uint32_t word = 0;
  for (std::uint32_t b = 0; b < 4; ++b) {
    const std::uint64_t from_end = 4 * words_from_end - b;
    if (from_end <= task.bytes) word |= static_cast<std::uint32_t>(*(end - from_end)) << 8 * b;
  }
  return word;
}

// What thread t adds to its segment (0: the first of the chunk).
CGL_HD inline std::uint32_t crc_of_thread(const std::byte* staging, const CrcTask& task, std::uint32_t segment,
                                          std::uint32_t thread, const CrcTables& tables) {
  const std::uint64_t words_behind = (task.segments - 1 - segment) * crc_segment_words;
  std::uint32_t sum = 0;
  for (std::uint32_t i = 0; i < crc_words_per_thread; ++i) {
    const std::uint64_t in_segment = std::uint64_t{i} * crc_threads + thread;
    sum = tables.step[0][sum & 0xff] ^ tables.step[1][sum >> 8 & 0xff] ^ tables.step[2][sum >> 16 & 0xff] ^
          tables.step[3][sum >> 24] ^ crc_word(staging, task, words_behind + crc_segment_words - in_segment);
  }
  return crc_product(sum, tables.of_thread[thread]);
}

// The sum of a segment's threads, brought to the end of the chunk.
CGL_HD inline std::uint32_t crc_of_segment(std::uint32_t sum, const CrcTask& task, std::uint32_t segment,
                                           const CrcTables& tables) {
  std::uint32_t behind = task.segments - 1 - segment;
  for (std::uint32_t k = 0; behind != 0; ++k, behind >>= 1) {
    if ((behind & 1) != 0) sum = crc_product(sum, tables.of_segments[k]);
  }
  return sum;
}

CGL_HD inline std::uint32_t stored_crc32c(const std::byte* staging, const CrcTask& task) {
  const std::byte* const at = staging + task.at + task.bytes;
  std::uint32_t stored = 0;
  for (std::uint32_t b = 0; b < 4; ++b) stored |= static_cast<std::uint32_t>(at[b]) << 8 * b;
  return stored;
}

}  // namespace cingulum::zarr
