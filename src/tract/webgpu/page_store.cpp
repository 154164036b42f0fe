#include "tract/webgpu/page_store.hpp"

#include <algorithm>
#include <cstring>

namespace cingulum {
namespace {

struct Entry {
  std::uint32_t seed;  // number within the range
  std::uint32_t direction;
  std::uint32_t half;
  bool last;
  std::uint8_t reason;
  std::uint32_t points;
  std::uint32_t first;
  std::uint32_t steps;

  explicit Entry(const PageEntryWords& words)
      : seed(words.seed),
        direction(words.bits & ((1u << entry_half_shift) - 1u)),
        half((words.bits >> entry_half_shift) & 1u),
        last(((words.bits >> entry_last_shift) & 1u) != 0u),
        reason(static_cast<std::uint8_t>((words.bits >> entry_reason_shift) & 7u)),
        points(words.bits >> entry_points_shift),
        first(words.first),
        steps(words.steps) {}
};

template <class Visit>
void each_entry(const std::vector<PageBlock>& blocks, Visit&& visit) {
  for (const PageBlock& block : blocks) {
    for (std::size_t page = 0; page < block.pages; ++page) {
      visit(Entry(block.entries[page]), &block.points[page * page_words]);
    }
  }
}

Status contradiction() {
  return fail(ErrorKind::device, "the pages that the WebGPU device wrote contradict each other; use {} cpu",
              argument_name("device"));
}

template <class Number>
void ensure_size(std::vector<Number>& numbers, std::size_t count) {
  // A new vector, since growing the old one would copy it.
  if (numbers.size() < count) numbers = std::vector<Number>(count);
}

}  // namespace

void PageBlock::reallocate(std::size_t count) {
  pages = count;
  ensure_size(entries, count);
  ensure_size(points, count * page_words);
}

Status assemble_pages(const std::vector<PageBlock>& blocks, SeedRange range,
                      const std::vector<numerics::Vec3>& positions, const SeedCounts& counts, StreamlineBatch& batch) {
  batch.seeds = range;
  batch.steps = 0;
  batch.seeds_outside = counts.outside;
  batch.seeds_without_direction = counts.without_direction;

  bool sound = true;
  std::vector<std::uint32_t> first_line(range.count + 1, 0);
  each_entry(blocks, [&](const Entry& entry, const float*) {
    if (entry.seed >= range.count || entry.points > points_per_page) {
      sound = false;
      return;
    }
    std::uint32_t& lines = first_line[entry.seed + 1];
    lines = std::max(lines, entry.direction + 1);
  });
  if (!sound) return contradiction();
  for (std::size_t seed = 0; seed < range.count; ++seed) first_line[seed + 1] += first_line[seed];
  const std::size_t lines = first_line[range.count];

  struct Half {
    std::uint32_t points = 0;
    std::uint32_t found = 0;  // points in pages
    std::uint8_t reason = 0;
    bool ended = false;
  };
  std::vector<Half> halves(2 * lines);
  each_entry(blocks, [&](const Entry& entry, const float*) {
    Half& half = halves[2 * (first_line[entry.seed] + std::size_t{entry.direction}) + entry.half];
    half.found += entry.points;
    if (!entry.last) return;
    half.points = entry.first + entry.points;
    half.reason = entry.reason;
    sound = sound && !half.ended;
    half.ended = true;
    batch.steps += entry.steps;
  });
  batch.offsets.resize(lines + 1);
  batch.offsets[0] = 0;
  batch.seed_index.resize(lines);
  batch.seed_point.resize(lines);
  batch.end_reason.resize(2 * lines);
  for (std::size_t seed = 0; seed < range.count; ++seed) {
    for (std::size_t line = first_line[seed]; line < first_line[seed + 1]; ++line) {
      const Half& along = halves[2 * line];
      const Half& against = halves[2 * line + 1];  // does not exist in one-sided tracking
      sound = sound && along.ended && along.found == along.points && against.found == against.points;
      batch.offsets[line + 1] = batch.offsets[line] + against.points + 1 + along.points;
      batch.seed_index[line] = range.first + seed;
      batch.seed_point[line] = against.points;
      batch.end_reason[2 * line] = against.reason;
      batch.end_reason[2 * line + 1] = along.reason;
    }
  }
  if (!sound) return contradiction();

  batch.points.resize(3 * batch.offsets[lines]);
  for (std::size_t line = 0; line < lines; ++line) {
    const numerics::Vec3 seed = positions[batch.seed_index[line] - range.first];
    std::memcpy(&batch.points[3 * (batch.offsets[line] + batch.seed_point[line])], &seed, sizeof seed);
  }
  each_entry(blocks, [&](const Entry& entry, const float* points) {
    const std::size_t line = first_line[entry.seed] + std::size_t{entry.direction};
    const Half& half = halves[2 * line + entry.half];
    if (std::uint64_t{entry.first} + entry.points > half.points) {
      sound = false;
      return;
    }
    const std::size_t seed_point = batch.offsets[line] + batch.seed_point[line];
    if (entry.half == 0) {
      std::copy_n(points, 3 * std::size_t{entry.points}, &batch.points[3 * (seed_point + 1 + entry.first)]);
      return;
    }
    float* to = batch.points.data() + 3 * (seed_point - entry.first);
    for (std::uint32_t i = 0; i < entry.points; ++i) {
      to -= 3;
      to[0] = points[3 * i];
      to[1] = points[3 * i + 1];
      to[2] = points[3 * i + 2];
    }
  });
  return sound ? Status{} : contradiction();
}

}  // namespace cingulum
