// A field as the bytes that an exported page reads (docs/view.md, "Without a server"): everything but the records,
// which are a file of their own, since they are most of it and go straight to where they are used. Written by `cingulum
// view
// --export`, read by the same code in the browser (web/host). Little-endian.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "tract/field/field.hpp"

namespace cingulum::view {

[[nodiscard]] std::vector<std::byte> field_head_bytes(const Field& field);

// The field with room for its records, which stored_bytes() says and the caller fills. Refuses bytes that are cut
// short, too long, of another version, or whose counts contradict each other; what a tracker asks of a field beyond
// that, it checks itself (tract/cpu/tables.hpp).
[[nodiscard]] Result<Field> field_of_head_bytes(std::span<const std::byte> bytes);
// Where they are to be written.
[[nodiscard]] std::span<std::byte> record_memory(Field& field);

}  // namespace cingulum::view
