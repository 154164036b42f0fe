// A runtime and a resident grid for suites that are parameterised by a grid's name (ring/resident_programs.hpp). A test
// or its SetUp opens the grid; it is closed behind the test, which fails where that fails.
#pragma once

#include "ring/resident/resident_grid.hpp"
#include "ring/resident_programs.hpp"
#include "ring/small_actors.hpp"
#include "support/each_device.hpp"

namespace cingulum::ring::testing {

class EachGrid : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { ASSERT_OK_AND_ASSIGN(runtime_, Runtime::create()); }
  // Skips, or fails where this grid is required.
  void open_on(Result<std::unique_ptr<ResidentBackend>> backend, GridOptions options) {
    if (!backend) {
      if (cingulum::testing::is_required(GetParam())) FAIL() << backend.error().message();
      GTEST_SKIP() << backend.error().message();
    }
    if (!is("cuda")) options.longest_nap_ns = 50000;  // threads on few processors
    ASSERT_OK_AND_ASSIGN(grid_, ResidentGrid::open(std::move(*backend), options));
  }
  void TearDown() override {
    if (runtime_) static_cast<void>(runtime_->shutdown(Termination::discard()));
    if (grid_) {
      EXPECT_TRUE(grid_->close());
    }
  }
  [[nodiscard]] bool is(std::string_view grid) const { return grid == GetParam(); }
  static Message message(std::uint64_t number) { return make_message(numbered(number)); }

  std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<ResidentGrid> grid_;
};

}  // namespace cingulum::ring::testing
