#include "device/unified_buffer.hpp"

#include <dlpack/dlpack.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "support/each_device.hpp"

namespace cingulum {
namespace {

using testing::fails_with;
using enum BufferState;

class UnifiedBuffers : public testing::EachDevice {
 protected:
  [[nodiscard]] UnifiedBuffer make(std::vector<std::int64_t> shape = {4, 25}) {
    auto buffer = UnifiedBuffer::create(queue(), element_type_of<float>(), std::move(shape));
    EXPECT_TRUE(buffer) << testing::message_of(buffer);
    return std::move(*buffer);
  }
  // With one memory for both sides every allocated state is `synchronised`.
  [[nodiscard]] BufferState expected(BufferState state) const {
    return device().capabilities().shares_host_memory ? synchronised : state;
  }
  // What a kernel would leave behind: every element of the device copy is `value`.
  void write_on_device(UnifiedBuffer& buffer, float value) {
    auto view = buffer.device_write();
    ASSERT_TRUE(view) << testing::message_of(view);
    const std::vector<float> values(buffer.size(), value);
    ASSERT_OK(upload(queue(), *view->buffer, std::span<const float>(values)));
    ASSERT_OK(queue().synchronise());
  }
  [[nodiscard]] std::vector<float> read_on_device(UnifiedBuffer& buffer) {
    auto view = buffer.device_read();
    EXPECT_TRUE(view) << testing::message_of(view);
    std::vector<float> values(buffer.size());
    EXPECT_TRUE(download(queue(), std::span(values), *view->buffer));
    EXPECT_TRUE(queue().synchronise());
    return values;
  }
};
CGL_FOR_EACH_DEVICE(UnifiedBuffers);

TEST_P(UnifiedBuffers, know_their_shape_and_refuse_shapes_that_cannot_be) {
  const UnifiedBuffer buffer = make({3, 5, 7});
  EXPECT_EQ(buffer.size(), 105u);
  EXPECT_EQ(buffer.bytes(), 420u);
  EXPECT_EQ(buffer.state(), uninitialised);
  EXPECT_EQ(buffer.type().name(), "float32");
  const ElementType type = element_type_of<float>();
  EXPECT_TRUE(fails_with(UnifiedBuffer::create(queue(), type, {3, 0}), ErrorKind::invalid_argument, "extent of 0"));
  EXPECT_TRUE(fails_with(UnifiedBuffer::create(queue(), type, {-1}), ErrorKind::invalid_argument, "extent of -1"));
  EXPECT_TRUE(
      fails_with(UnifiedBuffer::create(queue(), type, {1LL << 40, 1LL << 40}), ErrorKind::invalid_argument, "2^63"));
}

TEST_P(UnifiedBuffers, before_allocation_nothing_can_be_read_written_or_marked) {
  UnifiedBuffer buffer = make();
  std::vector<std::byte> bytes(buffer.bytes());
  for (const Status& refused :
       {buffer.host_read<float>().map([](auto&&) {}), buffer.host_write<float>().map([](auto&&) {}),
        buffer.device_read().map([](auto&&) {}), buffer.device_write().map([](auto&&) {}), buffer.mark_host_dirty(),
        buffer.mark_device_dirty(), buffer.synchronise(), buffer.copy_to(bytes), buffer.ensure_on_host(),
        buffer.ensure_on_device()}) {
    EXPECT_TRUE(fails_with(refused, ErrorKind::invalid_state, "not allocated"));
  }
}

TEST_P(UnifiedBuffers, allocate_on_either_side_or_both_and_start_with_zeros) {
  for (const auto& [host, on_device, state] : {std::tuple{true, true, synchronised}, std::tuple{true, false, host_only},
                                               std::tuple{false, true, device_only}}) {
    UnifiedBuffer buffer = make();
    ASSERT_OK(buffer.allocate(host, on_device));
    EXPECT_EQ(buffer.state(), expected(state));
    EXPECT_TRUE(fails_with(buffer.allocate(), ErrorKind::invalid_state, "already allocated"));
    ASSERT_OK_AND_ASSIGN(const auto view, buffer.host_read<float>());
    EXPECT_EQ(std::count(view.elements.begin(), view.elements.end(), 0.0f), 100);
  }
  EXPECT_TRUE(fails_with(make().allocate(false, false), ErrorKind::invalid_argument, "neither"));
}

TEST_P(UnifiedBuffers, go_through_every_transition_of_the_table) {
  UnifiedBuffer buffer = make();
  // uninitialised -> fill allocates by itself.
  ASSERT_OK(buffer.fill(std::byte{0}));
  EXPECT_EQ(buffer.state(), expected(host_only));
  // host_only -> device access allocates and copies.
  { ASSERT_OK(buffer.device_read()); }
  EXPECT_EQ(buffer.state(), synchronised);
  // synchronised -> host write -> host_dirty.
  {
    ASSERT_OK_AND_ASSIGN(const auto view, buffer.host_write<float>());
    view.elements[7] = 5.0f;
  }
  EXPECT_EQ(buffer.state(), expected(host_dirty));
  // host_dirty -> device access copies -> synchronised.
  EXPECT_EQ(read_on_device(buffer)[7], 5.0f);
  EXPECT_EQ(buffer.state(), synchronised);
  // synchronised -> device write -> device_dirty.
  write_on_device(buffer, 3.0f);
  EXPECT_EQ(buffer.state(), expected(device_dirty));
  // device_dirty -> host access copies -> synchronised.
  {
    ASSERT_OK_AND_ASSIGN(const auto view, buffer.host_read<float>());
    EXPECT_EQ(view.elements[7], 3.0f);
  }
  EXPECT_EQ(buffer.state(), synchronised);
  // marks for outside writers.
  ASSERT_OK(buffer.mark_host_dirty());
  EXPECT_EQ(buffer.state(), expected(host_dirty));
  ASSERT_OK(buffer.synchronise());
  EXPECT_EQ(buffer.state(), synchronised);
  ASSERT_OK(buffer.mark_device_dirty());
  EXPECT_EQ(buffer.state(), expected(device_dirty));
  ASSERT_OK(buffer.synchronise());
  EXPECT_EQ(buffer.state(), synchronised);
  // copy_from -> host_dirty; ensure_on_device -> synchronised.
  const std::vector<float> values(buffer.size(), 2.5f);
  ASSERT_OK(buffer.copy_from(std::as_bytes(std::span(values))));
  EXPECT_EQ(buffer.state(), expected(host_dirty));
  ASSERT_OK(buffer.ensure_on_device());
  EXPECT_EQ(buffer.state(), synchronised);
  EXPECT_EQ(read_on_device(buffer), values);
  // free -> uninitialised, and again from the start.
  ASSERT_OK(buffer.free());
  EXPECT_EQ(buffer.state(), uninitialised);
  // device_only -> host access allocates and copies.
  ASSERT_OK(buffer.allocate(false, true));
  write_on_device(buffer, 8.0f);
  EXPECT_EQ(buffer.state(), expected(device_only));
  {
    ASSERT_OK_AND_ASSIGN(const auto view, buffer.host_read<float>());
    EXPECT_EQ(view.elements[99], 8.0f);
  }
  EXPECT_EQ(buffer.state(), synchronised);
}

TEST_P(UnifiedBuffers, an_upload_under_way_is_not_disturbed_by_the_next_write) {
  UnifiedBuffer buffer = make({4 << 20});
  ASSERT_OK(buffer.allocate());
  for (int round = 1; round <= 20; ++round) {
    {
      ASSERT_OK_AND_ASSIGN(const auto view, buffer.host_write<float>());
      std::fill(view.elements.begin(), view.elements.end(), static_cast<float>(round));
    }
    ASSERT_OK_AND_ASSIGN(const auto copy, device().allocate(buffer.bytes()));
    {
      ASSERT_OK_AND_ASSIGN(const auto view, buffer.device_read());
      ASSERT_OK(queue().copy(*copy, 0, *view.buffer, 0, buffer.bytes()));
    }
    // At once, while the upload may be running.
    ASSERT_OK(buffer.fill(std::byte{0}));
    std::vector<float> values(buffer.size());
    ASSERT_OK(download(queue(), std::span(values), *copy));
    ASSERT_OK(queue().synchronise());
    ASSERT_TRUE(
        std::all_of(values.begin(), values.end(), [&](float value) { return value == static_cast<float>(round); }));
  }
}

TEST_P(UnifiedBuffers, copy_only_when_a_side_is_old) {
  UnifiedBuffer buffer = make();
  ASSERT_OK(buffer.fill(std::byte{1}));
  for (int i = 0; i < 3; ++i) ASSERT_OK(buffer.device_read());
  for (int i = 0; i < 3; ++i) ASSERT_OK(buffer.host_read<float>());
  const std::uint64_t copies = device().capabilities().shares_host_memory ? 0 : 1;
  EXPECT_EQ(buffer.uploads(), copies);
  EXPECT_EQ(buffer.downloads(), 0u);
  write_on_device(buffer, 1.0f);
  write_on_device(buffer, 2.0f);
  for (int i = 0; i < 3; ++i) ASSERT_OK(buffer.host_read<float>());
  EXPECT_EQ(buffer.uploads(), copies);
  EXPECT_EQ(buffer.downloads(), copies);
}

TEST_P(UnifiedBuffers, refuse_accesses_that_contradict_a_view_that_is_held) {
  UnifiedBuffer buffer = make();
  ASSERT_OK(buffer.allocate());
  {
    ASSERT_OK_AND_ASSIGN(const auto writing, buffer.host_write<float>());
    EXPECT_TRUE(fails_with(buffer.device_read(), ErrorKind::invalid_state, "written on the host"));
    EXPECT_TRUE(fails_with(buffer.host_read<float>(), ErrorKind::invalid_state, "written on the host"));
    EXPECT_TRUE(fails_with(buffer.free(), ErrorKind::invalid_state, "release that view"));
    // What the view writes later must not be taken for synchronised.
    EXPECT_TRUE(fails_with(buffer.synchronise(), ErrorKind::invalid_state, "written on the host"));
    EXPECT_TRUE(fails_with(buffer.ensure_on_device(), ErrorKind::invalid_state, "written on the host"));
  }
  {
    ASSERT_OK_AND_ASSIGN(const auto reading, buffer.host_read<float>());
    ASSERT_OK(buffer.device_read());
    ASSERT_OK(buffer.host_read<float>());
    EXPECT_TRUE(fails_with(buffer.device_write(), ErrorKind::invalid_state, "read on the host"));
    EXPECT_TRUE(fails_with(buffer.fill(std::byte{1}), ErrorKind::invalid_state, "read on the host"));
  }
  {
    ASSERT_OK_AND_ASSIGN(const auto writing, buffer.device_write());
    EXPECT_TRUE(fails_with(buffer.host_read<float>(), ErrorKind::invalid_state, "written on the device"));
    EXPECT_TRUE(fails_with(buffer.device_write(), ErrorKind::invalid_state, "written on the device"));
    EXPECT_TRUE(fails_with(buffer.ensure_on_host(), ErrorKind::invalid_state, "written on the device"));
  }
  ASSERT_OK(buffer.host_write<float>());
}

TEST_P(UnifiedBuffers, refuse_marks_that_would_lose_the_other_sides_data) {
  UnifiedBuffer buffer = make();
  ASSERT_OK(buffer.allocate());
  write_on_device(buffer, 4.0f);
  if (!device().capabilities().shares_host_memory) {
    EXPECT_TRUE(fails_with(buffer.mark_host_dirty(), ErrorKind::invalid_state, "one of the two would be lost"));
    ASSERT_OK(buffer.synchronise());
    ASSERT_OK(buffer.mark_host_dirty());
    EXPECT_TRUE(fails_with(buffer.mark_device_dirty(), ErrorKind::invalid_state, "one of the two would be lost"));
  } else {
    ASSERT_OK(buffer.mark_host_dirty());
    ASSERT_OK(buffer.mark_device_dirty());
  }
  std::vector<std::byte> bytes(buffer.bytes());
  ASSERT_OK(buffer.copy_to(bytes));
  EXPECT_EQ(reinterpret_cast<const float*>(bytes.data())[3], 4.0f);
}

TEST_P(UnifiedBuffers, refuse_views_of_another_type_and_copies_of_another_size) {
  UnifiedBuffer buffer = make();
  ASSERT_OK(buffer.allocate());
  EXPECT_TRUE(
      fails_with(buffer.host_read<double>(), ErrorKind::invalid_argument, "float64 elements on a buffer of float32"));
  EXPECT_TRUE(fails_with(buffer.host_write<std::int32_t>(), ErrorKind::invalid_argument, "int32"));
  std::vector<std::byte> bytes(buffer.bytes() + 1);
  EXPECT_TRUE(fails_with(buffer.copy_from(bytes), ErrorKind::invalid_argument, "401 bytes into a buffer of 400"));
  EXPECT_TRUE(fails_with(buffer.copy_to(bytes), ErrorKind::invalid_argument, "400"));
}

TEST_P(UnifiedBuffers, a_failed_allocation_leaves_the_buffer_usable) {
  UnifiedBuffer buffer = make();
  device().budget().fail_nth_allocation(1);
  EXPECT_TRUE(fails_with(buffer.allocate(), ErrorKind::out_of_memory, "injected"));
  EXPECT_EQ(buffer.state(), uninitialised);
  ASSERT_OK(buffer.allocate());
  EXPECT_EQ(buffer.state(), synchronised);
  ASSERT_OK_AND_ASSIGN(const auto view, buffer.host_read<float>());
  EXPECT_EQ(view.elements[99], 0.0f);
}

TEST_P(UnifiedBuffers, give_their_host_side_to_dlpack_and_live_as_long_as_the_tensor) {
  DLManagedTensor* tensor = nullptr;
  {
    UnifiedBuffer buffer = make();
    ASSERT_OK(buffer.allocate());
    write_on_device(buffer, 6.0f);
    ASSERT_OK_AND_ASSIGN(tensor, buffer.to_dlpack(UnifiedBuffer::Side::host));
    ASSERT_OK(buffer.free());
  }
  EXPECT_EQ(tensor->dl_tensor.device.device_type, kDLCPU);
  ASSERT_EQ(tensor->dl_tensor.ndim, 2);
  EXPECT_EQ(tensor->dl_tensor.shape[0], 4);
  EXPECT_EQ(tensor->dl_tensor.shape[1], 25);
  EXPECT_EQ(tensor->dl_tensor.dtype.code, kDLFloat);
  EXPECT_EQ(tensor->dl_tensor.dtype.bits, 32);
  EXPECT_EQ(static_cast<float*>(tensor->dl_tensor.data)[99], 6.0f);

  // And back in: the same memory, no copy.
  ASSERT_OK_AND_ASSIGN(UnifiedBuffer adopted, UnifiedBuffer::from_dlpack(queue(), tensor));
  EXPECT_EQ(adopted.state(), expected(host_only));
  {
    ASSERT_OK_AND_ASSIGN(const auto view, adopted.host_read<float>());
    EXPECT_EQ(view.elements.data(), tensor->dl_tensor.data);
  }
  EXPECT_EQ(read_on_device(adopted)[50], 6.0f);
}

TEST_P(UnifiedBuffers, give_their_device_side_to_dlpack_where_it_has_an_address) {
  UnifiedBuffer buffer = make();
  ASSERT_OK(buffer.allocate());
  write_on_device(buffer, 9.0f);
  const auto tensor = buffer.to_dlpack(UnifiedBuffer::Side::device);
  if (is(Backend::webgpu)) {
    EXPECT_TRUE(fails_with(tensor, ErrorKind::unavailable, "no address"));
    return;
  }
  ASSERT_OK(tensor);
  EXPECT_EQ((*tensor)->dl_tensor.device.device_type, is(Backend::cuda) ? kDLCUDA : kDLCPU);
  ASSERT_OK_AND_ASSIGN(UnifiedBuffer adopted, UnifiedBuffer::from_dlpack(queue(), *tensor));
  EXPECT_EQ(adopted.state(), expected(device_only));
  ASSERT_OK_AND_ASSIGN(const auto view, adopted.host_read<float>());
  EXPECT_EQ(view.elements[0], 9.0f);
}

struct ForeignTensor {
  std::vector<float> data = std::vector<float>(12, 1.5f);
  std::int64_t shape[2] = {3, 4};
  std::int64_t strides[2] = {4, 1};
  int deletions = 0;
  DLManagedTensor tensor{};

