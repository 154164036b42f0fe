// Every function that numerics shares between backends, on every device: the words of the host, bit for bit. For each
// function 100 000 random arguments and all edge arguments; CINGULUM_TEST_PARITY_COUNT sets another number.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "device/shader_library.hpp"
#include "numerics/classify.hpp"
#include "parity/backend_launch.hpp"
#include "parity/lane_cases.hpp"
#include "parity/scalar_cases.hpp"
#include "support/each_device.hpp"

namespace cingulum::parity {
namespace {

constexpr std::uint64_t seed = 20261115;
// Arguments of one launch; larger sets go in pieces, so that they fit the smallest binding (128 MiB on lavapipe).
constexpr std::size_t piece_bytes = std::size_t{48} << 20;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t default_count = 5000;  // sanitizers look at code, not at numbers, and are slow
#else
constexpr std::size_t default_count = 100000;
#endif

std::size_t random_count() {
  const char* const text = std::getenv("CINGULUM_TEST_PARITY_COUNT");
  return text == nullptr ? default_count : std::strtoull(text, nullptr, 10);
}

bool same(std::uint32_t a, std::uint32_t b, bool are_floats) {
  const auto nan = [](std::uint32_t bits) { return numerics::is_nan(numerics::bits_float(bits)); };
  return a == b || (are_floats && nan(a) && nan(b));
}

// What a device is asked to run: on CUDA a kernel compiled ahead, by its index; on WebGPU a text.
struct Job {
  std::string name;
  int in_words;
  int out_words;
  int (*launch_on_cuda)(int, const std::uint32_t*, std::uint32_t*, std::uint32_t, void*);
  int case_index;
  std::string wgsl;
};

class Parity : public testing::EachDevice {
 protected:
  // The outputs of the device for all items of `input`.
  template <class MakeShape>
  std::vector<std::uint32_t> run(const Job& job, const std::vector<std::uint32_t>& input, MakeShape&& shape_of) {
    const std::size_t items = input.size() / static_cast<std::size_t>(job.in_words);
    std::vector<std::uint32_t> output(items * static_cast<std::size_t>(job.out_words), 0xdeadbeefu);
    const std::size_t item_bytes = 4u * static_cast<std::size_t>(std::max(job.in_words, job.out_words));
    const std::size_t piece = std::min(items, std::max<std::size_t>(1, piece_bytes / item_bytes));
    run_pieces(job, input, output, piece, shape_of);
    return output;
  }

