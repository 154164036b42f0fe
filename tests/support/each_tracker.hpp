// The devices of support/each_device.hpp that can track, with a pool of threads: suites whose tests make trackers or
// sessions on each. A device without a tracker is skipped, or fails where it is required.
#pragma once

#include <memory>

#include "support/each_device.hpp"
#include "tract/run/device_choice.hpp"

namespace cingulum::testing {

class EachTracker : public EachDevice {
 protected:
  void SetUp() override {
    EachDevice::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    pool_ = ThreadPool::create(4).value();
    auto made = make_tracker(device(), *pool_);
    if (!made && !is_required(GetParam())) GTEST_SKIP() << made.error().message();
    ASSERT_TRUE(made) << made.error().message();
  }
  [[nodiscard]] std::unique_ptr<Tracker> tracker() { return make_tracker(device(), *pool_).value(); }
  [[nodiscard]] ThreadPool& pool() { return *pool_; }
  // A device that is a CPU is slow.
  [[nodiscard]] bool is_emulated() const { return is(Backend::webgpu) && device().capabilities().software; }

 private:
  std::unique_ptr<ThreadPool> pool_;
};

}  // namespace cingulum::testing
