#include "device/device.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "support/each_device.hpp"

namespace cingulum {
namespace {

using testing::fails_with;

std::vector<std::byte> counting_bytes(std::size_t count) {
  std::vector<std::byte> bytes(count);
  for (std::size_t i = 0; i < count; ++i) bytes[i] = static_cast<std::byte>(i * 7 + i / 251);
  return bytes;
}

class DeviceMemory : public testing::EachDevice {};
CGL_FOR_EACH_DEVICE(DeviceMemory);

TEST_P(DeviceMemory, bytes_come_back_as_they_went_for_sizes_around_words_and_pieces) {
  for (const std::size_t size : {1u, 2u, 3u, 4u, 5u, 63u, 64u, 65u, 4096u, 1000003u}) {
    const auto sent = counting_bytes(size);
    ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(size));
    EXPECT_EQ(buffer->bytes(), size);
    ASSERT_OK(queue().upload(*buffer, 0, sent));
    std::vector<std::byte> received(size);
    ASSERT_OK(queue().download(received, *buffer, 0));
    ASSERT_OK(queue().synchronise());
    EXPECT_EQ(received, sent) << size;
  }
}

TEST_P(DeviceMemory, transfers_larger_than_a_staging_piece_arrive_whole) {
  const auto sent = counting_bytes((std::size_t{70} << 20) + 5);
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(sent.size()));
  ASSERT_OK(queue().upload(*buffer, 0, sent));
  std::vector<std::byte> received(sent.size());
  ASSERT_OK(queue().download(received, *buffer, 0));
  ASSERT_OK(queue().synchronise());
  EXPECT_TRUE(received == sent);
}

// A model in host memory undergoes the same random uploads, copies and fills as the buffers on the device.
TEST_P(DeviceMemory, random_uploads_copies_and_fills_at_any_offset_equal_a_host_model) {
  constexpr std::size_t size = 257;
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  std::array<std::vector<std::byte>, 2> model{counting_bytes(size), counting_bytes(size)};
  std::array<std::unique_ptr<Buffer>, 2> buffers;
  for (std::size_t i = 0; i < 2; ++i) {
    ASSERT_OK_AND_ASSIGN(buffers[i], device().allocate(size));
    ASSERT_OK(queue().upload(*buffers[i], 0, model[i]));
  }
  for (int round = 0; round < 200; ++round) {
    const std::size_t to = random() % 2;
    const std::size_t from = random() % 2;
    const std::size_t bytes = random() % (size / 2);
    const std::size_t to_offset = random() % (size - bytes);
    const std::size_t from_offset = random() % (size - bytes);
    auto* const target = model[to].data() + to_offset;
    switch (random() % 3) {
      case 0: {
        std::vector<std::byte> data(bytes);
        for (auto& byte : data) byte = static_cast<std::byte>(random());
        ASSERT_OK(queue().upload(*buffers[to], to_offset, data));
        std::copy(data.begin(), data.end(), target);
        break;
      }
      case 1: {
        const bool overlap =
            to == from && to_offset < from_offset + bytes && from_offset < to_offset + bytes && bytes > 0;
        const Status copied = queue().copy(*buffers[to], to_offset, *buffers[from], from_offset, bytes);
        if (overlap) {
          EXPECT_TRUE(fails_with(copied, ErrorKind::invalid_argument, "overlap"));
        } else {
          ASSERT_OK(copied);
          const std::vector<std::byte> data(model[from].data() + from_offset, model[from].data() + from_offset + bytes);
          std::copy(data.begin(), data.end(), target);
        }
        break;
      }
      default: {
        const auto value = static_cast<std::byte>(random() % 3 == 0 ? 0 : random());
        ASSERT_OK(queue().fill(*buffers[to], to_offset, bytes, value));
        std::fill(target, target + bytes, value);
      }
    }
  }
  for (std::size_t i = 0; i < 2; ++i) {
    std::vector<std::byte> received(size);
    ASSERT_OK(queue().download(received, *buffers[i], 0));
    ASSERT_OK(queue().synchronise());
    EXPECT_EQ(received, model[i]);
    const std::size_t offset = random() % size;
    std::vector<std::byte> part(size - offset);
    ASSERT_OK(queue().download(part, *buffers[i], offset));
    ASSERT_OK(queue().synchronise());
    EXPECT_TRUE(std::equal(part.begin(), part.end(), model[i].begin() + static_cast<std::ptrdiff_t>(offset)));
  }
}

TEST_P(DeviceMemory, ranges_outside_a_buffer_are_refused_with_the_numbers) {
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(16));
  std::vector<std::byte> data(8);
  EXPECT_TRUE(fails_with(queue().upload(*buffer, 9, data), ErrorKind::invalid_argument, "bytes 9 to 17"));
  EXPECT_TRUE(fails_with(queue().download(data, *buffer, 17), ErrorKind::invalid_argument, "outside a buffer of 16"));
  EXPECT_TRUE(
      fails_with(queue().fill(*buffer, 8, ~std::uint64_t{0}, std::byte{1}), ErrorKind::invalid_argument, "outside"));
  EXPECT_TRUE(fails_with(queue().copy(*buffer, 0, *buffer, 8, 9), ErrorKind::invalid_argument, "copy from"));
  ASSERT_OK(queue().upload(*buffer, 16, {}));
}

