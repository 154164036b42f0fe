// The messages of the viewer's socket, version 1 (docs/view.md): what a page sends is checked here, byte by byte, and
// what it gets is put together. Called by the server and by those who answer; the fuzz target is
// fuzz/view_messages.cpp. What an option may be is not known here: `cingulum track` says that of the same texts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "runs/argument.hpp"

namespace cingulum::view {

enum class MessageKind : std::uint16_t {
  track = 1,
  cancel = 2,
  batch = 16,
  end = 17,
  error = 18,
  lines = 19,
  places = 20
};

constexpr std::string_view subprotocol = "cingulum-view-1";
constexpr std::size_t message_head_bytes = 12;
constexpr std::size_t most_request_bytes = 65536;  // of the JSON of a request

struct ClientMessage {
  MessageKind kind = MessageKind::track;  // track or cancel
  std::uint32_t request = 0;
  std::string_view body;  // into the bytes
};
[[nodiscard]] Result<ClientMessage> parse_client_message(std::span<const std::byte> bytes);

// From the JSON of a request: a flat object of at most 64 members, each an argument in text. A flag that is false is
// left out. A sphere [x, y, z, r] is "x,y,z,r"; a list of spheres has several texts. Names are small letters, digits
// and dashes; texts are printable and short, so that they can stand in a command.
[[nodiscard]] Result<std::vector<ArgumentText>> parse_track_request(std::string_view json);
// The JSON that gives the same.
[[nodiscard]] std::string track_request_json(const std::vector<ArgumentText>& arguments);

[[nodiscard]] std::vector<std::byte> make_message(MessageKind kind, std::uint32_t request, std::string_view body);

// Streamlines: `offsets` has one more than there are, in points; positions are x y z in world mm.
struct BatchView {
  std::span<const std::uint64_t> offsets;
  std::span<const float> positions;
  std::span<const std::byte> seed_index;   // u32 each
  std::span<const std::byte> end_reasons;  // two u8 each
};
// Refuses more than 2^32 - 1 points, which the offsets cannot say.
[[nodiscard]] Result<std::vector<std::byte>> make_batch_message(std::uint32_t request, const BatchView& batch);

// Streamlines of a file for pictures: each coordinate has 16 bits within the box of the batch, so that a point lies
// within half a unit of where it was, along each axis. Points that are not finite, or farther than 100 m from the
// origin, where nothing lies that one looks at, are left out: one of them would make the unit that of all others.
struct ShownView {
  std::span<const std::uint64_t> offsets;
  std::span<const float> positions;
  std::span<const std::uint32_t> places;  // of the streamlines in their file
};
[[nodiscard]] Result<std::vector<std::byte>> make_lines_message(const ShownView& lines);

// Where the streamlines of further messages lie: for each a box (least x y z, greatest x y z).
[[nodiscard]] std::vector<std::byte> make_places_message(std::span<const std::array<float, 6>> boxes);
// The number of boxes in a message that make_places_message() made; nothing for another.
[[nodiscard]] Result<std::optional<std::uint32_t>> messages_behind(std::span<const std::byte> message);

}  // namespace cingulum::view
