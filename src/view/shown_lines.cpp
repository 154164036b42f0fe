#include "view/shown_lines.hpp"

#include <numeric>
#include <span>

#include "streamlines/linearise.hpp"
#include "view/view_messages.hpp"

namespace cingulum::view {
namespace {

constexpr double shown_tolerance_mm = 0.3;
// Points of the file: the first batches are read, sent and drawn in a moment; of a million streamlines the others are
// some dozen, so that going to and fro costs little. They depend on where a batch begins alone, so that every page that
// reads from the front meets the same beginnings.
constexpr std::size_t small_batch_points = std::size_t{1} << 18U;
constexpr std::size_t large_batch_points = std::size_t{1} << 21U;
constexpr std::uint64_t lines_in_small_batches = 10'000;

std::size_t batch_points_at(std::uint64_t first) {
  return first < lines_in_small_batches ? small_batch_points : large_batch_points;
}

}  // namespace

Result<std::vector<std::byte>> ShownLines::message(const std::filesystem::path& path, std::uint64_t first) {
  const std::lock_guard lock(mutex_);
  return catch_out_of_memory([&]() -> Result<std::vector<std::byte>> {
    Place& place = places_[path];
    if (place.reader == nullptr || place.next > first) {
      CGL_TRY_ASSIGN(place.reader, TractogramReader::open(path));
      place.next = 0;
    }
    TractogramBatch skipped;
    while (place.next < first) {
      CGL_TRY_ASSIGN(const bool more, place.reader->next(skipped, batch_points_at(place.next), true));
      if (!more) break;
      place.next += skipped.streamline_count();
    }
    if (place.next != first) {
      place.reader.reset();
      return fail(ErrorKind::not_found, "{}: no batch begins with streamline {}", path.filename().string(), first);
    }
    Result<std::vector<std::byte>> made = next_message(place);
    if (!made) place.reader.reset();
    return made;
  });
}

Result<std::vector<std::byte>> ShownLines::next_message(Place& place) {
  TractogramBatch batch;
  CGL_TRY_ASSIGN(const bool more, place.reader->next(batch, batch_points_at(place.next), true));
  if (!more) {
    batch.clear();
    place.reader.reset();  // and its file
  }
  TractogramLayout bare = place.reader ? place.reader->layout() : TractogramLayout{};
  bare.point_fields.clear();
  bare.streamline_fields.clear();
  batch.point_data.clear();
  batch.streamline_data.clear();
  TractogramBatch shown;
  CGL_TRY(Lineariser({.tolerance_mm = shown_tolerance_mm}, pool_).apply(batch, bare, shown));
  std::vector<std::uint32_t> places(shown.streamline_count());
  std::iota(places.begin(), places.end(), static_cast<std::uint32_t>(place.next));
  const std::vector<std::byte> reasons(2 * places.size(), std::byte{0});
  place.next += places.size();
  return make_batch_message(0, {.offsets = shown.offsets,
                                .positions = shown.positions,
                                .seed_index = std::as_bytes(std::span(places)),
                                .end_reasons = reasons});
}

}  // namespace cingulum::view
