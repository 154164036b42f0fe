// A small tractogram with every kind of data, for tests of the formats: streamlines of 3, 0, 1, 2 and 40 points, fields
// of several types and columns, groups with data. Not used outside tests.
#pragma once

#include <cstring>
#include <filesystem>
#include <vector>

#include "formats/tractogram.hpp"

namespace cingulum::testing {

constexpr ElementType half_type = {ElementType::Code::floating, 16};
constexpr ElementType float_type = {ElementType::Code::floating, 32};
constexpr ElementType double_type = {ElementType::Code::floating, 64};

template <class T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

// Oblique, anisotropic, flipped.
inline ImageGeometry example_reference() {
  return {.size = {61, 70, 55},
          .voxel_to_world = {{-1.9, 0.21, 0.1, 58.25, 0.2, 1.7, -0.33, -61.5, 0.05, 0.4, 2.9, -40.125}}};
}

inline TractogramBatch example_batch(bool fields = true, int first = 0, int last = 5) {
  const std::vector<int> lengths = {3, 0, 1, 2, 40};
  TractogramBatch batch;
  std::vector<float> fa;
  std::vector<double> direction;
  std::vector<std::uint32_t> seed_index;
  std::vector<std::uint8_t> end_reason;
  int point = 0;
  for (int i = 0; i < last; ++i) {
    for (int p = 0; p < lengths[static_cast<std::size_t>(i)]; ++p, ++point) {
      if (i < first) continue;
      const auto t = static_cast<float>(point);
      batch.positions.insert(batch.positions.end(), {t * 0.71f - 20.3f, 11.0f - t * 0.313f, t * t * 0.01f - 7.7f});
      fa.push_back(t / 64.0f);
      direction.insert(direction.end(), {t * 0.1, 1.0 / (1.0 + t), -t * 1e-3});
    }
    if (i < first) continue;
    batch.offsets.push_back(batch.positions.size() / 3);
    seed_index.push_back(static_cast<std::uint32_t>(1000 + i));
    end_reason.insert(end_reason.end(), {static_cast<std::uint8_t>(i), static_cast<std::uint8_t>(i + 1)});
  }
  if (fields) {
    batch.point_data = {bytes_of(fa), bytes_of(direction)};
    batch.streamline_data = {bytes_of(seed_index), bytes_of(end_reason)};
  }
  return batch;
}

inline TractogramLayout example_layout(TractogramFormat format, ElementType position_type = float_type) {
  TractogramLayout layout;
  layout.format = format;
  layout.reference = example_reference();
  layout.position_type = position_type;
  if (format == TractogramFormat::tck) return layout;
  layout.point_fields = {{.name = "fa", .type = float_type, .columns = 1},
                         {.name = "direction", .type = double_type, .columns = 3}};
  layout.streamline_fields = {{.name = "seed_index", .type = element_type_of<std::uint32_t>(), .columns = 1},
                              {.name = "end_reason", .type = element_type_of<std::uint8_t>(), .columns = 2}};
  return layout;
}

inline std::vector<TractogramGroup> example_groups() {
  return {{.name = "left",
           .streamlines = {0, 3, 4},
           .fields = {{.name = "volume", .type = float_type, .columns = 1},
                      {.name = "centre", .type = double_type, .columns = 3}},
           .data = {bytes_of(std::vector<float>{12.5f}), bytes_of(std::vector<double>{1, 2, 3})}},
          {.name = "empty", .streamlines = {}, .fields = {}, .data = {}}};
}

// In batches of `streamlines_per_batch`.
inline Status write_example(const std::filesystem::path& path, TractogramFormat format,
                            const WriteOptions& options = {}, ElementType position_type = float_type,
                            int streamlines_per_batch = 5, bool deflated = false, ThreadPool* pool = nullptr) {
  const bool trx = format == TractogramFormat::trx || format == TractogramFormat::trx_folder;
  TractogramLayout layout = example_layout(format, position_type);
  layout.deflated = deflated;
  layout.deflating_pool = pool;
  CGL_TRY_ASSIGN(const auto writer, TractogramWriter::create(path, layout, options));
  if (trx) CGL_TRY(writer->add_group(example_groups()[0]));
  for (int first = 0; first < 5; first += streamlines_per_batch) {
    const int last = std::min(5, first + streamlines_per_batch);
    CGL_TRY(writer->append(example_batch(format != TractogramFormat::tck, first, last)));
  }
  if (trx) CGL_TRY(writer->add_group(example_groups()[1]));
  return writer->commit();
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}
inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0);
}

// The same meaning, bit for bit.
inline bool same_tractogram(const Tractogram& a, const Tractogram& b) {
  if (a.groups.size() != b.groups.size()) return false;
  for (std::size_t i = 0; i < a.groups.size(); ++i) {
    if (a.groups[i].name != b.groups[i].name || a.groups[i].streamlines != b.groups[i].streamlines ||
        a.groups[i].fields != b.groups[i].fields || a.groups[i].data != b.groups[i].data) {
      return false;
    }
  }
  return a.layout.reference == b.layout.reference && a.layout.position_type == b.layout.position_type &&
         a.layout.point_fields == b.layout.point_fields && a.layout.streamline_fields == b.layout.streamline_fields &&
         a.streamlines.offsets == b.streamlines.offsets &&
         same_bits(a.streamlines.positions, b.streamlines.positions) &&
         same_bits(a.streamlines.positions64, b.streamlines.positions64) &&
         a.streamlines.point_data == b.streamlines.point_data &&
         a.streamlines.streamline_data == b.streamlines.streamline_data;
}

}  // namespace cingulum::testing
