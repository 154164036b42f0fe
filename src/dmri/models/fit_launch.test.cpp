#include "dmri/models/fit_launch.hpp"

#include <gtest/gtest.h>

namespace cingulum {
namespace {

// A thread of q-ball at 64 directions and 15 coefficients has 158 numbers, 1264 bytes; 128 threads 161792 bytes.
TEST(FitLaunch, has_as_many_threads_as_shared_memory_has_room_for) {
  struct Case {
    std::uint64_t shared_bytes;
    std::uint32_t threads;
    bool fits;
  };
  for (const Case& c : {Case{232448, 128, true}, Case{161792, 128, true}, Case{161791, 96, true},
                        Case{121344, 96, true}, Case{49152, 32, true}, Case{40448, 32, true}, Case{40447, 32, false}}) {
    const FitLaunchShape shape = voxel_fit_launch(158, c.shared_bytes);
    EXPECT_EQ(shape.threads, c.threads) << c.shared_bytes;
    EXPECT_EQ(shape.fits, c.fits) << c.shared_bytes;
    EXPECT_EQ(shape.shared_bytes, c.threads * 1264) << c.shared_bytes;
  }
}

TEST(FitLaunch, of_csd_has_two_warps_or_one_or_does_not_fit) {
  EXPECT_EQ(csd_fit_launch(20000, 40000).threads, 64u);
  EXPECT_EQ(csd_fit_launch(20000, 40000).shared_bytes, 40000u);
  EXPECT_EQ(csd_fit_launch(20000, 39999).threads, 32u);
  EXPECT_EQ(csd_fit_launch(20000, 39999).shared_bytes, 20000u);
  EXPECT_TRUE(csd_fit_launch(20000, 20000).fits);
  EXPECT_FALSE(csd_fit_launch(20000, 19999).fits);
}

}  // namespace
}  // namespace cingulum
