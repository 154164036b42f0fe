#include "oct/run/tile_stage.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <vector>

#include "oct/tiles/galvo_band.hpp"
#include "support/each_device.hpp"
#include "support/oct_draw.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum::oct {
namespace tile_stage_tests {

using cingulum::testing::OctDraw;

// One raw tile in three files: 60 planes, 190 rows of 200 lines of which 11 are the galvo's band. It is read in nine
// pieces, and neither they nor the files begin where a line does.
struct RawTile {
  RawTile() {
    set.raw = true;
    set.shape = {60, 190, 189};
    set.extra_lines = 11;
    values = OctDraw(5).volume({190, 200, 60});
    values[17] = std::numeric_limits<float>::quiet_NaN();
    values[2'200'000] = -std::numeric_limits<float>::infinity();
    record.path = folder.path();
    const std::size_t scan = 200 * 60;
    for (const auto& [first, end] : {std::pair<std::size_t, std::size_t>{0, 31}, {31, 150}, {150, 190}}) {
      const auto path = folder / ("image_" + std::to_string(record.images.size()) + ".bin");
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(values.data() + first * scan),
                 static_cast<std::streamsize>((end - first) * scan * sizeof(float)));
      record.images.push_back(path);
    }
    source = {&set, 42, pool.get(), {}};
  }

  TemporaryFolder folder;
  TileSet set;
  TileRecord record;
  std::vector<float> values;  // (y, line, z)
  std::unique_ptr<ThreadPool> pool = std::move(*ThreadPool::create(3));
  TileSource source;
};

class OctTileStage : public cingulum::testing::EachDevice {
 protected:
  void SetUp() override {
    EachDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    InterfaceOptions interface;
    interface.sub_voxel = true;
    ASSERT_OK_AND_ASSIGN(stage_, TileStage::create(device(), interface));
    ASSERT_OK_AND_ASSIGN(Device* const cpu, cingulum::testing::registry().select_one("cpu"));
    ASSERT_OK_AND_ASSIGN(truth_, TileStage::create(*cpu, interface));
  }

  std::unique_ptr<TileStage> stage_;
  std::unique_ptr<TileStage> truth_;  // on the processor
};

