// What devices do with subnormal numbers. The bit contract keeps them away from kernels because drivers differ; this
// test says how: CUDA with the contract's flags keeps them, a WebGPU driver keeps them or makes zeros of them, each
// operation in its own way. docs/numerics.md has the table of the drivers that were seen; the test prints the row of
// this one.
#include <gtest/gtest.h>

#include <iostream>
#include <vector>

#include "numerics/classify.hpp"
#include "support/each_device.hpp"

namespace cingulum::parity {
namespace {

using numerics::bits_float;
using numerics::float_bits;

// For each pair of arguments the kernels write these results, in this order.
constexpr const char* operations[] = {"stored as it is", "x + 0", "x * 1", "a * b", "a / b", "fma(a, b, -0)"};
constexpr std::size_t operation_count = std::size(operations);

constexpr const char* cuda_text = R"(
extern "C" __global__ void subnormals(const float* in, float* out, unsigned count, float one, float zero) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  float x = in[3 * i], a = in[3 * i + 1], b = in[3 * i + 2];
  float* result = out + 6 * i;
  result[0] = x; result[1] = x + zero; result[2] = x * one; result[3] = a * b; result[4] = a / (one / b);
  result[5] = fmaf(a, b, -zero);
}
)";

constexpr const char* wgsl_text = R"(
struct Scalars { count: u32, one: f32, zero: f32 }
@group(0) @binding(0) var<storage, read> input: array<f32>;
@group(0) @binding(1) var<storage, read_write> output: array<f32>;
@group(0) @binding(2) var<uniform> scalars: Scalars;
@compute @workgroup_size(64)
fn subnormals(@builtin(global_invocation_id) id: vec3<u32>) {
  let i = id.x;
  if (i >= scalars.count) { return; }
  let x = input[3u * i];
  let a = input[3u * i + 1u];
  let b = input[3u * i + 2u];
  output[6u * i] = x;
  output[6u * i + 1u] = x + scalars.zero;
  output[6u * i + 2u] = x * scalars.one;
  output[6u * i + 3u] = a * b;
  output[6u * i + 4u] = a / (scalars.one / b);
  output[6u * i + 5u] = fma(a, b, -scalars.zero);
}
)";

class Subnormals : public testing::EachDevice {};
CGL_FOR_DEVICES(Subnormals, "cuda", "webgpu");

TEST_P(Subnormals, are_kept_or_become_zeros_and_never_anything_else) {
  // x is subnormal; a and b are normal powers of two whose product is x exactly, so that every result should be x.
  std::vector<float> input;
  std::vector<float> expected;
  for (int exponent = 127; exponent <= 149; ++exponent) {
    for (const float sign : {1.0f, -1.0f}) {
      const float x = sign * bits_float(std::uint32_t{1} << (149 - exponent));
      if (!numerics::is_subnormal(x)) continue;
      const float a = sign * 0x1p-100f;
      const float b = bits_float(static_cast<std::uint32_t>(127 - (exponent - 100)) << 23);
      input.insert(input.end(), {x, a, b});
      expected.push_back(x);
    }
  }
  const auto count = static_cast<std::uint32_t>(expected.size());
  KernelSource source;
  source.name = "subnormals";
  source.language = is(Backend::cuda) ? KernelLanguage::cuda_cpp : KernelLanguage::wgsl;
  source.text = is(Backend::cuda) ? cuda_text : wgsl_text;
  source.contract_arithmetic = true;
  source.parameters = {{"input", ParameterKind::buffer_in},
                       {"output", ParameterKind::buffer_out},
                       {"count", ParameterKind::u32},
                       {"one", ParameterKind::f32},
                       {"zero", ParameterKind::f32}};
  ASSERT_OK_AND_ASSIGN(const auto kernel, device().compile(source));
  ASSERT_OK_AND_ASSIGN(const auto in, device().allocate(input.size() * 4));
  ASSERT_OK_AND_ASSIGN(const auto out, device().allocate(count * operation_count * 4));
  ASSERT_OK(upload(queue(), *in, std::span<const float>(input)));
  const std::vector<KernelArgument> arguments = {argument(*in), argument(*out), count, 1.0f, 0.0f};
  ASSERT_OK(queue().launch(*kernel, {{(count + 63) / 64, 1, 1}, {64, 1, 1}, 0}, arguments));
  std::vector<float> output(count * operation_count);
  ASSERT_OK(download(queue(), std::span(output), *out));
  ASSERT_OK(queue().synchronise());

  std::string row = device().description().name + " (" + device().description().driver + ")";
  for (std::size_t operation = 0; operation < operation_count; ++operation) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      const float result = output[i * operation_count + operation];
      if (float_bits(result) == float_bits(expected[i])) {
        ++kept;
      } else {
        EXPECT_EQ(result, 0.0f) << operations[operation] << " of " << expected[i];
      }
    }
    row += std::string(operation == 0 ? ": " : ", ") + operations[operation] + " keeps " + std::to_string(kept) +
           " of " + std::to_string(count);
    if (is(Backend::cuda)) {
      EXPECT_EQ(kept, count) << operations[operation];
    }
  }
  std::cout << row << "\n";
}

}  // namespace
}  // namespace cingulum::parity
