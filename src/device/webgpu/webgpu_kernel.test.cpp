#include "device/webgpu/webgpu_kernel.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "support/each_device.hpp"

namespace cingulum {
namespace {

using Size = std::array<std::uint32_t, 3>;

TEST(WgslText, that_would_end_the_process_is_refused_with_its_line) {
  using testing::fails_with;
  EXPECT_TRUE(check_wgsl_text("// \u00e4\u20ac\U0001F9E0\nfn main() { let x = -(-(1)); }", "main"));
  for (const char* bad : {"\xff\xfe", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\xe2\x82"}) {
    EXPECT_TRUE(fails_with(check_wgsl_text(std::string("\n\n// ") + bad, "main"), ErrorKind::compilation, "line 3"));
  }
  EXPECT_TRUE(fails_with(check_wgsl_text(std::string(3000, '('), "main"), ErrorKind::compilation, "nested"));
  EXPECT_TRUE(fails_with(check_wgsl_text(std::string(3000, '-') + "1", "main"), ErrorKind::compilation, "nested"));
}

class WebgpuKernels : public testing::EachDevice {};
CGL_FOR_DEVICES(WebgpuKernels, "webgpu");

KernelSource copy_source(const char* input_type) {
  KernelSource source;
  source.name = "copy";
  source.language = KernelLanguage::wgsl;
  source.text =
      std::string("@group(0) @binding(0) var<storage, read> a: ") + input_type +
      ";\n@group(0) @binding(1) var<storage, read_write> b: array<f32>;\n"
      "@compute @workgroup_size(32) fn copy(@builtin(global_invocation_id) i: vec3<u32>) { b[i.x] = a[i.x]; }";
  source.parameters = {{"a", ParameterKind::buffer_in}, {"b", ParameterKind::buffer_out}};
  return source;
}

TEST_P(WebgpuKernels, arguments_that_wgpu_refuses_are_errors_and_the_device_goes_on) {
  ASSERT_OK_AND_ASSIGN(const auto small, device().allocate(256));
  ASSERT_OK_AND_ASSIGN(const auto other, device().allocate(256));
  const LaunchShape shape{{2, 1, 1}, {32, 1, 1}, 0};
  ASSERT_OK_AND_ASSIGN(const auto copy, device().compile(copy_source("array<f32>")));
  const std::vector<KernelArgument> aliased = {argument(*small), argument(*small)};
  EXPECT_TRUE(testing::fails_with(queue().launch(*copy, shape, aliased), ErrorKind::invalid_argument, "'a' and 'b'"));
  ASSERT_OK_AND_ASSIGN(const auto fixed, device().compile(copy_source("array<f32, 1024>")));
  const std::vector<KernelArgument> arguments = {argument(*small), argument(*other)};
  EXPECT_FALSE(queue().launch(*fixed, shape, arguments)) << "the buffer is smaller than the shader's array";
  ASSERT_OK(queue().launch(*copy, shape, arguments));
  ASSERT_OK(queue().synchronise());
}

TEST_P(WebgpuKernels, launches_of_one_kernel_from_two_threads_keep_their_scalars) {
  KernelSource source;
  source.name = "store";
  source.language = KernelLanguage::wgsl;
  source.text =
      "struct S { value: u32 }\n@group(0) @binding(0) var<storage, read_write> b: array<u32>;\n"
      "@group(0) @binding(1) var<uniform> s: S;\n@compute @workgroup_size(1) fn store() { b[0] = s.value; }";
  source.parameters = {{"b", ParameterKind::buffer_out}, {"value", ParameterKind::u32}};
  ASSERT_OK_AND_ASSIGN(const auto kernel, device().compile(source));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      const auto own_queue = device().create_queue();
      const auto buffer = device().allocate(4);
      for (std::uint32_t i = 0; i < 500; ++i) {
        const std::uint32_t expected = 2 * i + t;
        const std::vector<KernelArgument> arguments = {argument(**buffer), expected};
        std::uint32_t value = 0;
        const bool ran = (*own_queue)->launch(*kernel, {}, arguments) &&
                         download(**own_queue, std::span(&value, 1), **buffer) && (*own_queue)->synchronise();
        if (!ran || value != expected) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(WorkgroupSize, is_read_from_the_entry_points_own_attributes) {
  const auto size = [](std::string_view text) { return find_workgroup_size(text, "main").value_or(Size{}); };
  EXPECT_EQ(size("@compute @workgroup_size(64) fn main() {}"), (Size{64, 1, 1}));
  EXPECT_EQ(size("@workgroup_size( 8u , 4 ,2 )\n@compute\nfn  main () {}"), (Size{8, 4, 2}));
  EXPECT_EQ(size("@compute @workgroup_size(16,) fn main() {}"), (Size{16, 1, 1}));
  EXPECT_EQ(size("@compute @workgroup_size(1) fn other() {} @compute @workgroup_size(2) fn main() {}"),
            (Size{2, 1, 1}));
  EXPECT_EQ(size("const a = 1; @compute @workgroup_size(3) fn main() {} fn mainly() {}"), (Size{3, 1, 1}));
  EXPECT_EQ(
      size("// @workgroup_size(9) fn main()\n/* fn main() /* nested */ */ @compute @workgroup_size(5) fn main() {}"),
      (Size{5, 1, 1}));
}

TEST(WorkgroupSize, that_is_absent_or_not_literal_is_refused) {
  for (const char* text :
       {"fn main() {}", "@compute @workgroup_size(n) fn main() {}", "@compute @workgroup_size fn main() {}",
        "@compute @workgroup_size(0) fn main() {}", "@compute @workgroup_size(1,2,3,4) fn main() {}",
        "@compute @workgroup_size(1 fn main() {}", "@workgroup_size(", "", "fn", "fn main"}) {
    EXPECT_FALSE(find_workgroup_size(text, "main")) << text;
  }
  EXPECT_TRUE(testing::fails_with(find_workgroup_size("fn other() {}", "main"), ErrorKind::compilation, "no function"));
}

}  // namespace
}  // namespace cingulum