 private:
  template <class MakeShape>
  void run_pieces(const Job& job, const std::vector<std::uint32_t>& input, std::vector<std::uint32_t>& output,
                  std::size_t piece, MakeShape&& shape_of) {
    const auto in_words = static_cast<std::size_t>(job.in_words);
    const auto out_words = static_cast<std::size_t>(job.out_words);
    ASSERT_OK_AND_ASSIGN(const auto input_buffer, device().allocate(piece * in_words * 4));
    ASSERT_OK_AND_ASSIGN(const auto output_buffer, device().allocate(piece * out_words * 4));
    std::unique_ptr<Kernel> kernel;
    if (is(Backend::webgpu)) {
      KernelSource source;
      source.name = "main";
      source.language = KernelLanguage::wgsl;
      source.text = job.wgsl;
      source.parameters = {{"input", ParameterKind::buffer_in},
                           {"output", ParameterKind::buffer_out},
                           {"count", ParameterKind::u32},
                           {"negative_zero", ParameterKind::f32}};
      ASSERT_OK_AND_ASSIGN(kernel, device().compile(source));
    }
    const std::size_t items = input.size() / in_words;
    for (std::size_t first = 0; first < items; first += piece) {
      const auto count = static_cast<std::uint32_t>(std::min(piece, items - first));
      ASSERT_OK(upload(queue(), *input_buffer, std::span(input).subspan(first * in_words, count * in_words)));
      ASSERT_OK(queue().fill(*output_buffer, 0, output_buffer->bytes(), std::byte{0xee}));
      if (is(Backend::webgpu)) {
        const std::vector<KernelArgument> arguments = {argument(*input_buffer), argument(*output_buffer), count, -0.0f};
        ASSERT_OK(queue().launch(*kernel, shape_of(count), arguments));
      } else {
        ASSERT_EQ(job.launch_on_cuda(job.case_index, static_cast<const std::uint32_t*>(input_buffer->device_pointer()),
                                     static_cast<std::uint32_t*>(output_buffer->device_pointer()), count,
                                     native_stream_of(queue())),
                  0);
      }
      ASSERT_OK(download(queue(), std::span(output).subspan(first * out_words, count * out_words), *output_buffer));
      ASSERT_OK(queue().synchronise());
    }
  }
};

// Compares word for word with the host; reports how many items differ and the first of them.
template <class Run>
void expect_equal(const Job& job, const std::vector<std::uint32_t>& input, const std::vector<std::uint32_t>& output,
                  bool are_floats, Run&& run_on_host) {
  const auto in_words = static_cast<std::size_t>(job.in_words);
  const auto out_words = static_cast<std::size_t>(job.out_words);
  const std::size_t items = input.size() / in_words;
  ASSERT_GE(items, random_count());
  std::size_t different = 0;
  std::string first;
  std::vector<std::uint32_t> expected(out_words);
  for (std::size_t i = 0; i < items; ++i) {
    run_on_host(input.data() + i * in_words, expected.data());
    const std::uint32_t* const actual = output.data() + i * out_words;
    const bool equal = std::equal(expected.begin(), expected.end(), actual,
                                  [&](std::uint32_t a, std::uint32_t b) { return same(a, b, are_floats); });
    if (equal) continue;
    if (different++ > 0) continue;
    first = fmt::format("item {}: arguments", i);
    for (std::size_t w = 0; w < std::min<std::size_t>(in_words, 16); ++w)
      first += fmt::format(" {:#010x}", input[i * in_words + w]);
    first += "; host";
    for (std::size_t w = 0; w < std::min<std::size_t>(out_words, 8); ++w)
      first += fmt::format(" {:#010x}", expected[w]);
    first += "; device";
    for (std::size_t w = 0; w < std::min<std::size_t>(out_words, 8); ++w) first += fmt::format(" {:#010x}", actual[w]);
  }
  EXPECT_EQ(different, 0u) << job.name << ": of " << items << " items; first " << first;
}

LaunchShape scalar_shape(std::uint32_t count) {
  return {{(count + 63) / 64, 1, 1}, {64, 1, 1}, 0};
}

LaunchShape lane_shape(std::uint32_t count) {
  constexpr std::uint32_t row = 65535;
  return {{std::min(count, row), (count + row - 1) / row, 1}, {32, 1, 1}, 0};
}

class ScalarParity : public Parity {};
CGL_FOR_DEVICES(ScalarParity, "cuda", "webgpu");

TEST_P(ScalarParity, every_function_has_the_bits_of_the_host) {
  int compared = 0;
  for (int index = 0; index < scalar_case_count; ++index) {
    const ScalarCaseEntry& entry = scalar_cases()[static_cast<std::size_t>(index)];
    SCOPED_TRACE(entry.name);
    // float64 has no WGSL.
    if (is(Backend::webgpu) && !entry.has_wgsl) continue;
    Job job{entry.name, entry.in_words, entry.out_words, launch_scalar_case, index, {}};
    if (is(Backend::webgpu)) job.wgsl = numerics_wgsl() + std::string(scalar_cases_wgsl()) + wgsl_entry(entry);
    const auto input = entry.make_arguments(random_count(), seed, !is(Backend::webgpu));
    const auto output = run(job, input, scalar_shape);
    if (HasFatalFailure()) return;
    expect_equal(job, input, output, entry.float_outputs, entry.run);
    ++compared;
  }
  EXPECT_GT(compared, is(Backend::webgpu) ? scalar_case_count / 2 : scalar_case_count - 1);
}

class LaneParity : public Parity {
 protected:
  void run_all(LaneForm form) {
    for (int index = 0; index < lane_case_count; ++index) {
      const LaneCaseEntry& entry = lane_cases()[static_cast<std::size_t>(index)];
      SCOPED_TRACE(entry.name);
      Job job{entry.name, entry.in_words, entry.out_words, launch_lane_case, index, {}};
      if (is(Backend::webgpu)) {
        const WgslLanes lanes = form == LaneForm::workgroup ? WgslLanes::workgroup : WgslLanes::subgroup;
        job.wgsl = numerics_wgsl(form) + std::string(lane_cases_wgsl()) + wgsl_entry(entry, lanes);
      }
      const auto input = entry.make_arguments(random_count(), seed);
      const auto output = run(job, input, lane_shape);
      if (HasFatalFailure()) return;
      expect_equal(job, input, output, true, entry.run_portable);
    }
  }
};
CGL_FOR_DEVICES(LaneParity, "cuda", "webgpu");

TEST_P(LaneParity, sums_maxima_and_choices_of_32_lanes_have_the_bits_of_the_host) {
  run_all(LaneForm::workgroup);
}

class SubgroupParity : public LaneParity {};
CGL_FOR_DEVICES(SubgroupParity, "webgpu");

TEST_P(SubgroupParity, subgroup_operations_have_the_bits_of_the_host) {
  const DeviceCapabilities& can = device().capabilities();
  if (!can.subgroups || can.subgroup_min != 32 || can.subgroup_max != 32) {
    GTEST_SKIP() << "subgroups of " << can.subgroup_min << " to " << can.subgroup_max << " here, 32 are needed";
  }
  run_all(LaneForm::subgroup);
}

TEST(HostParity, avx2_has_the_bits_of_the_portable_path) {
#if defined(__x86_64__)
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "this CPU has no AVX2";
  for (const LaneCaseEntry& entry : lane_cases()) {
    SCOPED_TRACE(entry.name);
    ASSERT_NE(entry.run_avx2, nullptr);
    const auto input = entry.make_arguments(random_count(), seed + 1);
    const Job job{entry.name, entry.in_words, entry.out_words, nullptr, 0, {}};
    const auto in_words = static_cast<std::size_t>(entry.in_words);
    const auto out_words = static_cast<std::size_t>(entry.out_words);
    std::vector<std::uint32_t> output(input.size() / in_words * out_words);
    for (std::size_t i = 0; i < input.size() / in_words; ++i) {
      entry.run_avx2(input.data() + i * in_words, output.data() + i * out_words);
    }
    expect_equal(job, input, output, true, entry.run_portable);
  }
#else
  GTEST_SKIP() << "not an x86-64 CPU";
#endif
}

}  // namespace
}  // namespace cingulum::parity
