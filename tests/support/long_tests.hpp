// Whether tests may take minutes: CINGULUM_TEST_LONG=1, as tools/test-long sets it.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

namespace cingulum::test {

inline bool may_take_long() {
  const char* const wanted = std::getenv("CINGULUM_TEST_LONG");
  return wanted != nullptr && *wanted == '1';
}

// A suite of which nothing is quick.
class LongTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!may_take_long()) GTEST_SKIP() << "takes minutes; set CINGULUM_TEST_LONG=1";
  }
};

}  // namespace cingulum::test
