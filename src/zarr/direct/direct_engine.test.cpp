#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "support/each_device.hpp"
#include "zarr/direct/cufile_library.hpp"
#include "zarr/direct/device_region.hpp"
#include "zarr/direct/direct_conditions.hpp"
#include "zarr/direct/direct_transport.hpp"
#include "zarr/direct/nvcomp_transport.hpp"
#include "zarr/direct/staged_read.hpp"
#include "zarr/new_array.hpp"

namespace cingulum::zarr {
namespace direct_engine_tests {

using cingulum::testing::fails_with;

// The direct engine over a cuFile that plays its part (tests/zarr/fake_cufile.cpp), into the memory of the CPU device.
// Each test has a copy of the library under a name of its own: a library is opened once in a process.
class DirectEngine : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* const name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    folder_ = std::filesystem::temp_directory_path() / fmt::format("cingulum-direct-{}-{}", ::getpid(), name);
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::filesystem::copy_file(CINGULUM_TEST_FAKE_CUFILE, folder_ / "libcufile.so");
    ::unsetenv("CINGULUM_TEST_CUFILE");
    ASSERT_OK_AND_ASSIGN(device_, cingulum::testing::registry().select_one("cpu"));
    ASSERT_OK_AND_ASSIGN(pool_, ThreadPool::create(3));
  }
  void TearDown() override {
    ::unsetenv("CINGULUM_TEST_CUFILE");
    std::filesystem::remove_all(folder_);
  }
  [[nodiscard]] Result<std::shared_ptr<const CufileLibrary>> library() const {
    return CufileLibrary::open({folder_ / "libcufile.so", false});
  }

  // 40 chunks of 8 KiB in shards, the last row of them cut by the array's end.
  void make_array(bool checksum) {
    NewArray wanted;
    wanted.shape = {156, 256};
    wanted.type = element_type_of<float>();
    wanted.chunk_shape = {16, 128};
    wanted.shard_shape = {64, 256};
    wanted.codec = parse_codec_choice("none").value();
    wanted.codec->checksum = checksum;
    ASSERT_OK_AND_ASSIGN(const ArrayMetadata metadata, describe_new_array(wanted));
    elements_.resize(156 * 256 * 4);
    std::mt19937 generator(3);
    for (std::byte& b : elements_) b = static_cast<std::byte>(generator());
    ASSERT_OK_AND_ASSIGN(const auto output, new_hierarchy(folder_ / "a.zarr", {}));
    ASSERT_OK(write_array_metadata("", metadata, *output));
    ASSERT_OK(write_region(Array::describe(nullptr, "", metadata), *output, whole(metadata), elements_));
    ASSERT_OK(output->commit());
    ASSERT_OK_AND_ASSIGN(auto store, Store::open(folder_ / "a.zarr"));
    ASSERT_OK_AND_ASSIGN(auto array, Array::open(std::move(store), ""));
    array_.emplace(std::move(array));
  }

  // The whole array through the engine.
  [[nodiscard]] Status read(std::vector<std::byte>& found) {
    CGL_TRY_ASSIGN(const auto staging, Staging::create(*device_));
    CGL_TRY_ASSIGN(const auto queue, device_->create_queue());
    CGL_TRY_ASSIGN(const auto buffer, device_->allocate(elements_.size()));
    CGL_TRY(queue->fill(*buffer, 0, elements_.size(), std::byte{0x77}));
    CGL_TRY_ASSIGN(RegionPlan plan, RegionPlan::create(*array_, whole(array_->metadata())));
    CGL_TRY_ASSIGN(auto cufile, library());
    CGL_TRY_ASSIGN(const auto transport, make_direct_transport(plan, *staging, counters_, std::move(cufile)));
    const ReadOptions options{pool_.get(), {}, false};
    std::vector<CodecScratch> scratch;
    const Status status =
        run_staged_read({plan, *transport, *staging, counters_, *queue, *buffer, 0, {64 << 10, 3}, options, scratch});
    found.resize(elements_.size());
    CGL_TRY(queue->download(found, *buffer, 0));
    CGL_TRY(queue->synchronise());
    return status;
  }
  // A function of the library of this test.
  [[nodiscard]] long ask(const char* name) const {
    void* const handle = ::dlopen((folder_ / "libcufile.so").c_str(), RTLD_NOW | RTLD_NOLOAD);
    if (handle == nullptr) return -1;
    const auto function = reinterpret_cast<long (*)()>(::dlsym(handle, name));
    const long answer = function();
    ::dlclose(handle);
    return answer;
  }

  std::filesystem::path folder_;
  Device* device_ = nullptr;
  std::unique_ptr<ThreadPool> pool_;
  std::vector<std::byte> elements_;
  std::optional<Array> array_;
  ReadCounters counters_;
};

