#include "device/kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "support/each_device.hpp"

namespace cingulum {
namespace {

using testing::fails_with;

void scale_and_shift(const BlockContext& block) {
  const auto input = block.buffer<const float>(0);
  const auto output = block.buffer<float>(1);
  const float scale = block.scalar<float>(2);
  const auto shift = block.scalar<std::int32_t>(3);
  const auto count = block.scalar<std::uint32_t>(4);
  for (std::uint64_t i = block.first_thread(); i < block.first_thread() + block.shape().block[0]; ++i) {
    if (i < count) output[i] = scale * input[i] + static_cast<float>(shift);
  }
}

constexpr const char* cuda_text = R"(
extern "C" __global__ void scale_and_shift(const float* input, float* output, float scale, int shift, unsigned count) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) output[i] = scale * input[i] + shift;
}
)";

constexpr const char* wgsl_text = R"(
struct Scalars { scale: f32, shift: i32, count: u32 }
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> scalars: Scalars;
@compute @workgroup_size(64)
fn scale_and_shift(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x < scalars.count) { output[id.x] = scalars.scale * input[id.x] + f32(scalars.shift); }
}
)";

KernelSource source_for(Backend backend) {
  KernelSource source;
  source.name = "scale_and_shift";
  source.parameters = {{"input", ParameterKind::buffer_in},
                       {"output", ParameterKind::buffer_out},
                       {"scale", ParameterKind::f32},
                       {"shift", ParameterKind::i32},
                       {"count", ParameterKind::u32}};
  switch (backend) {
    case Backend::cuda:
      source.language = KernelLanguage::cuda_cpp;
      source.text = cuda_text;
      break;
    case Backend::webgpu:
      source.language = KernelLanguage::wgsl;
      source.text = wgsl_text;
      break;
    case Backend::cpu: source.native = scale_and_shift;
  }
  return source;
}

class Kernels : public testing::EachDevice {
 protected:
  void SetUp() override {
    EachDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    source_ = source_for(device().description().backend);
    auto kernel = device().compile(source_);
    ASSERT_TRUE(kernel) << testing::message_of(kernel);
    kernel_ = std::move(*kernel);
    for (auto* buffer : {&input_, &output_}) {
      auto allocated = device().allocate(count * sizeof(float));
      ASSERT_TRUE(allocated);
      *buffer = std::move(*allocated);
      ASSERT_OK(queue().fill(**buffer, 0, (*buffer)->bytes(), std::byte{0}));
    }
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.0f);
    ASSERT_OK(upload(queue(), *input_, std::span<const float>(values)));
  }
  [[nodiscard]] std::vector<KernelArgument> arguments(float scale, std::int32_t shift) const {
    return {argument(*input_), argument(*output_), scale, shift, count};
  }
  [[nodiscard]] std::vector<float> output() {
    std::vector<float> values(count);
    EXPECT_TRUE(download(queue(), std::span(values), *output_));
    EXPECT_TRUE(queue().synchronise());
    return values;
  }

  static constexpr std::uint32_t count = 1000;
  static constexpr LaunchShape shape{{16, 1, 1}, {64, 1, 1}, 0};
  KernelSource source_;
  std::shared_ptr<Kernel> kernel_;
  std::unique_ptr<Buffer> input_;
  std::unique_ptr<Buffer> output_;
};
CGL_FOR_EACH_DEVICE(Kernels);

// Kernels that are compiled at run time; those of the CPU are compiled with the program.
class CompiledKernels : public Kernels {};
CGL_FOR_DEVICES(CompiledKernels, "cuda", "webgpu");

TEST_P(Kernels, compute_with_buffers_and_scalars) {
  ASSERT_OK(queue().launch(*kernel_, shape, arguments(0.5f, -3)));
  const auto values = output();
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(values[i], 0.5f * static_cast<float>(i) - 3.0f) << i;
}

TEST_P(Kernels, launches_one_after_the_other_each_see_their_own_scalars) {
  for (int round = 0; round < 20; ++round) {
    ASSERT_OK(queue().launch(*kernel_, shape, arguments(static_cast<float>(round), round)));
    if (round % 5 == 4) {
      const auto values = output();
      EXPECT_EQ(values[10], static_cast<float>(10 * round + round));
    }
  }
}

TEST_P(Kernels, a_buffer_argument_may_start_inside_its_buffer) {
  auto shifted = arguments(1.0f, 0);
  shifted[0] = argument(*input_, 256);
  shifted[4] = count - 64;
  ASSERT_OK(queue().launch(*kernel_, shape, shifted));
  const auto values = output();
  EXPECT_EQ(values[0], 64.0f);
  EXPECT_EQ(values[count - 65], 999.0f);
  EXPECT_EQ(values[count - 64], 0.0f) << "behind the end of what was asked for";
  shifted[0] = argument(*input_, 4);
  EXPECT_TRUE(fails_with(queue().launch(*kernel_, shape, shifted), ErrorKind::invalid_argument, "multiple of 256"));
  shifted[0] = argument(*input_, 4096);
  EXPECT_TRUE(fails_with(queue().launch(*kernel_, shape, shifted), ErrorKind::invalid_argument, "inside the buffer"));
}

