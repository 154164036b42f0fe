// Arrays and identities inside a message on the wire: {"__ndarray__": bytes, "dtype": "float32", "shape": [2, 3]} and
// {"__uuid_bin__": 16 bytes}, the maps by which Python's ring kernels send NumPy arrays and UUIDs, and the older forms
// that are still read. Called by ring/edge/wire_value.hpp for fields of these kinds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "base/element_type.hpp"
#include "base/result.hpp"
#include "ring/edge/msgpack.hpp"
#include "ring/edge/uuid.hpp"

namespace cingulum::ring {

void write_uuid(MsgpackWriter& writer, const Uuid& uuid);

// The map of either form. `bare`: also a text or 16 bytes without a map, which older writers put into the two id
// fields.
[[nodiscard]] Result<Uuid> read_uuid(MsgpackReader& reader, bool bare);

void write_array(MsgpackWriter& writer, ElementType type, std::span<const std::size_t> shape,
                 std::span<const std::byte> content);

// An array as it lies in the message: its bytes are not copied, and may be of the other byte order.
struct WireArray {
  ElementType type;
  bool big_endian = false;
  std::vector<std::size_t> shape;  // the product times the element's size is content.size()
  std::span<const std::byte> content;
  std::size_t offset = 0;  // of the map in the message, for messages about it

  [[nodiscard]] std::size_t elements() const { return content.size() / type.bytes(); }
  // Into `elements() * type.bytes()` bytes at any address, in this machine's byte order.
  void copy_to(std::byte* destination) const;
};

[[nodiscard]] Result<WireArray> read_array(MsgpackReader& reader);

}  // namespace cingulum::ring
