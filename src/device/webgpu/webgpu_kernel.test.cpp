#include "device/webgpu/webgpu_kernel.hpp"

#include <gtest/gtest.h>

#include "support/each_device.hpp"

namespace cingulum {
namespace {

using Size = std::array<std::uint32_t, 3>;

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