TEST_P(DeviceMemory, a_request_without_bytes_or_beyond_all_memory_is_refused_and_the_device_goes_on) {
  EXPECT_TRUE(fails_with(device().allocate(0), ErrorKind::invalid_argument, "at least one byte"));
  const std::uint64_t used = device().budget().used_bytes();
  EXPECT_TRUE(fails_with(device().allocate(std::uint64_t{1} << 60), ErrorKind::out_of_memory, device().id()));
  EXPECT_EQ(device().budget().used_bytes(), used);
  ASSERT_OK(device().allocate(4096));
}

TEST_P(DeviceMemory, the_memory_limit_is_kept_and_refusals_name_need_rest_and_way_out) {
  const std::uint64_t base = device().budget().used_bytes();
  device().budget().set_limit(base + 10000);
  {
    ASSERT_OK_AND_ASSIGN(const auto first, device().allocate(6000));
    const auto refused = device().allocate(4001);
    EXPECT_TRUE(fails_with(refused, ErrorKind::out_of_memory, "CINGULUM_MEMORY_LIMIT"));
    EXPECT_TRUE(fails_with(refused, ErrorKind::out_of_memory, "3.9 KiB needed"));
    ASSERT_OK(device().allocate(4000));
    ASSERT_OK_AND_ASSIGN(const MemoryState state, device().memory());
    EXPECT_EQ(state.limit_bytes, base + 10000);
    EXPECT_LE(state.free_bytes.value(), 4000u);
  }
  device().budget().forget_peak();
  ASSERT_OK(device().allocate(10000));
  EXPECT_EQ(device().budget().peak_bytes(), base + 10000);
  device().budget().set_limit(std::nullopt);
  EXPECT_EQ(device().budget().used_bytes(), base);
}

TEST_P(DeviceMemory, whichever_allocation_fails_nothing_leaks_and_the_next_try_succeeds) {
  const std::uint64_t base = device().budget().used_bytes();
  for (std::uint64_t n = 1; n <= 4; ++n) {
    device().budget().fail_nth_allocation(n);
    std::vector<std::unique_ptr<Buffer>> held;
    std::uint64_t failures = 0;
    for (int i = 0; i < 4; ++i) {
      auto buffer = device().allocate(1000);
      if (buffer) {
        held.push_back(std::move(*buffer));
      } else {
        EXPECT_TRUE(fails_with(buffer, ErrorKind::out_of_memory, "injected"));
        EXPECT_EQ(static_cast<std::uint64_t>(i) + 1, n);
        ++failures;
      }
    }
    EXPECT_EQ(failures, 1u);
    EXPECT_EQ(device().budget().used_bytes(), base + 3000);
  }
  EXPECT_EQ(device().budget().used_bytes(), base);
  device().budget().fail_nth_allocation(0);
}

TEST_P(DeviceMemory, host_memory_of_each_kind_is_given_or_refused_as_the_capabilities_say) {
  for (const HostMemoryKind kind : {HostMemoryKind::pageable, HostMemoryKind::pinned, HostMemoryKind::mapped}) {
    SCOPED_TRACE(host_memory_kind_name(kind));
    const bool expected = kind == HostMemoryKind::pageable ||
                          (kind == HostMemoryKind::pinned && device().capabilities().pinned_host_memory) ||
                          (kind == HostMemoryKind::mapped && device().capabilities().mapped_host_memory);
    auto memory = device().allocate_host(100000, kind);
    ASSERT_EQ(memory.has_value(), expected);
    if (!memory) continue;
    EXPECT_EQ((*memory)->bytes().size(), 100000u);
    EXPECT_EQ((*memory)->device_pointer() != nullptr, kind == HostMemoryKind::mapped);
    std::fill((*memory)->bytes().begin(), (*memory)->bytes().end(), std::byte{42});
    ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(100000));
    ASSERT_OK(queue().upload(*buffer, 0, (*memory)->bytes()));
    ASSERT_OK(queue().synchronise());
    std::fill((*memory)->bytes().begin(), (*memory)->bytes().end(), std::byte{0});
    ASSERT_OK(queue().download((*memory)->bytes(), *buffer, 0));
    ASSERT_OK(queue().synchronise());
    const auto bytes = (*memory)->bytes();
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](std::byte value) { return value == std::byte{42}; }));
  }
}

