#include "numerics/lanes_portable.hpp"

#include <gtest/gtest.h>

namespace cingulum::numerics {
namespace {

using TestedLanes = PortableLanes;

}  // namespace
}  // namespace cingulum::numerics

#define CGL_LANES_TEST(name) TEST(PortableLanes, name)
#include "numerics/lanes_test_body.hpp"
