// The engines of CUDA over the real libraries: nvCOMP, and cuFile in its compatibility mode (what there is without a
// disk that it reads natively). Equal bytes and found damage; tools/gpu-zarr runs them where both libraries are.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "support/each_device.hpp"
#include "zarr/direct/device_region.hpp"
#include "zarr/new_array.hpp"

namespace cingulum::zarr {
namespace gpu_engine_tests {

using cingulum::testing::fails_with;

class GpuEngines : public cingulum::testing::EachDevice {
 protected:
  void SetUp() override {
    EachDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    ASSERT_OK_AND_ASSIGN(const Settings settings, Settings::from_environment());
    ASSERT_OK_AND_ASSIGN(settings_, EngineSettings::from_settings(settings));
    settings_.cache_dir.reset();
    settings_.allow_cufile_compatibility = true;
    folder_ = std::filesystem::temp_directory_path() / fmt::format("cingulum-gpu-engines-{}", ::getpid());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    ASSERT_OK_AND_ASSIGN(pool_, ThreadPool::create(4));
  }
  void TearDown() override {
    if (!folder_.empty()) std::filesystem::remove_all(folder_);
  }

  // 60 chunks of up to 64 KiB, edges cut by the array's end: as they are by the engine, and with one bit flipped.
  void check(Engine engine, const char* codec) {
    NewArray wanted;
    wanted.shape = {150, 100, 120};
    wanted.type = element_type_of<std::int16_t>();
    wanted.chunk_shape = {32, 32, 32};
    wanted.sharded = false;
    wanted.codec = parse_codec_choice(codec).value();
    ASSERT_OK_AND_ASSIGN(const ArrayMetadata metadata, describe_new_array(wanted));
    std::vector<std::byte> elements(150 * 100 * 120 * 2);
    std::mt19937 generator(3);
    for (std::byte& b : elements) b = static_cast<std::byte>(generator() % 23);
    const std::filesystem::path path = folder_ / fmt::format("{}-{}.zarr", engine_name(engine), codec);
    ASSERT_OK_AND_ASSIGN(const auto output, new_hierarchy(path, {}));
    ASSERT_OK(write_array_metadata("", metadata, *output));
    ASSERT_OK(write_region(Array::describe(nullptr, "", metadata), *output, whole(metadata), elements));
    ASSERT_OK(output->commit());
    ASSERT_OK_AND_ASSIGN(auto store, Store::open(path));
    ASSERT_OK_AND_ASSIGN(const Array array, Array::open(std::move(store), ""));

    ASSERT_OK_AND_ASSIGN(const auto reader, DeviceReader::create(device(), settings_));
    ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(elements.size()));
    DeviceReadOptions options;
    options.engine = engine;
    options.pool = pool_.get();
    ASSERT_OK_AND_ASSIGN(const DeviceReadReport report,
                         reader->read(array, whole(metadata), queue(), {*buffer}, options));
    EXPECT_EQ(report.engine, engine);
    EXPECT_EQ(report.read.retried_chunks, 0u) << codec;
    std::vector<std::byte> found(elements.size());
    ASSERT_OK(queue().download(found, *buffer, 0));
    ASSERT_OK(queue().synchronise());
    EXPECT_TRUE(found == elements) << codec;

    const std::filesystem::path file = path / "c/1/1/1";
    const auto bytes = static_cast<std::uint32_t>(std::filesystem::file_size(file));
    for (int i = 0; i < 40; ++i) {
      const auto at = static_cast<std::streamoff>(generator() % bytes);
      const auto flip = [&] {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekg(at);
        const int byte = stream.get();
        stream.seekp(at);
        stream.put(static_cast<char>(byte ^ (1 << i % 8)));
      };
      flip();
      ASSERT_TRUE(fails_with(reader->read(array, whole(metadata), queue(), {*buffer}, options), ErrorKind::corrupt,
                             "chunk c/1/1/1"))
          << codec << ", byte " << at;
      flip();
    }
  }

  EngineSettings settings_;
  std::filesystem::path folder_;
  std::unique_ptr<ThreadPool> pool_;
};

TEST_P(GpuEngines, nvcomp_decodes_what_the_host_decodes_and_damage_is_found) {
  for (const char* const codec : {"zstd", "zstd:9", "lz4", "gzip"}) check(Engine::nvcomp, codec);
}

TEST_P(GpuEngines, cufile_in_its_compatibility_mode_reads_what_the_host_reads_and_damage_is_found) {
  check(Engine::direct, "none");
}

CGL_FOR_DEVICES(GpuEngines, "cuda");

}  // namespace gpu_engine_tests
}  // namespace cingulum::zarr