TEST_P(Kernels, write_into_mapped_host_memory_where_there_is_such) {
  if (!device().capabilities().mapped_host_memory) {
    ASSERT_OK_AND_ASSIGN(const auto pageable, device().allocate_host(4096, HostMemoryKind::pageable));
    EXPECT_TRUE(fails_with(device().buffer_over(*pageable), ErrorKind::invalid_argument, "not mapped"));
    return;
  }
  ASSERT_OK_AND_ASSIGN(const auto memory, device().allocate_host(count * sizeof(float), HostMemoryKind::mapped));
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().buffer_over(*memory));
  auto into_host = arguments(2.0f, 1);
  into_host[1] = argument(*buffer);
  ASSERT_OK(queue().launch(*kernel_, shape, into_host));
  ASSERT_OK(queue().synchronise());
  const auto* const values = reinterpret_cast<const float*>(memory->bytes().data());
  for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(values[i], 2.0f * static_cast<float>(i) + 1.0f);
}

TEST_P(Kernels, wrong_arguments_are_refused_by_name_before_anything_runs) {
  auto wrong = arguments(1.0f, 0);
  wrong.pop_back();
  EXPECT_TRUE(fails_with(queue().launch(*kernel_, shape, wrong), ErrorKind::invalid_argument,
                         "4 arguments were given, it takes 5"));
  wrong = arguments(1.0f, 0);
  wrong[2] = 1.0;
  EXPECT_TRUE(fails_with(queue().launch(*kernel_, shape, wrong), ErrorKind::invalid_argument,
                         "'scale' is a f64, the kernel takes f32"));
  wrong[2] = argument(*input_);
  EXPECT_TRUE(fails_with(queue().launch(*kernel_, shape, wrong), ErrorKind::invalid_argument, "'scale' is a buffer"));
  wrong = arguments(1.0f, 0);
  wrong[1] = 3u;
  EXPECT_TRUE(fails_with(queue().launch(*kernel_, shape, wrong), ErrorKind::invalid_argument, "'output' is a u32"));
  wrong[1] = BufferArgument{};
  EXPECT_TRUE(fails_with(queue().launch(*kernel_, shape, wrong), ErrorKind::invalid_argument, "null buffer"));
}

TEST_P(Kernels, buffers_of_another_device_are_refused) {
  const auto all = testing::registry().devices();
  const auto other = std::find_if(all.begin(), all.end(), [&](const Device* one) { return one != &device(); });
  if (other == all.end()) GTEST_SKIP() << "there is no second device";
  ASSERT_OK_AND_ASSIGN(const auto elsewhere, (*other)->allocate(count * sizeof(float)));
  auto wrong = arguments(1.0f, 0);
  wrong[0] = argument(*elsewhere);
  EXPECT_TRUE(
      fails_with(queue().launch(*kernel_, shape, wrong), ErrorKind::invalid_argument, "lies on " + (*other)->id()));
}

TEST_P(Kernels, shapes_beyond_the_limits_are_refused_with_the_limit) {
  LaunchShape wrong = shape;
  wrong.block = {1u << 20, 1, 1};
  EXPECT_TRUE(fails_with(queue().launch(*kernel_, wrong, arguments(1, 0)), ErrorKind::invalid_argument, "threads"));
  wrong = shape;
  wrong.grid = {16, 0, 1};
  EXPECT_TRUE(
      fails_with(queue().launch(*kernel_, wrong, arguments(1, 0)), ErrorKind::invalid_argument, "at least one"));
  wrong = shape;
  wrong.shared_bytes = 1u << 30;
  EXPECT_TRUE(
      fails_with(queue().launch(*kernel_, wrong, arguments(1, 0)), ErrorKind::invalid_argument, "shared memory"));
  if (is(Backend::webgpu)) {
    wrong = shape;
    wrong.block = {32, 1, 1};
    EXPECT_TRUE(fails_with(queue().launch(*kernel_, wrong, arguments(1, 0)), ErrorKind::invalid_argument,
                           "@workgroup_size(64, 1, 1)"));
  }
}

