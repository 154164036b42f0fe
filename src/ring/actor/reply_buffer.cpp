#include "ring/actor/reply_buffer.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "ring/actor/buffer_table.hpp"

namespace cingulum::ring {
namespace {

std::optional<BufferHandle> handle_in(const Message& answer) {
  if (!answer.has(mark_handle) || answer.payload_bytes() < sizeof(BufferHandle)) return std::nullopt;
  BufferHandle handle;
  std::memcpy(&handle, answer.payload, sizeof handle);
  return handle;
}

}  // namespace

Result<ReplyBuffer> ReplyBuffer::of(const Message& answer) {
  const std::optional<BufferHandle> handle = handle_in(answer);
  if (!handle) return fail(ErrorKind::invalid_argument, "reading a reply buffer: the answer names no buffer");
  Result<std::span<std::byte>> found =
      fail(ErrorKind::not_found, "reading a reply buffer: table {} is gone", std::uint64_t{handle->table});
  BufferTable::with_table(handle->table, [&](BufferTable& table) {
    found = table.get(*handle);
    if (found && !table.returns(*handle)) {
      found = fail(ErrorKind::invalid_argument, "reading a reply buffer: slot {} is another buffer", handle->slot);
    }
  });
  if (!found) return tl::make_unexpected(std::move(found.error()));
  return ReplyBuffer(*handle, found->first(std::min<std::size_t>(handle->bytes, found->size())));
}

ReplyBuffer::ReplyBuffer(ReplyBuffer&& other) noexcept
    : handle_(std::exchange(other.handle_, BufferHandle{})), bytes_(std::exchange(other.bytes_, {})) {}

void ReplyBuffer::give_back() noexcept {
  if (handle_.generation == 0) return;
  const BufferHandle handle = std::exchange(handle_, BufferHandle{});
  bytes_ = {};
  BufferTable::with_table(handle.table, [&](BufferTable& table) { static_cast<void>(table.release(handle)); });
}

void drop_answer(const Message& answer) noexcept {
  const std::optional<BufferHandle> handle = handle_in(answer);
  if (!handle) return;
  BufferTable::with_table(handle->table, [&](BufferTable& table) {
    if (table.returns(*handle)) static_cast<void>(table.release(*handle));
  });
}

}  // namespace cingulum::ring