TEST_F(DirectEngine, chunks_come_past_the_host_and_are_verified) {
  for (const bool checksum : {true, false}) {
    std::filesystem::remove_all(folder_ / "a.zarr");
    make_array(checksum);
    std::vector<std::byte> found;
    ASSERT_OK(read(found));
    EXPECT_TRUE(found == elements_);
    EXPECT_EQ(counters_.retried_chunks, 0u);
  }
  EXPECT_EQ(ask("fake_cufile_reads"), 40) << "20 chunks, twice";
  EXPECT_EQ(ask("fake_cufile_registered"), 0) << "files and memory are given back";
}

TEST_F(DirectEngine, reads_that_fail_or_are_short_are_made_by_the_host_and_counted) {
  make_array(true);
  for (const char* const part : {"failing:3", "short:4"}) {
    ::setenv("CINGULUM_TEST_CUFILE", part, 1);
    counters_.retried_chunks = 0;
    std::vector<std::byte> found;
    ASSERT_OK(read(found));
    EXPECT_TRUE(found == elements_) << part;
    EXPECT_GE(counters_.retried_chunks, 4u) << part;
    EXPECT_LE(counters_.retried_chunks, 7u) << part;
  }
}

TEST_F(DirectEngine, damage_is_an_error_and_no_reason_to_read_again) {
  make_array(true);
  ::setenv("CINGULUM_TEST_CUFILE", "flipped:5", 1);
  std::vector<std::byte> found;
  EXPECT_TRUE(fails_with(read(found), ErrorKind::corrupt, "crc32c"));
  EXPECT_EQ(counters_.retried_chunks, 0u);
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_TRUE(found[i] == std::byte{0x77} || found[i] == elements_[i]) << i;
  }
}

TEST_F(DirectEngine, every_flipped_bit_of_a_chunk_is_found) {
  make_array(true);
  const std::filesystem::path shard = folder_ / "a.zarr/c/0/0";
  std::mt19937 generator(9);
  std::vector<std::byte> found;
  // The first chunk begins the shard: 8 KiB and four bytes of checksum.
  for (int i = 0; i < 60; ++i) {
    const auto at = i < 4 ? std::streamoff{8192} + i : static_cast<std::streamoff>(generator() % 8192);
    const auto flip = [&] {
      std::fstream stream(shard, std::ios::in | std::ios::out | std::ios::binary);
      stream.seekg(at);
      const int byte = stream.get();
      stream.seekp(at);
      stream.put(static_cast<char>(byte ^ (1 << i % 8)));
    };
    flip();
    ASSERT_TRUE(fails_with(read(found), ErrorKind::corrupt, "chunk 0.0 in shard c/0/0")) << "byte " << at;
    flip();
  }
  ASSERT_OK(read(found));
}

TEST_F(DirectEngine, a_file_that_ends_early_is_corrupt) {
  make_array(true);
  // The index stands at the end: where it is cut nothing is read at all.
  std::filesystem::resize_file(folder_ / "a.zarr/c/1/0", std::filesystem::file_size(folder_ / "a.zarr/c/1/0") - 1);
  std::vector<std::byte> found;
  const Status status = read(found);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().kind(), ErrorKind::corrupt) << status.error().message();
}

TEST_F(DirectEngine, a_library_that_is_not_native_is_refused_with_the_reason) {
  ::setenv("CINGULUM_TEST_CUFILE", "closed", 1);
  EXPECT_TRUE(fails_with(library(), ErrorKind::unavailable, "opening its driver: the module nvidia-fs is not loaded"));
}

TEST_F(DirectEngine, an_old_library_is_refused_with_its_version) {
  ::setenv("CINGULUM_TEST_CUFILE", "old", 1);
  EXPECT_TRUE(fails_with(library(), ErrorKind::unavailable, "cuFile 1.13 cannot be told"));
}

TEST_F(DirectEngine, an_absent_or_wrong_library_is_refused_with_its_name) {
  EXPECT_TRUE(fails_with(CufileLibrary::open({folder_ / "none.so", false}), ErrorKind::unavailable, "none.so"));
  std::ofstream(folder_ / "empty.so").close();
  EXPECT_TRUE(fails_with(CufileLibrary::open({folder_ / "empty.so", false}), ErrorKind::unavailable, "empty.so"));
}

TEST_F(DirectEngine, files_that_are_not_supported_are_read_by_the_host) {
  make_array(true);
  ::setenv("CINGULUM_TEST_CUFILE", "unsupported", 1);
  std::vector<std::byte> found;
  ASSERT_OK(read(found));
  EXPECT_TRUE(found == elements_);
  EXPECT_EQ(counters_.retried_chunks, 20u);
}

