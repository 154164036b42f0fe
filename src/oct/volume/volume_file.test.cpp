#include "oct/volume/volume_file.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <deque>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::oct {
namespace volume_file_tests {

// Three times two boxes of 32 planes and 512 rows, the last ones smaller.
HostVolume six_boxes() {
  HostVolume volume(70, 540, 9);
  for (std::size_t i = 0; i < volume.values.size(); ++i) volume.values[i] = static_cast<float>(i % 1000003) * 0.5f;
  return volume;
}

void copy_box(const HostVolume& volume, const PlaneBox& box, std::span<float> to) {
  for (std::size_t z = 0; z < box.planes; ++z) {
    const auto rows =
        volume.plane(box.first_plane + z).subspan(box.first_row * volume.columns, box.rows * volume.columns);
    std::ranges::copy(rows, to.begin() + static_cast<std::ptrdiff_t>(z * rows.size()));
  }
}

std::vector<std::pair<std::string, std::string>> files_in(const std::filesystem::path& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files.emplace_back(entry.path().lexically_relative(folder).native(),
                       std::string(std::istreambuf_iterator<char>(file), {}));
  }
  std::ranges::sort(files);
  return files;
}

TEST(OctVolumeFile, boxes_behind_and_threads_change_no_byte) {
  const HostVolume volume = six_boxes();
  const TemporaryFolder folder;
  const zarr::Json attributes = {{"key", "k"}};
  VolumeWriteOptions options;
  options.name = "v";
  ASSERT_TRUE(write_volume_from_memory(folder / "memory.ome.zarr", volume, {1, 2, 3}, attributes, {}, options));
  const auto expected = files_in(folder / "memory.ome.zarr");
  EXPECT_EQ(expected.size(), 2u + 6u);
  const auto read = read_planes(folder / "memory.ome.zarr", 0, volume.planes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->values, volume.values);
  // As many threads as shards, and more of them.
  for (const int threads : {3, 6, 8}) {
    const auto pool = ThreadPool::create(threads);
    options.pool = pool->get();
    WriteOptions replace;
    replace.force = true;
    ASSERT_TRUE(write_volume_from_memory(folder / "memory.ome.zarr", volume, {1, 2, 3}, attributes, replace, options));
    EXPECT_EQ(files_in(folder / "memory.ome.zarr"), expected) << threads;
    options.pool = nullptr;
  }
  for (const std::size_t behind : {0U, 1U, 2U, 5U, 9U}) {
    options.boxes_behind = behind;
    const std::string name = "boxes" + std::to_string(behind) + ".ome.zarr";
    const auto make = [&](const PlaneBox& box, std::span<float> to) -> Status {
      copy_box(volume, box, to);
      return {};
    };
    ASSERT_TRUE(write_volume_by_boxes(folder / name, {70, 540, 9}, {1, 2, 3}, attributes, make, {}, options));
    EXPECT_EQ(files_in(folder / name), expected) << behind;
    // An archive takes them in order.
    const std::string archive = "boxes" + std::to_string(behind) + ".ome.zarr.zip";
    ASSERT_TRUE(write_volume_by_boxes(folder / archive, {70, 540, 9}, {1, 2, 3}, attributes, make, {}, options));
    const auto stored = read_planes(folder / archive, 0, volume.planes);
    ASSERT_TRUE(stored);
    EXPECT_EQ(stored->values, volume.values) << behind;
  }
}

TEST(OctVolumeFile, no_box_is_made_where_another_is_written) {
  const HostVolume volume = six_boxes();
  const TemporaryFolder folder;
  for (const std::size_t behind : {1U, 3U}) {
    VolumeWriteOptions options;
    options.boxes_behind = behind;
    std::deque<const float*> written;  // the last ones, which may still be
    std::set<const float*> buffers;
    const auto make = [&](const PlaneBox& box, std::span<float> to) -> Status {
      EXPECT_EQ(std::ranges::count(written, to.data()), 0);
      written.push_back(to.data());
      buffers.insert(to.data());
      if (written.size() > behind) written.pop_front();
      copy_box(volume, box, to);
      return {};
    };
    const std::string name = "v" + std::to_string(behind) + ".ome.zarr";
    ASSERT_TRUE(write_volume_by_boxes(folder / name, {70, 540, 9}, {1, 2, 3}, {}, make, {}, options));
    EXPECT_EQ(buffers.size(), behind + 1);
  }
}

TEST(OctVolumeFile, a_box_that_cannot_be_written_ends_the_volume) {
  const HostVolume volume = six_boxes();
  const auto write = [&](const std::filesystem::path& path, FileLayer& layer, bool by_boxes) {
    WriteOptions writing;
    writing.layer = &layer;
    VolumeWriteOptions options;
    options.boxes_behind = 2;
    const auto make = [&](const PlaneBox& box, std::span<float> to) -> Status {
      copy_box(volume, box, to);
      return {};
    };
    return by_boxes ? write_volume_by_boxes(path, {70, 540, 9}, {1, 2, 3}, {}, make, writing, options)
                    : write_volume_from_memory(path, volume, {1, 2, 3}, {}, writing, options);
  };
  for (const bool by_boxes : {false, true}) {
    const TemporaryFolder folder;
    FaultyFileLayer sound;
    sound.skip_real_syncs();
    ASSERT_TRUE(write(folder / "sound.ome.zarr", sound, by_boxes));
    const std::size_t calls = sound.trace().size();
    ASSERT_GT(calls, 30u);
    for (std::size_t call = 3; call < calls; call += 4) {
      FaultyFileLayer layer({.at_call = call, .error = ENOSPC, .lasting = true});
      layer.skip_real_syncs();
      const Status state = write(folder / "v.ome.zarr", layer, by_boxes);
      if (!layer.fault_was_met() || state) continue;
      EXPECT_NE(state.error().message().find("v.ome.zarr"), std::string::npos) << state.error().message();
      EXPECT_EQ(folder.names(), std::vector<std::string>{"sound.ome.zarr"}) << call;
    }
    FaultyFileLayer full({.at_call = calls / 2, .error = ENOSPC, .lasting = true});
    full.skip_real_syncs();
    EXPECT_FALSE(write(folder / "v.ome.zarr", full, by_boxes));
  }
}

TEST(OctVolumeFile, what_ends_the_making_ends_the_volume) {
  const TemporaryFolder folder;
  std::size_t made = 0;
  const auto make = [&](const PlaneBox&, std::span<float>) -> Status {
    if (++made == 4) return fail(ErrorKind::corrupt, "the fourth");
    return {};
  };
  const Status state = write_volume_by_boxes(folder / "v.ome.zarr", {70, 540, 9}, {1, 2, 3}, {}, make, {}, {});
  ASSERT_FALSE(state);
  EXPECT_NE(state.error().message().find("the fourth"), std::string::npos);
  EXPECT_EQ(made, 4u);
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace volume_file_tests
}  // namespace cingulum::oct
