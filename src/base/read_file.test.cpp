#include "base/read_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstring>
#include <thread>

#include "support/temporary_folder.hpp"

namespace cingulum {
namespace {

TEST(ReadFile, gives_all_bytes_of_files_of_any_size) {
  const TemporaryFolder folder;
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 4097U, 100000U}) {
    std::string text(size, 'x');
    for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>(i * 31);
    folder.put("a", text);
    EXPECT_EQ(*read_text_file(folder / "a"), text);
    const auto bytes = read_file(folder / "a");
    ASSERT_TRUE(bytes);
    ASSERT_EQ(bytes->size(), size);
    EXPECT_TRUE(size == 0 || std::memcmp(bytes->data(), text.data(), size) == 0);
  }
}

TEST(ReadFile, reads_files_whose_stated_size_is_zero) {
  const auto text = read_text_file("/proc/self/status");
  ASSERT_TRUE(text);
  EXPECT_NE(text->find("Pid:\t" + std::to_string(::getpid())), std::string::npos);
}

std::atomic<int> signals_taken{0};

TEST(ReadFile, goes_on_after_a_signal_that_interrupts_a_read) {
  const TemporaryFolder folder;
  const std::filesystem::path pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  struct sigaction counting {};
  struct sigaction before {};
  counting.sa_handler = [](int) { ++signals_taken; };  // without SA_RESTART: read() ends with EINTR
  ASSERT_EQ(::sigaction(SIGUSR1, &counting, &before), 0);
  signals_taken = 0;
  Result<std::string> text = std::string();
  std::atomic<bool> ended{false};
  std::thread reader([&] {
    text = read_text_file(pipe);
    ended = true;
  });
  const int writer = ::open(pipe.c_str(), O_WRONLY | O_CLOEXEC);  // returns once the reader has opened it
  EXPECT_GE(writer, 0);
  EXPECT_EQ(::write(writer, "before ", 7), 7);
  for (int signal = 1; signal <= 5 && !ended; ++signal) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));  // the reader waits in read() by then
    ::pthread_kill(reader.native_handle(), SIGUSR1);
    while (signals_taken < signal && !ended) std::this_thread::yield();
  }
  EXPECT_FALSE(ended) << "it did not wait for the rest";
  if (!ended) {
    EXPECT_EQ(::write(writer, "after", 5), 5);
  }
  ::close(writer);
  reader.join();
  ::sigaction(SIGUSR1, &before, nullptr);
  ASSERT_TRUE(text) << text.error().message();
  EXPECT_EQ(*text, "before after");
}

TEST(ReadFile, names_file_and_cause) {
  const TemporaryFolder folder;
  const auto missing = read_file(folder / "missing");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().kind(), ErrorKind::not_found);
  EXPECT_EQ(missing.error().message(), "reading " + (folder / "missing").native() + ": no such file or directory");
  EXPECT_EQ(read_file(folder.path()).error().message(), "reading " + folder.path().native() + ": it is a folder");
}

TEST(ReadFile, tells_a_file_that_is_not_there_from_one_that_cannot_be_opened) {
  const TemporaryFolder folder;
  folder.put("file", "text");
  std::filesystem::create_symlink("loop", folder / "loop");
  const auto kind_of_failure = [&](std::string_view name) { return read_file(folder / name).error().kind(); };
  EXPECT_EQ(kind_of_failure("file/inside"), ErrorKind::not_found);
  EXPECT_EQ(kind_of_failure("loop"), ErrorKind::io);
  EXPECT_EQ(kind_of_failure(std::string(300, 'x')), ErrorKind::io);
}

TEST(ReadFile, refuses_more_than_the_limit_before_and_while_reading) {
  const TemporaryFolder folder;
  folder.put("a", std::string(2048, 'x'));
  EXPECT_TRUE(read_file(folder / "a", 2048));
  EXPECT_EQ(read_file(folder / "a", 2047).error().message(),
            "reading " + (folder / "a").native() + ": 2048 bytes is above the limit of 2047 (2.0 KiB)");
  const auto endless = read_file("/dev/zero", 10000);
  ASSERT_FALSE(endless);
  EXPECT_TRUE(endless.error().message().starts_with("reading /dev/zero: at least ")) << endless.error().message();
}

}  // namespace
}  // namespace cingulum
