// Memory runs out: allocation n fails, for every n, in parsing settings, parsing a command line, writing a file, and
// using a device. Each time the answer is an Error, nothing is leaked, and the next attempt works. The formats are in
// tests/formats/out_of_memory_test.cpp.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/atomic_file.hpp"
#include "base/read_file.hpp"
#include "base/settings.hpp"
#include "base/thread_pool.hpp"
#include "cli/command_line.hpp"
#include "cli/program.hpp"
#include "cli/verbs.hpp"
#include "device/cpu/cpu_device.hpp"
#include "device/memory_pool.hpp"
#include "support/failing_allocations.hpp"

namespace cingulum {
namespace {

using testing::expect_errors_for_every_allocation;
using testing::failing_allocations;

class OutOfMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "cingulum-test-XXXXXX").native();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }

  std::filesystem::path folder_;
};

TEST_F(OutOfMemory, while_settings_are_parsed_is_an_error) {
  ASSERT_EQ(::setenv("CINGULUM_DEVICE", "cuda:0,cuda:1,webgpu,cpu-which-is-no-device-name", 1), 0);
  ASSERT_EQ(::setenv("CINGULUM_CACHE_LIMIT", "12.5 GiB", 1), 0);
  expect_errors_for_every_allocation(
      []() -> Status {
        CGL_TRY_ASSIGN(const Settings settings, Settings::from_environment());
        // The message of a malformed setting is made of memory, too.
        const Status status = settings.check();
        if (!status && status.error().kind() != ErrorKind::out_of_memory) return {};
        return status;
      },
      6);
  ::unsetenv("CINGULUM_DEVICE");
  ::unsetenv("CINGULUM_CACHE_LIMIT");
}

TEST_F(OutOfMemory, while_a_command_line_is_parsed_is_an_error) {
  const std::string input = folder_ / "an-input-file-with-a-long-name.nii.gz";
  std::ofstream(input) << "x";
  Verb verb{.name = "demonstrate", .summary = "take arguments of every kind", .description = ""};
  verb.arguments = {
      {.name = "input", .type = ArgumentType::file_in, .positional = true, .required = true},
      {.name = "out", .type = ArgumentType::file_out, .letter = 'o', .required = true},
      {.name = "step-size", .type = ArgumentType::length, .range = {.minimum = 0, .above = true}},
      {.name = "max-angle", .type = ArgumentType::angle, .range = {.minimum = 0, .maximum = 90}, .default_text = "60"},
      {.name = "label", .repeatable = true},
      {.name = "mode", .type = ArgumentType::choice, .default_text = "fast", .choices = {"fast", "slow"}}};
  verb.common = {CommonOption::device, CommonOption::threads, CommonOption::force, CommonOption::seed};
  const std::vector<std::string> words = {input,
                                          "--out",
                                          folder_ / "output-with-a-long-name.trx",
                                          "--step-size",
                                          "0.5vox",
                                          "--label",
                                          "a label that does not fit a short string",
                                          "--label=b",
                                          "--device",
                                          "cuda:0,cpu",
                                          "--force",
                                          "--seed",
                                          "0xfeedfeedfeedfeed"};
  expect_errors_for_every_allocation(
      [&]() -> Status {
        CGL_TRY_ASSIGN(const ParsedArguments arguments, parse_command_line(verb, words));
        return arguments.length("step-size") == Length{0.5, LengthUnit::voxel}
                   ? Status{}
                   : Status(tl::make_unexpected(Error(ErrorKind::corrupt, "wrong")));
      },
      100);
}

TEST_F(OutOfMemory, while_a_misused_command_line_is_reported_is_an_error) {
  const Verb verb{.name = "demonstrate", .summary = "", .description = "", .common = {CommonOption::threads}};
  const std::vector<std::string> words = {"--thraeds", "4"};
  expect_errors_for_every_allocation(
      [&]() -> Status {
        const auto parsed = parse_command_line(verb, words);
        if (parsed) return tl::make_unexpected(Error(ErrorKind::corrupt, "accepted"));
        return parsed.error().kind() == ErrorKind::out_of_memory ? Status(tl::make_unexpected(parsed.error()))
                                                                 : Status{};
      },
      50);
}

