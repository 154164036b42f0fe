#include "ring/telemetry/telemetry_page.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <iterator>
#include <thread>

#include "ring/telemetry/telemetry_publisher.hpp"

namespace cingulum::ring {
namespace {

class telemetry_page : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "cingulum-page-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

TEST_F(telemetry_page, what_was_written_last_is_read) {
  auto page = TelemetryPage::create(folder_ / "a.ring");
  ASSERT_TRUE(page.has_value()) << page.error().message();
  EXPECT_EQ(read_telemetry_page(folder_ / "a.ring").value(), "");
  for (const std::string text : {"one", "", "a longer content than eight bytes"}) {
    ASSERT_TRUE(page->write(text).has_value());
    EXPECT_EQ(read_telemetry_page(folder_ / "a.ring").value(), text);
  }
}

TEST_F(telemetry_page, content_that_does_not_fit_gets_a_larger_page) {
  auto page = TelemetryPage::create(folder_ / "a.ring", 4096);
  ASSERT_TRUE(page.has_value());
  const std::string large(100000, 'x');
  ASSERT_TRUE(page->write(large).has_value());
  EXPECT_EQ(read_telemetry_page(folder_ / "a.ring").value(), large);
  EXPECT_EQ(list_telemetry_pages(folder_).size(), 1U);
}

TEST_F(telemetry_page, content_may_fill_the_page_to_the_last_byte) {
  auto page = TelemetryPage::create(folder_ / "a.ring", 4096);
  ASSERT_TRUE(page.has_value());
  const auto file_bytes = std::filesystem::file_size(folder_ / "a.ring");
  const std::string full(4096, 'x');
  ASSERT_TRUE(page->write(full).has_value());
  const auto read = read_telemetry_page(folder_ / "a.ring");
  ASSERT_TRUE(read.has_value()) << read.error().message();
  EXPECT_EQ(*read, full);
  EXPECT_EQ(std::filesystem::file_size(folder_ / "a.ring"), file_bytes) << "the same page";
}

TEST_F(telemetry_page, the_file_goes_with_its_writer) {
  {
    const auto page = TelemetryPage::create(folder_ / "a.ring");
    ASSERT_EQ(list_telemetry_pages(folder_).size(), 1U);
    EXPECT_TRUE(list_telemetry_pages(folder_)[0].alive);
    EXPECT_EQ(list_telemetry_pages(folder_)[0].process, ::getpid());
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
  const auto gone = read_telemetry_page(folder_ / "a.ring");
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().kind(), ErrorKind::not_found);
}

TEST_F(telemetry_page, a_reader_beside_the_writer_never_gets_a_torn_copy) {
  auto page = TelemetryPage::create(folder_ / "a.ring");
  ASSERT_TRUE(page.has_value());
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (unsigned i = 0; !stop; ++i) {
      EXPECT_TRUE(page->write(std::string(20 + i % 4000, static_cast<char>('a' + i % 26))).has_value());
      // Readers look again while a write is under way; a writer that never rests would starve them.
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  });
  int read = 0;
  for (int i = 0; i < 1000; ++i) {
    const auto content = read_telemetry_page(folder_ / "a.ring");
    if (!content) {
      EXPECT_EQ(content.error().kind(), ErrorKind::unavailable) << content.error().message();
      continue;
    }
    ++read;
    EXPECT_TRUE(content->empty() || content->find_first_not_of(content->front()) == std::string::npos);
  }
  stop = true;
  writer.join();
  EXPECT_GT(read, 100);
}

// A writer that never rests is at work when it is killed, but for the moments between two calls and those in which the
// machine does other things.
TEST_F(telemetry_page, a_writer_killed_at_work_leaves_a_page_that_says_so) {
  int half_written = 0;
  for (int round = 0; half_written < 5 && round < 300; ++round) {
    const auto path = folder_ / fmt::format("{}.ring", round);
    const pid_t child = ::fork();
    if (child == 0) {
      auto page = TelemetryPage::create(path, std::size_t{1} << 20U);
      const std::string contents[2] = {std::string(1000000, 'a'), std::string(900000, 'b')};
      for (unsigned i = 0; page; ++i) {
        if (!page->write(contents[i % 2])) break;
      }
      ::_exit(1);
    }
    while (list_telemetry_pages(folder_).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    const auto content = read_telemetry_page(path);
    if (!content) {
      EXPECT_EQ(content.error().kind(), ErrorKind::unavailable) << content.error().message();
      ++half_written;
    }
    std::filesystem::remove(path);
  }
  EXPECT_EQ(half_written, 5);
}

TEST_F(telemetry_page, a_page_that_stays_half_written_is_reported_as_such) {
  auto page = TelemetryPage::create(folder_ / "a.ring");
  ASSERT_TRUE(page.has_value() && page->write("content"));
  std::fstream file(folder_ / "a.ring", std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(offsetof(TelemetryPageHeader, sequence));
  file.put(3);
  file.close();
  const auto content = read_telemetry_page(folder_ / "a.ring");
  ASSERT_FALSE(content.has_value());
  EXPECT_EQ(content.error().kind(), ErrorKind::unavailable) << content.error().message();
}

TEST_F(telemetry_page, damage_of_any_byte_is_found) {
  const auto path = folder_ / "a.ring";
  auto page = TelemetryPage::create(path, 4096);
  ASSERT_TRUE(page.has_value() && page->write("some content"));
  std::ifstream in(path, std::ios::binary);
  const std::string good{std::istreambuf_iterator<char>(in), {}};
  const auto read_of = [&](const std::string& bytes) {
    std::ofstream(folder_ / "b.ring", std::ios::binary) << bytes;
    return read_telemetry_page(folder_ / "b.ring");
  };
  ASSERT_TRUE(read_of(good).has_value());
  const std::size_t content_end = sizeof(TelemetryPageHeader) + std::string_view("some content").size();
  int refused = 0;
  for (std::size_t at = 0; at < content_end; ++at) {
    // The page of another process is another page, not a damaged one; the sequence has a test of its own.
    if (at >= offsetof(TelemetryPageHeader, process) && at < offsetof(TelemetryPageHeader, capacity)) continue;
    if (at >= offsetof(TelemetryPageHeader, sequence) && at < offsetof(TelemetryPageHeader, bytes)) continue;
    if (at >= offsetof(TelemetryPageHeader, reserved) && at < sizeof(TelemetryPageHeader)) continue;
    for (const int bit : {0x01, 0x40}) {
      std::string damaged = good;
      damaged[at] = static_cast<char>(damaged[at] ^ bit);
      const auto content = read_of(damaged);
      ASSERT_FALSE(content.has_value()) << "byte " << at;
      EXPECT_EQ(content.error().kind(), ErrorKind::corrupt) << content.error().message();
      ++refused;
    }
  }
  EXPECT_EQ(refused, 2 * (4 * 8 + 12));  // magic, capacity, bytes, checksum and the content
  EXPECT_FALSE(read_of(good.substr(0, 40)).has_value());
  EXPECT_FALSE(read_of("").has_value());
}

TEST_F(telemetry_page, a_killed_writer_is_seen_as_dead_and_cleared_away) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto page = TelemetryPage::create(folder_ / "dead.ring");
    if (page && page->write("last words")) ::kill(::getpid(), SIGKILL);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  ASSERT_EQ(list_telemetry_pages(folder_).size(), 1U);
  EXPECT_FALSE(list_telemetry_pages(folder_)[0].alive);
  EXPECT_EQ(read_telemetry_page(folder_ / "dead.ring").value(), "last words");
  const auto page = TelemetryPage::create(folder_ / "mine.ring");
  ASSERT_TRUE(page.has_value());
  ASSERT_EQ(list_telemetry_pages(folder_).size(), 1U);
  EXPECT_EQ(list_telemetry_pages(folder_)[0].process, ::getpid());
}

TEST_F(telemetry_page, the_page_of_a_living_process_and_other_files_are_not_taken) {
  const pid_t child = ::fork();
  if (child == 0) {
    auto page = TelemetryPage::create(folder_ / "a.ring");
    ::pause();
    ::_exit(0);
  }
  while (list_telemetry_pages(folder_).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  const auto page = TelemetryPage::create(folder_ / "a.ring");
  ASSERT_FALSE(page.has_value());
  EXPECT_EQ(page.error().kind(), ErrorKind::already_exists) << page.error().message();
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  std::ofstream(folder_ / "notes.txt") << "mine";
  EXPECT_FALSE(TelemetryPage::create(folder_ / "notes.txt").has_value());
  EXPECT_EQ(std::filesystem::file_size(folder_ / "notes.txt"), 4U);
}

// As on a full disk: files may not grow beyond a page of memory.
TEST_F(telemetry_page, a_page_that_cannot_be_made_leaves_no_file) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(3);
    const auto page = TelemetryPage::create(folder_ / "a.ring", 1u << 20);
    if (page.has_value()) ::_exit(4);
    ::_exit(page.error().kind() == ErrorKind::io ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(telemetry_page, a_publisher_shows_what_it_is_given_until_it_goes) {
  std::atomic<std::uint64_t> received{1};
  {
    const auto publisher = TelemetryPublisher::start(
        [&] {
          RuntimeTelemetry telemetry;
          telemetry.received = received;
          return telemetry;
        },
        {.path = folder_ / "a.ring", .program = "test", .interval = std::chrono::milliseconds(5), .nvml_library = {}});
    ASSERT_TRUE(publisher.has_value()) << publisher.error().message();
    received = 42;
    std::uint64_t seen = 0;
    for (int i = 0; i < 4000 && seen != 42; ++i) {
      const auto text = read_telemetry_page(folder_ / "a.ring");
      if (!text) continue;
      const auto snapshot = parse_telemetry_json(*text);
      ASSERT_TRUE(snapshot.has_value()) << snapshot.error().message();
      seen = snapshot->runtime.received;
      EXPECT_EQ(snapshot->program, "test");
      EXPECT_FALSE(snapshot->gpus.empty());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(seen, 42U);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder_));
}

TEST_F(telemetry_page, the_folder_is_the_users_own) {
  const auto folder = telemetry_folder(folder_.string(), true);
  ASSERT_TRUE(folder.has_value()) << folder.error().message();
  EXPECT_EQ(*folder, folder_ / "cingulum");
  EXPECT_EQ(std::filesystem::status(*folder).permissions(), std::filesystem::perms::owner_all);
  std::filesystem::remove(*folder);
  std::ofstream(*folder) << "in the way";
  EXPECT_FALSE(telemetry_folder(folder_.string(), true).has_value());
  EXPECT_EQ(telemetry_folder("", false).value().string().substr(0, 14), "/tmp/cingulum-");
}

}  // namespace
}  // namespace cingulum::ring