  ForeignTensor() {
    tensor.dl_tensor.data = data.data();
    tensor.dl_tensor.device = {kDLCPU, 0};
    tensor.dl_tensor.ndim = 2;
    tensor.dl_tensor.dtype = {kDLFloat, 32, 1};
    tensor.dl_tensor.shape = shape;
    tensor.dl_tensor.strides = strides;
    tensor.manager_ctx = this;
    tensor.deleter = [](DLManagedTensor* self) { ++static_cast<ForeignTensor*>(self->manager_ctx)->deletions; };
  }
};

TEST_P(UnifiedBuffers, take_contiguous_tensors_and_release_them_once_refused_ones_stay_the_callers) {
  ForeignTensor foreign;
  {
    ASSERT_OK_AND_ASSIGN(UnifiedBuffer buffer, UnifiedBuffer::from_dlpack(queue(), &foreign.tensor));
    EXPECT_EQ(read_on_device(buffer)[11], 1.5f);
    EXPECT_EQ(foreign.deletions, 0);
  }
  EXPECT_EQ(foreign.deletions, 1);

  ForeignTensor refused;
  const auto take = [&] { return UnifiedBuffer::from_dlpack(queue(), &refused.tensor); };
  refused.strides[0] = 5;
  EXPECT_TRUE(fails_with(take(), ErrorKind::invalid_argument, "contiguous"));
  refused.strides[0] = 4;
  refused.tensor.dl_tensor.dtype.lanes = 4;
  EXPECT_TRUE(fails_with(take(), ErrorKind::invalid_argument, "lanes"));
  refused.tensor.dl_tensor.dtype.lanes = 1;
  refused.tensor.dl_tensor.dtype.code = kDLOpaqueHandle;
  EXPECT_TRUE(fails_with(take(), ErrorKind::invalid_argument, "type code 3"));
  refused.tensor.dl_tensor.dtype.code = kDLFloat;
  refused.tensor.dl_tensor.byte_offset = 2;
  EXPECT_TRUE(fails_with(take(), ErrorKind::invalid_argument, "not aligned"));
  refused.tensor.dl_tensor.byte_offset = 0;
  refused.shape[0] = refused.shape[1] = std::int64_t{1} << 62;
  EXPECT_TRUE(fails_with(take(), ErrorKind::invalid_argument, "2^63"));
  refused.shape[0] = 3;
  refused.shape[1] = 4;
  refused.tensor.dl_tensor.device = {kDLROCM, 3};
  EXPECT_TRUE(fails_with(take(), ErrorKind::invalid_argument, "device type 10 number 3"));
  refused.tensor.dl_tensor.device = {kDLCPU, 0};
  refused.tensor.dl_tensor.data = nullptr;
  EXPECT_TRUE(fails_with(take(), ErrorKind::invalid_argument, "no data"));
  EXPECT_TRUE(fails_with(UnifiedBuffer::from_dlpack(queue(), nullptr), ErrorKind::invalid_argument, "no tensor"));
  EXPECT_EQ(refused.deletions, 0);
}

}  // namespace
}  // namespace cingulum