TEST_P(Kernels, sources_of_the_wrong_language_or_with_repeated_parameters_are_refused) {
  KernelSource wrong = source_;
  wrong.language = source_.language == KernelLanguage::native ? KernelLanguage::wgsl : KernelLanguage::native;
  EXPECT_TRUE(fails_with(device().compile(wrong), ErrorKind::invalid_argument, "takes"));
  wrong = source_;
  wrong.parameters[1].name = "input";
  EXPECT_TRUE(fails_with(device().compile(wrong), ErrorKind::invalid_argument, "two parameters are named 'input'"));
  wrong = source_;
  wrong.name.clear();
  EXPECT_TRUE(fails_with(device().compile(wrong), ErrorKind::invalid_argument, "needs a name"));
  wrong = source_;
  wrong.text.clear();
  wrong.native = nullptr;
  EXPECT_TRUE(fails_with(device().compile(wrong), ErrorKind::invalid_argument, "there is no"));
}

TEST_P(CompiledKernels, a_text_that_does_not_compile_fails_with_the_compilers_words_and_the_users_line) {
  KernelSource broken = source_;
  broken.text += "\n\nthis is not code\n";
  const auto result = device().compile(broken);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().kind(), ErrorKind::compilation) << result.error().message();
  // nvrtc writes "name.cu(10)", wgpu-native "wgsl:10:".
  const auto line = std::count(broken.text.begin(), broken.text.end(), '\n');
  const std::string place = is(Backend::cuda) ? fmt::format("({})", line) : fmt::format(":{}:", line);
  EXPECT_NE(result.error().message().find(place), std::string::npos) << place << " in: " << result.error().message();
  // The device is as good as before.
  ASSERT_OK(queue().launch(*kernel_, shape, arguments(2.0f, 1)));
  EXPECT_EQ(output()[3], 7.0f);
}

TEST_P(CompiledKernels, parameters_that_differ_from_the_compiled_code_are_refused) {
  KernelSource wrong = source_;
  wrong.parameters.erase(wrong.parameters.begin());
  EXPECT_TRUE(fails_with(device().compile(wrong),
                         is(Backend::cuda) ? ErrorKind::invalid_argument : ErrorKind::compilation, "scale_and_shift"));
}

void write_block_index(const BlockContext& block) {
  const auto output = block.buffer<std::uint32_t>(0);
  const auto& [x, y, z] = block.block_index();
  const auto& grid = block.shape().grid;
  const auto scratch = block.scratch();
  EXPECT_EQ(scratch.size(), 64u);
  output[(z * grid[1] + y) * grid[0] + x] += x + 100 * y + 10000 * z;
}

void throw_something(const BlockContext& block) {
  static_cast<void>(block.scalar<double>(0));
}

TEST(CpuKernels, that_throw_are_errors_and_grids_beyond_counting_are_refused) {
  ASSERT_OK_AND_ASSIGN(Device * cpu, testing::registry().select_one("cpu"));
  KernelSource source;
  source.name = "throw_something";
  source.native = throw_something;
  source.parameters = {{"number", ParameterKind::f32}};
  ASSERT_OK_AND_ASSIGN(const auto kernel, cpu->compile(source));
  ASSERT_OK_AND_ASSIGN(const auto queue, cpu->create_queue());
  const std::vector<KernelArgument> arguments = {1.0f};
  EXPECT_TRUE(
      fails_with(queue->launch(*kernel, {{8, 1, 1}, {1, 1, 1}, 0}, arguments), ErrorKind::device, "throw_something"));
  const LaunchShape huge{{1u << 31, 1u << 31, 4}, {1, 1, 1}, 0};
  EXPECT_TRUE(fails_with(queue->launch(*kernel, huge, arguments), ErrorKind::invalid_argument, "counted"));
}

TEST(CpuKernels, visit_every_block_of_a_three_dimensional_grid_once) {
  ASSERT_OK_AND_ASSIGN(Device * cpu, testing::registry().select_one("cpu"));
  KernelSource source;
  source.name = "write_block_index";
  source.native = write_block_index;
  source.parameters = {{"output", ParameterKind::buffer_inout}};
  ASSERT_OK_AND_ASSIGN(const auto kernel, cpu->compile(source));
  ASSERT_OK_AND_ASSIGN(const auto queue, cpu->create_queue());
  const LaunchShape shape{{5, 7, 3}, {1, 1, 1}, 64};
  ASSERT_OK_AND_ASSIGN(const auto buffer, cpu->allocate(5 * 7 * 3 * 4));
  ASSERT_OK(queue->fill(*buffer, 0, buffer->bytes(), std::byte{0}));
  const std::vector<KernelArgument> arguments = {argument(*buffer)};
  ASSERT_OK(queue->launch(*kernel, shape, arguments));
  std::vector<std::uint32_t> values(5 * 7 * 3);
  ASSERT_OK(download(*queue, std::span(values), *buffer));
  for (std::uint32_t z = 0; z < 3; ++z) {
    for (std::uint32_t y = 0; y < 7; ++y) {
      for (std::uint32_t x = 0; x < 5; ++x) EXPECT_EQ(values[(z * 7 + y) * 5 + x], x + 100 * y + 10000 * z);
    }
  }
}

}  // namespace
}  // namespace cingulum
