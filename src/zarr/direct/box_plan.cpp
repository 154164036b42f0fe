#include "zarr/direct/box_plan.hpp"

#include <algorithm>
#include <cassert>
#include <cstring>

namespace cingulum::zarr {
namespace {

// An offset at which every device binds buffers, and a multiple of every unit.
constexpr std::uint64_t window_alignment = 256;
// Well below 2^32, so that indices of items and of blocks are 32-bit numbers.
constexpr std::uint64_t most_items = std::uint64_t{1} << 30;
constexpr std::uint64_t most_blocks = std::uint64_t{1} << 30;

struct PlaceSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

PlaceSpan span_of(const BoxMove& move) {
  std::int64_t begin = static_cast<std::int64_t>(move.place_offset);
  std::int64_t end = begin + move.element_bytes;
  for (std::uint32_t d = 0; d < move.rank; ++d) {
    const std::int64_t reach = move.place_stride[d] * static_cast<std::int64_t>(move.extent[d] - 1);
    (reach < 0 ? begin : end) += reach;
  }
  return {static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(end)};
}

std::uint64_t magnitude(std::int64_t stride) {
  return static_cast<std::uint64_t>(stride < 0 ? -stride : stride);
}

// Two halves along the dimension that reaches farthest in the place; of equals the one with more elements.
std::array<BoxTask, 2> halves(const BoxTask& task) {
  const BoxMove& move = task.move;
  std::uint32_t longest = 0;
  std::uint64_t farthest = 0;
  for (std::uint32_t d = 0; d < move.rank; ++d) {
    const std::uint64_t reach = (move.extent[d] - 1) * std::max<std::uint64_t>(1, magnitude(move.place_stride[d]));
    if (reach > farthest) {
      longest = d;
      farthest = reach;
    }
  }
  std::array<BoxTask, 2> parts = {task, task};
  const std::uint64_t first = move.extent[longest] / 2;
  parts[0].move.extent[longest] = first;
  parts[1].move.extent[longest] -= first;
  parts[1].move.chunk_offset += first * move.chunk_stride[longest];
  parts[1].move.place_offset += first * static_cast<std::uint64_t>(move.place_stride[longest]);
  return parts;
}

// The largest of 16, 8, 4 that divides all of `numbers` joined by |; 0: none does.
std::uint32_t unit_of(std::uint64_t numbers) {
  for (const std::uint32_t unit : {16u, 8u, 4u}) {
    if (numbers % unit == 0) return unit;
  }
  return 0;
}

}  // namespace

BoxPlan::BoxPlan(const BoxLimits& limits, std::span<const std::byte> fill) : limits_(limits) {
  assert(fill.empty() || 16 % fill.size() == 0);
  auto* const bytes = reinterpret_cast<std::byte*>(fill_.data());
  for (std::size_t at = 0; at + fill.size() <= 16 && !fill.empty(); at += fill.size()) {
    std::memcpy(bytes + at, fill.data(), fill.size());
  }
}

bool BoxPlan::is_one_record(const BoxTask& task) const {
  if (task.move.element_count() > most_items) return false;
  if (limits_.binding_bytes == 0 || limits_.place_bytes <= limits_.binding_bytes) return true;
  const PlaceSpan span = span_of(task.move);
  return span.end - span.begin + window_alignment <= limits_.binding_bytes;
}

std::size_t BoxPlan::records_for(const BoxTask& task) const {
  if (task.move.element_count() == 0) return 0;
  if (is_one_record(task)) return 1;
  std::size_t records = 0;
  for (const BoxTask& half : halves(task)) records += records_for(half);
  return records;
}

void BoxPlan::add(const BoxTask& task) {
  if (task.move.element_count() == 0) return;
  if (is_one_record(task)) return add_record(task);
  for (const BoxTask& half : halves(task)) add(half);
}

void BoxPlan::add_record(const BoxTask& task) {
  const BoxMove& move = task.move;
  const auto [begin, end] = span_of(move);
  assert(begin <= end && end <= limits_.place_bytes);
  const bool whole = limits_.binding_bytes == 0 || limits_.place_bytes <= limits_.binding_bytes;

  BoxRecord record{};
  record.rank = move.rank;
  record.element_bytes = move.element_bytes;
  record.swapped_bytes = move.swapped_bytes;
  record.shuffled = move.shuffled;
  record.is_fill = task.is_fill ? 1 : 0;
  record.chunk_elements = move.chunk_elements;
  std::copy(fill_.begin(), fill_.end(), record.fill);

  const std::uint32_t last = move.rank - 1;  // where rank > 0
  const std::uint64_t element = move.element_bytes;
  // Elements of a row lie side by side on both sides: it is cut into units whatever an element is.
  const bool rows = move.rank > 0 && move.place_stride[last] == static_cast<std::int64_t>(element) &&
                    (task.is_fill || move.chunk_stride[last] == 1);
  const std::uint64_t row_bytes = rows ? move.extent[last] * element : element;
  const std::uint64_t first_byte = task.chunk_at + move.chunk_offset * element;
  std::uint64_t numbers = row_bytes | move.place_offset | limits_.place_misaligned | (task.is_fill ? 0 : first_byte);
  for (std::uint32_t d = 0; d < move.rank; ++d) {
    if ((rows && d == last) || move.extent[d] == 1) continue;
    numbers |= magnitude(move.place_stride[d]);
    if (!task.is_fill) numbers |= move.chunk_stride[d] * element;
  }
  std::uint32_t unit = unit_of(numbers);
  if (!rows && unit > element) unit = move.element_bytes < 4 ? 0 : move.element_bytes;
  // A unit holds whole numbers that are turned, and whole elements of a fill; an item of single elements is one.
  if (unit < move.swapped_bytes || (task.is_fill && unit < element) || (!rows && unit != element)) unit = 0;
  if (move.shuffled != 0 && !task.is_fill) unit = 0;
  record.unit_bytes = unit;

  std::uint64_t items = 1;
  for (std::uint32_t d = 0; d < move.rank; ++d) {
    std::uint64_t extent = move.extent[d];
    record.place_stride[d] = move.place_stride[d];
    record.chunk_stride[d] = unit == 0 ? move.chunk_stride[d] : move.chunk_stride[d] * element;
    if (unit != 0 && rows && d == last) {
      extent = row_bytes / unit;
      record.place_stride[d] = unit;
      record.chunk_stride[d] = unit;
    }
    record.extent[d] = static_cast<std::uint32_t>(extent);
    items *= extent;
  }
  record.items = static_cast<std::uint32_t>(items);
  record.chunk_at = unit == 0 ? task.chunk_at : first_byte;
  record.chunk_offset = move.chunk_offset;
  const auto blocks = static_cast<std::uint32_t>((items + box_items_per_block - 1) / box_items_per_block);

  bool joins = !launches_.empty() && launches_.back().blocks + std::uint64_t{blocks} <= most_blocks;
  if (joins && !whole) {
    BoxLaunch& window = launches_.back();
    const std::uint64_t from = std::min(window.place_begin, begin / window_alignment * window_alignment);
    const std::uint64_t to = std::max(window.place_begin + window.place_bytes, end);
    joins = to - from <= limits_.binding_bytes;
    if (joins) {
      window.place_begin = from;
      window.place_bytes = to - from;
    }
  }
  if (!joins) {
    BoxLaunch launch;
    launch.first_record = static_cast<std::uint32_t>(records_.size());
    launch.place_begin = whole ? 0 : begin / window_alignment * window_alignment;
    launch.place_bytes = (whole ? limits_.place_bytes : end) - launch.place_begin;
    launches_.push_back(launch);
  }
  record.first_block = launches_.back().blocks;
  record.place_offset = move.place_offset;
  launches_.back().blocks += blocks;
  ++launches_.back().records;
  records_.push_back(record);
}

}  // namespace cingulum::zarr