TEST_P(DeviceMemory, an_event_waited_for_means_that_downloads_before_it_have_arrived) {
  const auto sent = counting_bytes(300000);
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(sent.size()));
  ASSERT_OK_AND_ASSIGN(const auto before, queue().record());
  ASSERT_OK(queue().upload(*buffer, 0, sent));
  std::vector<std::byte> received(sent.size());
  ASSERT_OK(queue().download(received, *buffer, 0));
  ASSERT_OK_AND_ASSIGN(const auto after, queue().record());
  ASSERT_OK(after->wait());
  EXPECT_EQ(received, sent);
  ASSERT_OK_AND_ASSIGN(const bool done, after->done());
  EXPECT_TRUE(done);
  const auto elapsed = after->milliseconds_since(*before);
  ASSERT_EQ(elapsed.has_value(), device().capabilities().device_timestamps) << testing::message_of(elapsed);
  if (elapsed) {
    EXPECT_GE(*elapsed, 0.0);
    EXPECT_LT(*elapsed, 60000.0);
  }
}

TEST_P(DeviceMemory, an_event_that_is_done_means_that_downloads_before_it_have_arrived) {
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(4));
  ASSERT_OK(queue().fill(*buffer, 0, 4, std::byte{7}));
  std::byte received{0};
  ASSERT_OK(queue().download(std::span(&received, 1), *buffer, 0));
  ASSERT_OK_AND_ASSIGN(const auto event, queue().record());
  while (true) {
    ASSERT_OK_AND_ASSIGN(const bool done, event->done());
    if (done) break;
  }
  EXPECT_EQ(received, std::byte{7});
}

TEST_P(DeviceMemory, mapped_memory_of_another_device_is_refused) {
  bool tried = false;
  for (Device* other : testing::registry().devices()) {
    if (other == &device() || !other->capabilities().mapped_host_memory) continue;
    ASSERT_OK_AND_ASSIGN(const auto foreign, other->allocate_host(4096, HostMemoryKind::mapped));
    EXPECT_FALSE(device().buffer_over(*foreign)) << other->id();
    tried = true;
  }
  if (!tried) GTEST_SKIP() << "no other device has mapped memory";
}

TEST_P(DeviceMemory, a_second_queue_sees_what_the_first_did_before_the_event) {
  ASSERT_OK_AND_ASSIGN(const auto other, device().create_queue());
  const auto sent = counting_bytes(1 << 20);
  ASSERT_OK_AND_ASSIGN(const auto buffer, device().allocate(sent.size()));
  ASSERT_OK_AND_ASSIGN(const auto copy, device().allocate(sent.size()));
  for (int round = 0; round < 10; ++round) {
    ASSERT_OK(queue().fill(*buffer, 0, sent.size(), static_cast<std::byte>(round)));
    ASSERT_OK(queue().upload(*buffer, 16, std::span(sent).first(sent.size() - 16)));
    ASSERT_OK_AND_ASSIGN(const auto ready, queue().record());
    ASSERT_OK(other->wait_for(*ready));
    ASSERT_OK(other->copy(*copy, 0, *buffer, 0, sent.size()));
    std::vector<std::byte> received(sent.size());
    ASSERT_OK(other->download(received, *copy, 0));
    ASSERT_OK(other->synchronise());
    EXPECT_EQ(received[0], static_cast<std::byte>(round));
    EXPECT_TRUE(std::equal(received.begin() + 16, received.end(), sent.begin()));
  }
}

TEST_P(DeviceMemory, memory_goes_to_every_other_device_and_back) {
  const auto sent = counting_bytes((20u << 20) + 3);
  ASSERT_OK_AND_ASSIGN(const auto here, device().allocate(sent.size()));
  ASSERT_OK(queue().upload(*here, 0, sent));
  for (Device* other : testing::registry().devices()) {
    SCOPED_TRACE(other->id());
    ASSERT_OK_AND_ASSIGN(const auto other_queue, other->create_queue());
    ASSERT_OK_AND_ASSIGN(const auto there, other->allocate(sent.size()));
    ASSERT_OK(copy_between(*other_queue, *there, 0, queue(), *here, 0, sent.size()));
    ASSERT_OK(queue().fill(*here, 0, sent.size(), std::byte{9}));
    ASSERT_OK(copy_between(queue(), *here, 0, *other_queue, *there, 0, sent.size()));
    std::vector<std::byte> received(sent.size());
    ASSERT_OK(queue().download(received, *here, 0));
    ASSERT_OK(queue().synchronise());
    EXPECT_TRUE(received == sent);
    if (other != &device()) {
      EXPECT_TRUE(fails_with(queue().copy(*here, 0, *there, 0, 1), ErrorKind::invalid_argument, "copy_between"));
    }
  }
}

TEST_P(DeviceMemory, many_threads_may_allocate_and_free_at_once) {
  const std::uint64_t base = device().budget().used_bytes();
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const auto buffer = device().allocate(static_cast<std::uint64_t>(1000 * t + i + 1));
        if (!buffer) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(device().budget().used_bytes(), base);
}

}  // namespace
}  // namespace cingulum
