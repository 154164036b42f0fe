// Runs a test body once for every device. The suites that use it are parameterised by a device's name; a device that is
// not on this machine is skipped with the reason, or, where CINGULUM_TEST_DEVICES names it (as the GPU runs do),
// fails.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

#include "base/settings.hpp"
#include "device/registry.hpp"

namespace cingulum::testing {

// One registry for all tests of a program: opening devices is slow.
inline DeviceRegistry& registry() {
  static Result<DeviceRegistry> devices = [] {
    return Settings::from_environment()
        .and_then([](const Settings& settings) { return ProbeOptions::from_settings(settings); })
        .and_then([](ProbeOptions options) {
          // Tests bring caches of their own.
          options.kernel_cache_dir.reset();
          return DeviceRegistry::probe(options);
        });
  }();
  if (!devices) {
    ADD_FAILURE() << devices.error().message();
    std::abort();
  }
  return *devices;
}

inline bool is_required(const std::string& name) {
  const char* const required = std::getenv("CINGULUM_TEST_DEVICES");
  return required != nullptr && ("," + std::string(required) + ",").find("," + name + ",") != std::string::npos;
}

// The parameter is "cpu", "cuda" or "webgpu".
class EachDevice : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto found = registry().select_one(GetParam());
    if (!found) {
      if (is_required(GetParam())) FAIL() << "required device: " << found.error().message();
      GTEST_SKIP() << found.error().message();
    }
    device_ = *found;
    auto queue = device_->create_queue();
    ASSERT_TRUE(queue) << queue.error().message();
    queue_ = std::move(*queue);
  }
  [[nodiscard]] Device& device() const { return *device_; }
  [[nodiscard]] Queue& queue() const { return *queue_; }
  [[nodiscard]] bool is(Backend backend) const { return device_->description().backend == backend; }

 private:
  Device* device_ = nullptr;
  std::unique_ptr<Queue> queue_;
};

// The message of a failed Result, for EXPECT_* output.
template <class T>
std::string message_of(const Result<T>& result) {
  return result ? "no error" : result.error().message();
}

// Whether a Result failed with this kind and a message that contains `text`.
template <class T>
::testing::AssertionResult fails_with(const Result<T>& result, ErrorKind kind, std::string_view text) {
  if (result) return ::testing::AssertionFailure() << "it succeeded";
  if (result.error().kind() != kind) {
    return ::testing::AssertionFailure() << "kind is " << error_kind_name(result.error().kind()) << ": "
                                         << result.error().message();
  }
  if (result.error().message().find(text) == std::string::npos) {
    return ::testing::AssertionFailure() << "'" << text << "' is not in: " << result.error().message();
  }
  return ::testing::AssertionSuccess();
}

}  // namespace cingulum::testing

#define CGL_FOR_EACH_DEVICE(suite) CGL_FOR_DEVICES(suite, "cpu", "cuda", "webgpu")

// The same for some devices only, where the others lack what is tested by their nature.
#define CGL_FOR_DEVICES(suite, ...)              \
  INSTANTIATE_TEST_SUITE_P(                      \
      On, suite, ::testing::Values(__VA_ARGS__), \
      [](const ::testing::TestParamInfo<const char*>& device) { return std::string(device.param); })

#define ASSERT_OK(expression)                                                           \
  do {                                                                                  \
    const auto& cgl_result = (expression);                                              \
    ASSERT_TRUE(cgl_result.has_value()) << ::cingulum::testing::message_of(cgl_result); \
  } while (false)

// ASSERT_OK_AND_ASSIGN(auto value, expression)
#define ASSERT_OK_AND_ASSIGN(declaration, expression) \
  ASSERT_OK_AND_ASSIGN_INNER(CGL_CONCAT(cgl_test_result_, __LINE__), declaration, expression)
#define ASSERT_OK_AND_ASSIGN_INNER(result, declaration, expression)           \
  auto result = (expression);                                                 \
  ASSERT_TRUE(result.has_value()) << ::cingulum::testing::message_of(result); \
  declaration = std::move(*result)
