// Compiled with -mavx2; without it the file holds one test, which says so.
#include "numerics/lanes_avx2.hpp"

#include <gtest/gtest.h>

#if defined(__AVX2__)

namespace cingulum::numerics {
namespace {

using TestedLanes = Avx2Lanes;
class Avx2LanesOnThisCpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (__builtin_cpu_supports("avx2") == 0) GTEST_SKIP() << "this CPU has no AVX2";
  }
};

}  // namespace
}  // namespace cingulum::numerics

#define CGL_LANES_TEST(name) TEST_F(Avx2LanesOnThisCpu, name)
#include "numerics/lanes_test_body.hpp"

#else

TEST(Avx2Lanes, are_tested) {
  GTEST_SKIP() << "compiled without -mavx2";
}

#endif
