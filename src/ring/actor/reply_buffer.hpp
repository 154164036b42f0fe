// The reader's end of a large answer: the bytes of the reply buffer that it names (context.reply_buffer() in the body),
// given back to the actor when this goes. An answer that nobody reads (dropped, cancelled or late) gives its buffer
// back by itself.
#pragma once

#include <cstddef>
#include <span>

#include "base/result.hpp"
#include "ring/actor/buffer_handle.hpp"
#include "ring/queue/message.hpp"

namespace cingulum::ring {

class ReplyBuffer {
 public:
  // The buffer of an answer whose payload begins with its handle; once for each. ErrorKind::not_found when it was given
  // back before, or its actor's table is gone; ErrorKind::invalid_argument when the answer names no reply buffer.
  [[nodiscard]] static Result<ReplyBuffer> of(const Message& answer);
  ReplyBuffer(ReplyBuffer&& other) noexcept;
  ReplyBuffer& operator=(ReplyBuffer&&) = delete;
  ~ReplyBuffer() { give_back(); }

  // As many as the body said it filled (BufferHandle::bytes). They go with the grid, or with give_back.
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }
  template <class T>
  [[nodiscard]] std::span<const T> as() const {
    return {reinterpret_cast<const T*>(bytes_.data()), bytes_.size() / sizeof(T)};
  }
  void give_back() noexcept;

 private:
  ReplyBuffer(BufferHandle handle, std::span<const std::byte> bytes) : handle_(handle), bytes_(bytes) {}
  BufferHandle handle_;
  std::span<const std::byte> bytes_;
};

// For carriers of answers: nobody will read this one.
void drop_answer(const Message& answer) noexcept;

}  // namespace cingulum::ring
