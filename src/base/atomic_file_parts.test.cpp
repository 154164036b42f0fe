// Content that several threads make: append_parts of AtomicFile, into files on a disk and in memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>

#include "base/atomic_file.hpp"
#include "base/thread_pool.hpp"
#include "support/faulty_file_layer.hpp"
#include "support/temporary_folder.hpp"

namespace cingulum {
namespace atomic_file_parts_tests {

using Names = std::vector<std::string>;

std::string random_text(std::size_t size, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::string text(size, '\0');
  for (char& c : text) c = static_cast<char>(random());
  return text;
}

// Parts of uneven sizes, empty ones among them, of at most `largest` bytes.
std::vector<std::uint64_t> cut(std::size_t size, std::size_t largest, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::uint64_t> offsets = {0};
  while (offsets.back() < size) offsets.push_back(std::min<std::uint64_t>(size, offsets.back() + random() % largest));
  return offsets;
}

Status append_in_parts(AtomicFile& file, std::string_view text, std::size_t largest_part, std::uint64_t seed) {
  const std::vector<std::uint64_t> offsets = cut(text.size(), largest_part, seed);
  return file.append_parts(offsets, [&](std::size_t part, std::span<std::byte> place) {
    EXPECT_EQ(place.size(), offsets[part + 1] - offsets[part]);
    if (!place.empty()) std::memcpy(place.data(), text.data() + offsets[part], place.size());
  });
}

constexpr std::size_t mebibyte = std::size_t{1} << 20U;

TEST(AtomicFileParts, parts_pieces_and_corrections_give_the_same_file_whoever_makes_them) {
  const auto pool = ThreadPool::create(4).value();
  constexpr std::uint64_t seed = 20;
  const std::string text = random_text(23 * mebibyte + 4321, seed);
  for (const bool in_memory : {false, true}) {
    for (ThreadPool* const threads : {static_cast<ThreadPool*>(nullptr), pool.get()}) {
      const TemporaryFolder folder;
      FaultyFileLayer layer;
      layer.skip_real_syncs();
      if (in_memory) layer.put_into_memory();
      auto file = AtomicFile::create(folder / "a", {.buffer_bytes = 777, .layer = &layer, .pool = threads});
      ASSERT_TRUE(file);
      std::string expected;
      const auto next = [&](std::size_t size) {
        const std::string_view piece = std::string_view(text).substr(expected.size(), size);
        expected += piece;
        return piece;
      };
      // Headers, large and small parts by turns; what follows a mapped part begins inside a page.
      ASSERT_TRUE(file->append(next(100)));
      ASSERT_TRUE(append_in_parts(*file, next(9 * mebibyte + 5), 300'000, 1));
      ASSERT_TRUE(file->append(next(11)));
      ASSERT_TRUE(append_in_parts(*file, next(50), 7, 2));
      ASSERT_TRUE(append_in_parts(*file, next(0), 7, 3));
      ASSERT_TRUE(append_in_parts(*file, next(2 * mebibyte), 100'000, 4));
      ASSERT_TRUE(append_in_parts(*file, next(9 * mebibyte), 100'000, 5));
      EXPECT_EQ(file->size(), expected.size());
      for (const std::size_t at : {std::size_t{3}, 9 * mebibyte, expected.size() - 5}) {
        expected.replace(at, 5, "other");
        ASSERT_TRUE(file->write_at(at, std::as_bytes(std::span("other", 5))));
      }
      ASSERT_TRUE(file->append(next(1234)));
      ASSERT_TRUE(file->commit());
      EXPECT_EQ(folder.names(), Names{"a"});
      EXPECT_TRUE(folder.content("a") == expected) << in_memory;
      const bool mapped = std::any_of(layer.trace().begin(), layer.trace().end(),
                                      [](const RecordedCall& call) { return call.call == FileCall::map; });
      EXPECT_EQ(mapped, in_memory && threads != nullptr);
    }
  }
}

TEST(AtomicFileParts, all_threads_of_the_pool_make_parts) {
  const auto pool = ThreadPool::create(4).value();
  const TemporaryFolder folder;
  FaultyFileLayer layer;
  layer.put_into_memory();
  auto file = AtomicFile::create(folder / "a", {.sync = false, .layer = &layer, .pool = pool.get()});
  ASSERT_TRUE(file);
  std::mutex mutex;
  std::condition_variable came;
  std::set<std::thread::id> threads;
  const std::vector<std::uint64_t> offsets = {0, mebibyte, 2 * mebibyte, 3 * mebibyte, 4 * mebibyte};
  // Each waits for the others: a file that one thread writes would stand still.
  ASSERT_TRUE(file->append_parts(offsets, [&](std::size_t, std::span<std::byte>) {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    came.notify_all();
    came.wait_for(lock, std::chrono::seconds(60), [&] { return threads.size() == 4; });
  }));
  EXPECT_EQ(threads.size(), 4U);
}

// Every call of the layer fails once, and the disk is full from every call on.
TEST(AtomicFileParts, a_failure_at_any_call_leaves_the_old_file_or_the_new_one) {
  const auto pool = ThreadPool::create(4).value();
  const std::string text = random_text(5 * mebibyte, 21);
  const auto write = [&](const TemporaryFolder& folder, FaultyFileLayer& layer) -> Status {
    layer.put_into_memory();
    layer.skip_real_syncs();
    CGL_TRY_ASSIGN(AtomicFile file,
                   AtomicFile::create(folder / "a", {.force = true, .layer = &layer, .pool = pool.get()}));
    CGL_TRY(file.append("head"));
    CGL_TRY(append_in_parts(file, std::string_view(text).substr(0, 2 * mebibyte), 100'000, 1));
    CGL_TRY(append_in_parts(file, std::string_view(text).substr(2 * mebibyte), 100'000, 2));
    CGL_TRY(file.append("tail"));
    return file.commit();
  };
  std::size_t calls = 0;
  {
    const TemporaryFolder folder;
    FaultyFileLayer layer;
    ASSERT_TRUE(write(folder, layer));
    calls = layer.trace().size();
    ASSERT_TRUE(folder.content("a") == "head" + text + "tail");
  }
  std::size_t refused = 0;
  for (const bool lasting : {false, true}) {
    for (std::size_t call = 0; call < calls; ++call) {
      const TemporaryFolder folder;
      folder.put("a", "old");
      FaultyFileLayer layer({.at_call = call, .error = ENOSPC, .lasting = lasting});
      const Status status = write(folder, layer);
      EXPECT_EQ(folder.names(), Names{"a"}) << call;
      const std::string found = folder.content("a");
      // How many calls there are depends on what was allocated ahead. One that fails after the file has its name says
      // so.
      const bool complete = status || status.error().message().find("the new content is complete") != std::string::npos;
      EXPECT_TRUE(found == (complete ? "head" + text + "tail" : "old")) << call;
      if (status) continue;
      ++refused;
      EXPECT_EQ(status.error().kind(), ErrorKind::io) << status.error().message();
      EXPECT_NE(status.error().message().find("writing " + (folder / "a").native()), std::string::npos)
          << status.error().message();
    }
  }
  EXPECT_GT(refused, calls / 2) << calls;
}

TEST(AtomicFileParts, memory_that_is_missing_only_ahead_is_no_failure) {
  const auto pool = ThreadPool::create(4).value();
  const std::string text = random_text(12 * mebibyte, 22);
  // A file system with room for the content and not a byte more.
  class SmallMemory final : public FileLayer {
   public:
    explicit SmallMemory(std::uint64_t room) : room_(room) {}
    int create(const char* path, mode_t permissions) override { return real_.create(path, permissions); }
    int lock(int descriptor) override { return real_.lock(descriptor); }
    ssize_t write(int descriptor, const void* data, std::size_t size) override {
      return real_.write(descriptor, data, size);
    }
    ssize_t write_at(int descriptor, const void* data, std::size_t size, std::uint64_t offset) override {
      return real_.write_at(descriptor, data, size, offset);
    }
    int sync(int) override { return 0; }
    int close(int descriptor) override { return real_.close(descriptor); }
    int rename(const char* from, const char* to) override { return real_.rename(from, to); }
    int rename_no_replace(const char* from, const char* to) override { return real_.rename_no_replace(from, to); }
    int link(const char* from, const char* to) override { return real_.link(from, to); }
    int unlink(const char* path) override { return real_.unlink(path); }
    int sync_folder(const char*) override { return 0; }
    int state(const char* path, FileState& state) override { return real_.state(path, state); }
    int resolve(const char* path, std::string& resolved) override { return real_.resolve(path, resolved); }
    int free_bytes(const char* path, std::uint64_t& bytes) override { return real_.free_bytes(path, bytes); }
    int list_folder(const char* path, std::vector<std::string>& names) override {
      return real_.list_folder(path, names);
    }
    int open_existing(const char* path) override { return real_.open_existing(path); }
    bool is_in_memory(int) override { return true; }
    int allocate(int descriptor, std::uint64_t offset, std::uint64_t size) override {
      if (offset + size > room_) return -ENOSPC;
      return real_.allocate(descriptor, offset, size);
    }
    int map(int descriptor, std::uint64_t offset, std::size_t size, std::byte*& bytes) override {
      return real_.map(descriptor, offset, size, bytes);
    }
    void unmap(std::byte* bytes, std::size_t size) override { real_.unmap(bytes, size); }
    int cut(int descriptor, std::uint64_t size) override { return real_.cut(descriptor, size); }

   private:
    FileLayer& real_ = FileLayer::system();
    const std::uint64_t room_;
  };
  for (const std::size_t missing : {std::size_t{0}, std::size_t{1}}) {
    const TemporaryFolder folder;
    SmallMemory layer(text.size() - missing);
    auto file = AtomicFile::create(folder / "a", {.layer = &layer, .pool = pool.get()});
    ASSERT_TRUE(file);
    Status status;
    for (std::size_t i = 0; i < 4 && status; ++i) {
      status = append_in_parts(*file, std::string_view(text).substr(i * 3 * mebibyte, 3 * mebibyte), 200'000, i);
    }
    if (missing > 0) {
      ASSERT_FALSE(status);
      EXPECT_NE(status.error().message().find("no space left"), std::string::npos) << status.error().message();
      EXPECT_EQ(folder.names(), Names{});
      EXPECT_FALSE(file->append("more"));
      continue;
    }
    ASSERT_TRUE(status) << status.error().message();
    ASSERT_TRUE(file->commit());
    EXPECT_TRUE(folder.content("a") == text);
  }
}

TEST(AtomicFileParts, what_a_thread_throws_comes_out_and_leaves_nothing) {
  const auto pool = ThreadPool::create(4).value();
  for (const bool in_memory : {false, true}) {
    const TemporaryFolder folder;
    {
      FaultyFileLayer layer;
      if (in_memory) layer.put_into_memory();
      auto file = AtomicFile::create(folder / "a", {.layer = &layer, .pool = pool.get()});
      ASSERT_TRUE(file);
      const std::vector<std::uint64_t> offsets = {0, mebibyte, 2 * mebibyte};
      const Status status = file->append_parts(offsets, [&](std::size_t part, std::span<std::byte>) {
        if (part == 1) throw std::bad_alloc();
      });
      ASSERT_FALSE(status);
      EXPECT_EQ(status.error().kind(), ErrorKind::out_of_memory);
    }
    EXPECT_EQ(folder.names(), Names{});
  }
}

}  // namespace atomic_file_parts_tests
}  // namespace cingulum