TEST_F(OutOfMemory, while_a_file_is_written_is_an_error_and_leaves_no_partial_file) {
  const std::filesystem::path path = folder_ / "an-output-file-with-a-long-name.bin";
  expect_errors_for_every_allocation(
      [&]() -> Status {
        const auto write = [&]() -> Status {
          CGL_TRY_ASSIGN(AtomicFile file, AtomicFile::create(path, {.force = true, .sync = false, .buffer_bytes = 16}));
          for (int i = 0; i < 10; ++i) CGL_TRY(file.append("0123456789"));
          CGL_TRY(file.write_at(0, std::as_bytes(std::span("HEAD", 4))));
          return file.commit();
        };
        Status status = write();
        failing_allocations().counting = false;
        EXPECT_LE(files(), 1U);
        failing_allocations().counting = true;
        return status;
      },
      5);
}

TEST_F(OutOfMemory, while_a_refused_output_is_reported_is_an_error) {
  const std::filesystem::path path = folder_ / "an-existing-file-with-a-long-name.bin";
  std::ofstream(path) << "x";
  expect_errors_for_every_allocation(
      [&]() -> Status {
        const Status status = check_output(path);
        return !status && status.error().kind() == ErrorKind::already_exists ? Status{} : status;
      },
      2);
}

TEST_F(OutOfMemory, while_a_file_is_read_is_an_error) {
  const std::filesystem::path path = folder_ / "an-input-file-with-a-long-name.bin";
  std::ofstream(path) << std::string(10000, 'x');
  expect_errors_for_every_allocation([&] { return read_file(path).map([](auto&&) {}); }, 2);
}

// Without --json: the destructors of nlohmann's json allocate, and end the process when they cannot.
void add_one(const BlockContext& block) {
  for (float& value : block.buffer<float>(0)) value += 1.0f;
}

TEST_F(OutOfMemory, while_a_device_is_used_is_an_error) {
  KernelSource source;
  source.name = "a_kernel_with_a_name_that_does_not_fit_a_short_string";
  source.native = add_one;
  source.parameters = {{"values", ParameterKind::buffer_inout}};
  expect_errors_for_every_allocation(
      [&]() -> Status {
        CGL_TRY_ASSIGN(const auto device, CpuDevice::create(1));
        CGL_TRY_ASSIGN(const auto queue, device->create_queue());
        CGL_TRY_ASSIGN(const auto buffer, device->allocate(4096));
        CGL_TRY(queue->fill(*buffer, 0, 4096, std::byte{0}));
        CGL_TRY_ASSIGN(const auto kernel, device->compile(source));
        const KernelArgument arguments[] = {argument(*buffer)};
        CGL_TRY(queue->launch(*kernel, {{1, 1, 1}, {1, 1, 1}, 64}, arguments));
        CGL_TRY_ASSIGN(const auto event, queue->record());
        CGL_TRY(event->wait());
        // What is made by value or constructor may throw; what answers with a Result may not.
        return catch_out_of_memory([&]() -> Status {
          DevicePool pool(*device);
          return pool.acquire(1000).map([](auto&&) {});
        });
      },
      10);
}

TEST_F(OutOfMemory, anywhere_in_the_program_ends_with_exit_code_1) {
  TalkStream stream([](std::string_view) {}, false, [] { return std::size_t{80}; });
  Log log(stream);
  Program program{.verbs = all_verbs(),
                  .settings = Settings::from_variables({{"HOME", "/home/somebody-with-a-long-name"}}),
                  .output = [](std::string_view) {},
                  .log = log};
  const std::vector<std::vector<std::string>> lines = {{"settings"}, {"help", "completion"}, {"completion", "bash"}};
  for (const std::vector<std::string>& words : lines) {
    expect_errors_for_every_allocation(
        [&]() -> Status {
          const int code = run_program(program, words);
          if (code == 0) return {};
          return tl::make_unexpected(Error(code == 1 ? ErrorKind::out_of_memory : ErrorKind::corrupt, ""));
        },
        100);
  }
}

}  // namespace
}  // namespace cingulum