TEST_F(DirectEngine, an_engine_that_was_named_refuses_where_it_is_not_possible) {
  make_array(true);
  ASSERT_OK_AND_ASSIGN(const auto reader, DeviceReader::create(*device_));
  ASSERT_OK_AND_ASSIGN(const auto queue, device_->create_queue());
  ASSERT_OK_AND_ASSIGN(const auto buffer, device_->allocate(elements_.size()));
  DeviceReadOptions options;
  for (const Engine engine : {Engine::direct, Engine::nvcomp}) {
    options.engine = engine;
    EXPECT_TRUE(fails_with(reader->read(*array_, whole(array_->metadata()), *queue, {*buffer}, options),
                           ErrorKind::unavailable, fmt::format("engine {}: device cpu", engine_name(engine))));
  }
  options.engine = Engine::automatic;
  ASSERT_OK_AND_ASSIGN(const DeviceReadReport report,
                       reader->read(*array_, whole(array_->metadata()), *queue, {*buffer}, options));
  EXPECT_EQ(report.engine, Engine::host);
}

TEST_F(DirectEngine, explanations_name_every_engine_and_the_facts_of_the_machine) {
  make_array(true);
  const std::vector<EngineAnswer> answers = explain_engines(*array_, *device_, {});
  ASSERT_EQ(answers.size(), 3u);
  EXPECT_EQ(answers[0].engine, Engine::host);
  EXPECT_TRUE(answers[0].possible);
  EXPECT_EQ(answers[1].engine, Engine::direct);
  EXPECT_FALSE(answers[1].possible);
  EXPECT_EQ(answers[2].engine, Engine::nvcomp);
  EXPECT_FALSE(answers[2].possible);
  std::string facts;
  for (const std::string& fact : answers[1].details) facts += fact + "\n";
  for (const char* const subject :
       {"codec: ", "kernel: ", "module nvidia-fs: ", "IOMMU: ", "container: ", "cufile.json: ", "file system: "}) {
    EXPECT_NE(facts.find(subject), std::string::npos) << subject << " in\n" << facts;
  }
}

TEST_F(DirectEngine, the_facts_of_a_machine_are_read_from_its_files) {
  const std::filesystem::path root = folder_ / "root";
  std::filesystem::create_directories(root / "proc/self");
  std::filesystem::create_directories(root / "sys/module/nvidia_fs");
  std::filesystem::create_directories(root / "sys/kernel/iommu_groups/0");
  std::filesystem::create_directories(root / "run/udev");
  std::ofstream(root / "sys/module/nvidia_fs/version") << "2.28.4\n";
  std::ofstream(root / "proc/cmdline") << "quiet iommu=pt\n";
  std::ofstream(root / "proc/self/mounts") << "/dev/sda / xfs rw 0 0\n/dev/nvme0n1 /dev/shm ext4 rw,data=ordered 0 0\n";
  std::string facts;
  for (const std::string& fact : direct_conditions("/dev/shm/x", root)) facts += fact + "\n";
  for (const char* const expected : {"nvidia-fs: loaded, version 2.28.4", "passing through (iommu=pt)",
                                     "container: none seen", "file system: ext4 at /dev/shm on /dev/nvme0n1"}) {
    EXPECT_NE(facts.find(expected), std::string::npos) << expected << " in\n" << facts;
  }
}

TEST_F(DirectEngine, rates_are_kept_for_the_same_coding_and_threads_alone) {
  make_array(true);
  EngineSettings settings;
  settings.cache_dir = folder_ / "cache";
  settings.cufile_library = folder_ / "none.so";
  EXPECT_FALSE(kept_rates(*array_, *device_, settings, 4));
  EngineRates rates;
  rates.host = 12.5;
  rates.nvcomp = 20;
  ASSERT_OK(keep_rates(*array_, *device_, settings, 4, rates));
  const auto kept = kept_rates(*array_, *device_, settings, 4);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->host, 12.5);
  EXPECT_EQ(kept->nvcomp, 20);
  EXPECT_FALSE(kept->direct);
  EXPECT_FALSE(kept_rates(*array_, *device_, settings, 5));
}

TEST(NvcompEngine, chains_whose_checksums_it_would_leave_out_are_refused) {
  const auto chain_of = [](const char* codec, bool checksum, int format) {
    NewArray wanted;
    wanted.format = format;
    wanted.shape = {8};
    wanted.type = element_type_of<float>();
    wanted.codec = parse_codec_choice(codec).value();
    wanted.codec->checksum = checksum;
    return describe_new_array(wanted).value().leaf_coding().chain;
  };
  EXPECT_FALSE(reason_against_nvcomp(chain_of("zstd", true, 3)));
  EXPECT_FALSE(reason_against_nvcomp(chain_of("zstd", false, 3)));
  EXPECT_FALSE(reason_against_nvcomp(chain_of("gzip", true, 3)));
  EXPECT_NE(reason_against_nvcomp(chain_of("gzip", false, 3)).value_or("").find("would not be verified"),
            std::string::npos);
  EXPECT_NE(reason_against_nvcomp(chain_of("zstd", true, 2)).value_or("").find("would not be verified"),
            std::string::npos);
  EXPECT_NE(reason_against_nvcomp(chain_of("blosc-lz4", true, 3)).value_or("").find("blosc"), std::string::npos);
  EXPECT_EQ(reason_against_nvcomp({}), "chunks are not compressed");
}

}  // namespace direct_engine_tests
}  // namespace cingulum::zarr