TEST_P(OctTileStage, a_raw_tile_is_that_which_the_host_reads) {
  RawTile raw;
  std::uint64_t replaced = 0;
  ASSERT_OK_AND_ASSIGN(const HostVolume with_band, read_tile(raw.set, raw.record, replaced));
  EXPECT_EQ(replaced, 2u);
  const HostVolume expected = without_band(with_band, raw.set.extra_lines, raw.source.last_line);
  // More often than there are pieces of memory for what is read.
  std::string hash;
  for (int round = 0; round < 3; ++round) {
    ASSERT_OK_AND_ASSIGN(const ReadTile read, stage_->read(raw.source, raw.record));
    EXPECT_EQ(read.replaced, 2u);
    if (round == 0) hash = read.voxels;
    EXPECT_EQ(read.voxels, hash);
    ASSERT_OK_AND_ASSIGN(const DeviceVolume tile, stage_->order(read, raw.set));
    ASSERT_OK_AND_ASSIGN(const HostVolume copy, stage_->copy_to_host(tile, raw.pool.get()));
    EXPECT_EQ(copy.planes, expected.planes);
    EXPECT_EQ(copy.columns, expected.columns);
    ASSERT_EQ(copy.values, expected.values);
    ASSERT_OK_AND_ASSIGN(const ReadTile lent, stage_->lend(copy, raw.pool.get()));
    ASSERT_OK_AND_ASSIGN(const DeviceVolume again, stage_->order(lent, raw.set));
    ASSERT_OK_AND_ASSIGN(const HostVolume second, stage_->copy_to_host(again, nullptr));
    ASSERT_EQ(second.values, expected.values);
  }
  // The hash is of the voxels: the same on every device, another one for another voxel in the first or the last piece
  // of a file.
  ASSERT_OK_AND_ASSIGN(const ReadTile there, truth_->read(raw.source, raw.record));
  EXPECT_EQ(there.voxels, hash);
  for (const std::streamoff voxel : {0, 40 * 200 * 60 - 1}) {
    std::fstream file(raw.record.images[2], std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(voxel * static_cast<std::streamoff>(sizeof(float)));
    const float other = 77;
    file.write(reinterpret_cast<const char*>(&other), sizeof(other));
    file.close();
    ASSERT_OK_AND_ASSIGN(const ReadTile changed, stage_->read(raw.source, raw.record));
    EXPECT_NE(changed.voxels, hash);
    hash = changed.voxels;
  }
}

TEST_P(OctTileStage, summaries_and_tiles_of_slices_have_the_bits_of_the_processor) {
  RawTile raw;
  HostImage curvature(190, 189), light(190, 189);
  for (std::size_t i = 0; i < light.values.size(); ++i) {
    curvature.values[i] = 2 * std::sin(0.01 * static_cast<double>(i));
    light.values[i] = 1 + 0.3 * std::cos(0.003 * static_cast<double>(i));
  }
  std::vector<TileChange> changes(4);
  for (TileChange& change : changes) change = {nullptr, 0, nullptr, 0, 60, {60, 190, 189}};
  changes[1] = {&curvature, 0.75, nullptr, 3, 50, {50, 190, 189}};
  changes[2] = {&curvature, -1.5, &light, 3, 50, {21, 100, 95}};
  changes[3] = {nullptr, 0, &light, 0, 60, {60, 190, 189}};
  std::vector<BulkVector<float>> volumes[2];
  TileSummary summaries[2][2];
  for (std::size_t i = 0; i < 2; ++i) {
    TileStage& stage = i == 0 ? *truth_ : *stage_;
    for (const bool surface : {false, true}) {
      ASSERT_OK_AND_ASSIGN(const ReadTile read, stage.read(raw.source, raw.record));
      ASSERT_OK_AND_ASSIGN(const DeviceVolume tile, stage.order(read, raw.set));
      ASSERT_OK_AND_ASSIGN(summaries[i][surface ? 1 : 0], stage.summarise(tile, surface, raw.pool.get()));
    }
    for (const TileChange& change : changes) {
      ASSERT_OK_AND_ASSIGN(const ReadTile read, stage.read(raw.source, raw.record));
      ASSERT_OK_AND_ASSIGN(DeviceVolume tile, stage.order(read, raw.set));
      ASSERT_OK_AND_ASSIGN(const DeviceVolume made, stage.make(std::move(tile), change));
      EXPECT_EQ(made.shape,
                (VolumeShape{static_cast<std::uint32_t>(change.shape[0]), static_cast<std::uint32_t>(change.shape[1]),
                             static_cast<std::uint32_t>(change.shape[2])}));
      ASSERT_OK_AND_ASSIGN(HostVolume copy, stage.copy_to_host(made, raw.pool.get()));
      volumes[i].push_back(std::move(copy.values));
    }
  }
  for (std::size_t k = 0; k < changes.size(); ++k) EXPECT_EQ(volumes[1][k], volumes[0][k]) << k;
  EXPECT_NE(volumes[0][3], volumes[0][0]);
  EXPECT_EQ(summaries[0][0].layers.size(), 1u);
  EXPECT_EQ(summaries[0][1].layers.size(), layers_of(60));
  for (std::size_t k = 0; k < 2; ++k) {
    EXPECT_EQ(summaries[1][k].projection.values, summaries[0][k].projection.values);
    EXPECT_EQ(summaries[1][k].interface.values, summaries[0][k].interface.values);
    ASSERT_EQ(summaries[1][k].layers.size(), summaries[0][k].layers.size());
    for (std::size_t layer = 0; layer < summaries[0][k].layers.size(); ++layer) {
      EXPECT_EQ(summaries[1][k].layers[layer].values, summaries[0][k].layers[layer].values);
    }
    EXPECT_EQ(summaries[1][k].above_sum, summaries[0][k].above_sum);
    EXPECT_EQ(summaries[1][k].above_count, summaries[0][k].above_count);
  }
}

TEST_P(OctTileStage, files_that_changed_are_named) {
  RawTile raw;
  std::filesystem::resize_file(raw.record.images[1], 119 * 200 * 60 * sizeof(float) - 4);
  EXPECT_TRUE(cingulum::testing::fails_with(stage_->read(raw.source, raw.record), ErrorKind::corrupt, "image_1.bin"));
  std::filesystem::remove(raw.record.images[1]);
  EXPECT_TRUE(cingulum::testing::fails_with(stage_->read(raw.source, raw.record), ErrorKind::io, "image_1.bin"));
  // Between the look at sizes and the reading.
  std::vector<float> values(10);
  ASSERT_OK(read_raw_values(raw.record, 0, values));
  EXPECT_EQ(values[0], raw.values[0]);
  EXPECT_TRUE(cingulum::testing::fails_with(read_raw_values(raw.record, 31 * 200 * 60 - 4, values),
                                            ErrorKind::not_found, "image_1.bin"));
  raw.record.images.resize(1);
  EXPECT_TRUE(cingulum::testing::fails_with(read_raw_values(raw.record, 31 * 200 * 60 - 4, values), ErrorKind::corrupt,
                                            "shorter by 24 bytes"));
}

CGL_FOR_EACH_DEVICE(OctTileStage);

}  // namespace tile_stage_tests
}  // namespace cingulum::oct
