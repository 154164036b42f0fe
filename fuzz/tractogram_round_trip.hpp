// What the tractogram targets share: reading everything, writing it again into memory, and requiring the same.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "formats/file_bytes.hpp"
#include "formats/tractogram.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file_layer.hpp"

namespace cingulum::fuzz {

inline std::size_t bytes_of(const TractogramBatch& batch) {
  std::size_t bytes = batch.offsets.size() * 8 + batch.positions.size() * 4 + batch.positions64.size() * 8;
  for (const auto& data : batch.point_data) bytes += data.size();
  for (const auto& data : batch.streamline_data) bytes += data.size();
  return bytes;
}

// Larger ones would go to temporary files, which the file system in memory does not have.
constexpr std::size_t most_bytes_to_write = std::size_t{1} << 19U;

inline std::vector<std::byte> write_whole(const Tractogram& whole, const TractogramLayout& layout,
                                          const std::string& path) {
  MemoryFileLayer layer;
  WriteOptions options;
  options.layer = &layer;
  auto writer = expect(TractogramWriter::create(path, layout, options), "writing again");
  for (const TractogramGroup& group : whole.groups) {
    const Status added = writer->add_group(group);
    require(added.has_value(), "writing a group again", added ? "" : added.error().message());
  }
  const Status appended = writer->append(whole.streamlines);
  require(appended.has_value(), "writing again", appended ? "" : appended.error().message());
  const Status committed = writer->commit();
  require(committed.has_value(), "writing again", committed ? "" : committed.error().message());
  return layer.content(path);
}

// Two NaN are equal.
template <class T>
bool same_numbers(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0 && (a[i] == a[i] || b[i] == b[i])) return false;
  }
  return true;
}

inline void require_same(const Tractogram& a, const Tractogram& b) {
  require(a.streamlines.offsets == b.streamlines.offsets, "the offsets have changed");
  require(same_numbers(a.streamlines.positions, b.streamlines.positions), "the positions have changed");
  require(same_numbers(a.streamlines.positions64, b.streamlines.positions64), "the positions have changed");
  require(a.streamlines.point_data == b.streamlines.point_data, "data of points have changed");
  require(a.streamlines.streamline_data == b.streamlines.streamline_data, "data of streamlines have changed");
  require(a.layout.point_fields == b.layout.point_fields, "fields of points have changed");
  require(a.layout.streamline_fields == b.layout.streamline_fields, "fields of streamlines have changed");
  require(a.layout.notes == b.layout.notes, "the notes have changed");
  require(a.groups.size() == b.groups.size(), "the groups have changed");
  for (std::size_t i = 0; i < a.groups.size(); ++i) {
    require(a.groups[i].name == b.groups[i].name && a.groups[i].streamlines == b.groups[i].streamlines &&
                a.groups[i].fields == b.groups[i].fields && a.groups[i].data == b.groups[i].data,
            "a group has changed");
  }
}

inline FileBytes copy_of(std::span<const std::byte> bytes) {
  return FileBytes::own({bytes.begin(), bytes.end()});
}

}  // namespace cingulum::fuzz
