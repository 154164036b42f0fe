// What only CUDA has: the kernel cache in use, memory that runs short on the card itself, sensors.
#include "device/cuda/cuda_device.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "device/selfcheck.hpp"
#include "support/card_ballast.hpp"
#include "support/each_device.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

using testing::fails_with;

class Cuda : public testing::EachDevice {};
CGL_FOR_DEVICES(Cuda, "cuda");

KernelSource source() {
  KernelSource made;
  made.name = "twice";
  made.language = KernelLanguage::cuda_cpp;
  made.text = "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] *= 2; }";
  made.parameters = {{"x", ParameterKind::buffer_inout}};
  return made;
}

float run_twice(Device& device, Kernel& kernel) {
  std::vector<float> values(32, 1.5f);
  const auto queue = device.create_queue();
  const auto buffer = device.allocate(values.size() * sizeof(float));
  EXPECT_TRUE(upload(**queue, **buffer, std::span<const float>(values)));
  const std::vector<KernelArgument> arguments = {argument(**buffer)};
  EXPECT_TRUE((*queue)->launch(kernel, {{1, 1, 1}, {32, 1, 1}, 0}, arguments));
  EXPECT_TRUE(download(**queue, std::span(values), **buffer));
  EXPECT_TRUE((*queue)->synchronise());
  return values[31];
}

TEST_P(Cuda, compiles_once_and_takes_the_code_from_the_cache_until_it_is_damaged) {
  const TemporaryFolder folder;
  ProbeOptions options;
  options.kernel_cache_dir = folder.path();
  options.kernel_cache_limit_bytes = 1 << 20;
  ASSERT_OK_AND_ASSIGN(const auto fresh, CudaDevice::create(0, 13000, options));
  for (const bool expected : {false, true, true}) {
    ASSERT_OK_AND_ASSIGN(const auto kernel, fresh->compile(source()));
    EXPECT_EQ(kernel->report().from_cache, expected);
    EXPECT_EQ(run_twice(*fresh, *kernel), 3.0f);
  }
  KernelSource other = source();
  other.options = {"--device-debug"};
  ASSERT_OK_AND_ASSIGN(const auto debug, fresh->compile(other));
  EXPECT_FALSE(debug->report().from_cache) << "options are part of the key";
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(300);
    stream.put('!');
  }
  ASSERT_OK_AND_ASSIGN(const auto again, fresh->compile(source()));
  EXPECT_FALSE(again->report().from_cache);
  EXPECT_EQ(run_twice(*fresh, *again), 3.0f);
}

TEST_P(Cuda, when_the_card_is_full_requests_are_refused_with_numbers_and_smaller_work_goes_on) {
  for (int round = 0; round < 20; ++round) {
    const auto ballast = testing::take_all_but(device(), std::uint64_t{64} << 20);
    const auto refused = device().allocate(std::uint64_t{1} << 30);
    EXPECT_TRUE(fails_with(refused, ErrorKind::out_of_memory, "1.0 GiB needed"));
    EXPECT_TRUE(fails_with(refused, ErrorKind::out_of_memory, "use device cpu"));
    ASSERT_OK_AND_ASSIGN(const SelfcheckResult small, run_selfcheck(device(), 10000));
    EXPECT_EQ(small.equal, small.items);
  }
}

TEST_P(Cuda, tells_memory_load_temperature_and_power_through_nvml) {
  const DeviceReading reading = device().read_sensors();
  EXPECT_TRUE(reading.memory_total_bytes.has_value()) << reading.note;
  EXPECT_TRUE(reading.utilisation.has_value());
  EXPECT_TRUE(reading.temperature_celsius.has_value());
  EXPECT_TRUE(reading.power_watts.has_value());
}

TEST_P(Cuda, says_how_its_kernels_were_compiled) {
  const std::string& code = device().description().kernel_code;
  EXPECT_TRUE(code.ends_with("binary") || code.starts_with("compiled by the driver")) << code;
}

}  // namespace
}  // namespace cingulum
