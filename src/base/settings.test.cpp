#include "base/settings.hpp"

#include <gtest/gtest.h>

#if defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <cstdlib>
#include <set>
#include <thread>

namespace cingulum {
namespace {

Settings with(Settings::Variables variables) {
  return Settings::from_variables(std::move(variables));
}

#if defined(__linux__)
TEST(Settings, the_default_of_threads_is_the_processors_that_may_be_used) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(default_thread_count(), std::min(CPU_COUNT(&before), max_thread_count));
  std::thread([&] {
    std::size_t processor = 0;
    while (!CPU_ISSET(processor, &before)) ++processor;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(default_thread_count(), 1);
  }).join();
}
#endif

TEST(Settings, have_defaults_when_nothing_is_set) {
  const Settings settings = with({{"HOME", "/home/me"}});
  EXPECT_EQ(*settings.devices(), std::vector<std::string>{"auto"});
  EXPECT_EQ(*settings.threads(), default_thread_count());
  EXPECT_EQ(*settings.log_level(), LogLevel::info);
  EXPECT_EQ(*settings.cache_dir(), "/home/me/.cache/cingulum");
  EXPECT_EQ(*settings.cache_limit_bytes(), std::uint64_t{1} << 30U);
  EXPECT_EQ(*settings.memory_limit_bytes(), std::nullopt);
  EXPECT_FALSE(*settings.no_sync());
  EXPECT_EQ(*settings.library(Setting::cuda_library), std::nullopt);
  EXPECT_TRUE(settings.check());
  EXPECT_TRUE(settings.warnings().empty());
}

TEST(Settings, give_the_values_that_are_set) {
  const Settings settings = with({{"CINGULUM_DEVICE", "cuda:1, cpu"},
                                  {"CINGULUM_THREADS", " 12"},
                                  {"CINGULUM_LOG", "debug"},
                                  {"CINGULUM_CACHE_DIR", "/scratch/cache"},
                                  {"CINGULUM_CACHE_LIMIT", "2G"},
                                  {"CINGULUM_MEMORY_LIMIT", "1.5 GiB"},
                                  {"CINGULUM_NO_SYNC", "yes"},
                                  {"CINGULUM_WGPU_LIBRARY", "/opt/libwgpu.so"}});
  EXPECT_EQ(*settings.devices(), (std::vector<std::string>{"cuda:1", "cpu"}));
  EXPECT_EQ(*settings.threads(), 12);
  EXPECT_EQ(*settings.log_level(), LogLevel::debug);
  EXPECT_EQ(*settings.cache_dir(), "/scratch/cache");
  EXPECT_EQ(*settings.cache_limit_bytes(), std::uint64_t{2} << 30U);
  EXPECT_EQ(**settings.memory_limit_bytes(), 1610612736U);
  EXPECT_TRUE(*settings.no_sync());
  EXPECT_EQ(**settings.library(Setting::wgpu_library), "/opt/libwgpu.so");
  EXPECT_EQ(settings.given(Setting::threads), " 12");
}

TEST(Settings, that_are_empty_count_as_not_set) {
  const Settings settings = with({{"CINGULUM_THREADS", ""}, {"CINGULUM_LOG", ""}});
  EXPECT_TRUE(settings.check());
  EXPECT_EQ(settings.given(Setting::threads), std::nullopt);
}

TEST(Settings, that_are_malformed_are_errors_with_name_value_and_accepted_values) {
  struct Case {
    std::string name;
    std::string value;
    std::string message;
  };
  const std::vector<Case> cases = {
      {"CINGULUM_THREADS", "0", "setting CINGULUM_THREADS='0': accepted is a whole number from 1 to 4096"},
      {"CINGULUM_THREADS", "many", "setting CINGULUM_THREADS='many': accepted is a whole number from 1 to 4096"},
      {"CINGULUM_THREADS", "4097", "setting CINGULUM_THREADS='4097': accepted is a whole number from 1 to 4096"},
      {"CINGULUM_LOG", "loud", "setting CINGULUM_LOG='loud': accepted is error, warning, info or debug"},
      {"CINGULUM_CACHE_LIMIT", "big",
       "setting CINGULUM_CACHE_LIMIT='big': accepted is a size in bytes, with K, M, G, T (or KiB, KB, ...) if wanted, "
       "such as 2G"},
      {"CINGULUM_MEMORY_LIMIT", "-1",
       "setting CINGULUM_MEMORY_LIMIT='-1': accepted is a size in bytes, with K, M, G, T (or KiB, KB, ...) if wanted, "
       "such as 2G"},
      {"CINGULUM_NO_SYNC", "perhaps", "setting CINGULUM_NO_SYNC='perhaps': accepted is 0 or 1"},
      {"CINGULUM_DEVICE", "gpu 0",
       "setting CINGULUM_DEVICE: 'gpu 0' is not a list of devices; accepted is auto, cpu, cuda, cuda:N, webgpu, metal, "
       "or "
       "several separated by commas"}};
  for (const Case& expected : cases) {
    const Status status = with({{expected.name, expected.value}}).check();
    ASSERT_FALSE(status) << expected.name;
    EXPECT_EQ(status.error().kind(), ErrorKind::invalid_argument);
    EXPECT_EQ(status.error().message(), expected.message);
  }
}

TEST(Settings, put_the_cache_where_the_xdg_rules_say) {
  EXPECT_EQ(*with({{"XDG_CACHE_HOME", "/var/cache"}, {"HOME", "/h"}}).cache_dir(), "/var/cache/cingulum");
  EXPECT_EQ(*with({{"XDG_CACHE_HOME", "relative"}, {"HOME", "/h"}}).cache_dir(), "/h/.cache/cingulum");
  const auto nowhere = with({}).cache_dir();
  ASSERT_FALSE(nowhere);
  EXPECT_NE(nowhere.error().message().find("CINGULUM_CACHE_DIR"), std::string::npos);
}

TEST(Settings, warn_of_unknown_names_with_the_nearest) {
  const std::vector<std::string> warnings = with({{"CINGULUM_THREAD", "4"}, {"CINGULUM_ZZZZZZZZ", "1"}}).warnings();
  ASSERT_EQ(warnings.size(), 2U);
  EXPECT_EQ(warnings[0], "CINGULUM_THREAD is not a setting; did you mean 'CINGULUM_THREADS'?");
  EXPECT_EQ(warnings[1], "CINGULUM_ZZZZZZZZ is not a setting");
}

TEST(Settings, are_read_from_the_environment) {
  ASSERT_EQ(::setenv("CINGULUM_THREADS", "3", 1), 0);
  const Result<Settings> settings = Settings::from_environment();
  ::unsetenv("CINGULUM_THREADS");
  ASSERT_TRUE(settings);
  EXPECT_EQ(*settings->threads(), 3);
}

TEST(Settings, do_not_warn_of_variables_of_the_build_and_the_tests) {
  const Settings settings = Settings::from_variables({{"CINGULUM_CUDA", "OFF"},
                                                      {"CINGULUM_CUDA_ARCHS", "90"},
                                                      {"CINGULUM_TEST_DATA", "x"},
                                                      {"CINGULUM_DEVIC", "cpu"}});
  const auto warnings = settings.warnings();
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("CINGULUM_DEVICE"), std::string::npos);
}

TEST(SettingList, names_each_setting_once_and_explains_it) {
  std::set<std::string_view> names;
  for (const SettingInfo& info : setting_list()) {
    EXPECT_TRUE(names.insert(info.name).second) << info.name;
    EXPECT_TRUE(info.name.starts_with("CINGULUM_"));
    EXPECT_FALSE(info.meaning.empty());
    EXPECT_FALSE(info.accepted.empty());
  }
  EXPECT_EQ(names.size(), 13U);
}

TEST(DeviceList, takes_names_with_numbers_and_refuses_the_rest) {
  EXPECT_EQ(*parse_device_list("cpu"), std::vector<std::string>{"cpu"});
  EXPECT_EQ(*parse_device_list(" cuda:0 ,cuda:12"), (std::vector<std::string>{"cuda:0", "cuda:12"}));
  EXPECT_EQ(*parse_device_list("cpu,cpu"), (std::vector<std::string>{"cpu", "cpu"}));
  for (const std::string text : {"", ",", "cpu,", "cuda:", "cuda:x", ":0", "cuda:99999", "CPU", "a b"}) {
    EXPECT_FALSE(parse_device_list(text)) << text;
  }
}

}  // namespace
}  // namespace cingulum
