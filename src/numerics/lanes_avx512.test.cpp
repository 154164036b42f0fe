// Compiled with the flags of AVX-512; without them the file holds one test, which says so.
#include "numerics/lanes_avx512.hpp"

#include <gtest/gtest.h>

#if defined(__AVX512F__) && defined(__AVX512DQ__)

namespace cingulum::numerics {
namespace {

using TestedLanes = Avx512Lanes;
class Avx512LanesOnThisCpu : public ::testing::Test {
 protected:
  void SetUp() override {
    if (__builtin_cpu_supports("avx512f") == 0 || __builtin_cpu_supports("avx512dq") == 0 ||
        __builtin_cpu_supports("avx512bw") == 0 || __builtin_cpu_supports("avx512vl") == 0) {
      GTEST_SKIP() << "this CPU has no AVX-512";
    }
  }
};

}  // namespace
}  // namespace cingulum::numerics

#define CGL_LANES_TEST(name) TEST_F(Avx512LanesOnThisCpu, name)
#include "numerics/lanes_test_body.hpp"

#else

TEST(Avx512Lanes, are_tested) {
  GTEST_SKIP() << "compiled without AVX-512";
}

#endif
