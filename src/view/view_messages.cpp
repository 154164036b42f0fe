#include "view/view_messages.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "formats/sidecar.hpp"

namespace cingulum::view {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "messages are little-endian and copied as they are");

constexpr std::uint32_t message_magic = 0x31564743;  // "CGV1"
constexpr std::size_t most_members = 64;
constexpr std::size_t longest_text = 256;
constexpr std::size_t most_spheres = 64;

struct MessageHead {
  std::uint32_t magic;
  std::uint16_t kind;
  std::uint16_t zero;
  std::uint32_t request;
};
static_assert(sizeof(MessageHead) == message_head_bytes);

template <class T>
void append(std::vector<std::byte>& bytes, const T* values, std::size_t count) {
  const auto* const first = reinterpret_cast<const std::byte*>(values);
  bytes.insert(bytes.end(), first, first + count * sizeof(T));
}

bool is_option_name(std::string_view name) {
  const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  return !name.empty() && name.size() <= 64 && name.front() != '-' && std::all_of(name.begin(), name.end(), fits);
}

Result<std::string> text_of_number(const Json& value) {
  if (value.is_number_integer()) return value.dump();
  const double number = value.get<double>();
  if (!std::isfinite(number)) return fail(ErrorKind::corrupt, "a number that is not finite");
  return fmt::format("{}", number);
}

Result<std::string> text_of_sphere(const Json& value) {
  if (!value.is_array() || value.size() != 4) return fail(ErrorKind::corrupt, "a sphere is [x, y, z, r]");
  std::string text;
  for (const Json& number : value) {
    if (!number.is_number()) return fail(ErrorKind::corrupt, "a sphere is [x, y, z, r]");
    CGL_TRY_ASSIGN(const std::string word, text_of_number(number));
    if (!text.empty()) text += ',';
    text += word;
  }
  return text;
}

Status add_texts(const Json& value, ArgumentText& option) {
  if (value.is_string()) {
    const auto& text = value.get_ref<const std::string&>();
    const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
    if (text.empty() || text.size() > longest_text || !std::all_of(text.begin(), text.end(), printable)) {
      return fail(ErrorKind::corrupt, "'{}': a text is 1 to {} printable letters", option.name, longest_text);
    }
    option.texts.push_back(text);
    return {};
  }
  if (value.is_number()) {
    CGL_TRY_ASSIGN(std::string text, add_context(text_of_number(value), "'{}'", option.name));
    option.texts.push_back(std::move(text));
    return {};
  }
  if (!value.is_array()) return fail(ErrorKind::corrupt, "'{}' is no number, text, boolean or sphere", option.name);
  const bool one = !value.empty() && !value.front().is_array();
  const Json several = one ? Json::array({value}) : value;
  if (several.size() > most_spheres) {
    return fail(ErrorKind::corrupt, "'{}': {} spheres; accepted are {}", option.name, several.size(), most_spheres);
  }
  for (const Json& sphere : several) {
    CGL_TRY_ASSIGN(std::string text, add_context(text_of_sphere(sphere), "'{}'", option.name));
    option.texts.push_back(std::move(text));
  }
  return {};
}

}  // namespace

Result<ClientMessage> parse_client_message(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(MessageHead)) {
    return fail(ErrorKind::corrupt, "a message of {} bytes; its head has {}", bytes.size(), sizeof(MessageHead));
  }
  MessageHead head{};
  std::memcpy(&head, bytes.data(), sizeof head);
  if (head.magic != message_magic) return fail(ErrorKind::corrupt, "the message does not begin with CGV1");
  if (head.zero != 0) return fail(ErrorKind::corrupt, "the reserved number of the head is not zero");
  ClientMessage message;
  message.request = head.request;
  message.body = {reinterpret_cast<const char*>(bytes.data()) + sizeof head, bytes.size() - sizeof head};
  if (head.kind == static_cast<std::uint16_t>(MessageKind::track)) {
    message.kind = MessageKind::track;
    if (message.body.size() > most_request_bytes) {
      return fail(ErrorKind::corrupt, "a request of {} bytes; accepted are {}", message.body.size(),
                  most_request_bytes);
    }
    return message;
  }
  if (head.kind == static_cast<std::uint16_t>(MessageKind::cancel)) {
    message.kind = MessageKind::cancel;
    if (!message.body.empty()) return fail(ErrorKind::corrupt, "a cancel message has no body");
    return message;
  }
  return fail(ErrorKind::corrupt, "a message of kind {}; accepted are 1 and 2", head.kind);
}

Result<std::vector<ArgumentText>> parse_track_request(std::string_view text) {
  if (text.size() > most_request_bytes) {
    return fail(ErrorKind::corrupt, "a request of {} bytes; accepted are {}", text.size(), most_request_bytes);
  }
  CGL_TRY_ASSIGN(const Json json, parse_json(text));
  if (!json.is_object()) return fail(ErrorKind::corrupt, "a request is a JSON object");
  if (json.size() > most_members) {
    return fail(ErrorKind::corrupt, "a request with {} members; accepted are {}", json.size(), most_members);
  }
  std::vector<ArgumentText> arguments;
  for (const auto& [name, value] : json.items()) {
    if (!is_option_name(name)) return fail(ErrorKind::corrupt, "a member whose name is no option's");
    ArgumentText option{name, {}, value.is_boolean()};
    if (option.is_flag) {
      if (value.get<bool>()) arguments.push_back(std::move(option));
      continue;
    }
    CGL_TRY(add_texts(value, option));
    if (!option.texts.empty()) arguments.push_back(std::move(option));
  }
  return arguments;
}

std::string track_request_json(const std::vector<ArgumentText>& arguments) {
  Json json = Json::object();
  for (const ArgumentText& option : arguments) {
    if (option.is_flag) {
      json[option.name] = true;
      continue;
    }
    if (option.texts.size() == 1) {
      json[option.name] = option.texts.front();
      continue;
    }
    Json spheres = Json::array();
    for (const std::string& text : option.texts) spheres.push_back(Json::parse("[" + text + "]"));
    json[option.name] = std::move(spheres);
  }
  return json.dump();
}

std::vector<std::byte> make_message(MessageKind kind, std::uint32_t request, std::string_view body) {
  const MessageHead head = {message_magic, static_cast<std::uint16_t>(kind), 0, request};
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof head + body.size());
  append(bytes, &head, 1);
  append(bytes, body.data(), body.size());
  return bytes;
}

Result<std::vector<std::byte>> make_batch_message(std::uint32_t request, const BatchView& batch) {
  const std::size_t lines = batch.offsets.size() - 1;
  const std::uint64_t points = batch.offsets.back();
  if (points > std::numeric_limits<std::uint32_t>::max()) {
    return fail(ErrorKind::full, "a batch of {} points; a message has at most 2^32 - 1", points);
  }
  const MessageHead head = {message_magic, static_cast<std::uint16_t>(MessageKind::batch), 0, request};
  const std::uint32_t counts[2] = {static_cast<std::uint32_t>(lines), static_cast<std::uint32_t>(points)};
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof head + sizeof counts + 4 * (lines + 1) + batch.positions.size_bytes() + 6 * lines + 4);
  append(bytes, &head, 1);
  append(bytes, counts, 2);
  for (const std::uint64_t offset : batch.offsets) {
    const auto narrow = static_cast<std::uint32_t>(offset);
    append(bytes, &narrow, 1);
  }
  append(bytes, batch.positions.data(), batch.positions.size());
  append(bytes, batch.seed_index.data(), batch.seed_index.size());
  append(bytes, batch.end_reasons.data(), batch.end_reasons.size());
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

Result<std::vector<std::byte>> make_lines_message(const ShownView& lines) {
  const std::size_t count = lines.places.size();
  const auto is_shown = [](const float* point) {
    constexpr float farthest_mm = 1e5f;
    // False of what is not finite, too.
    return std::abs(point[0]) <= farthest_mm && std::abs(point[1]) <= farthest_mm && std::abs(point[2]) <= farthest_mm;
  };
  std::vector<std::uint32_t> offsets = {0};
  offsets.reserve(count + 1);
  std::array<float, 3> least{}, greatest{};
  std::uint64_t points = 0;
  for (std::size_t line = 0; line < count; ++line) {
    for (std::uint64_t i = lines.offsets[line]; i < lines.offsets[line + 1]; ++i) {
      const float* const point = lines.positions.data() + 3 * i;
      if (!is_shown(point)) continue;
      for (std::size_t axis = 0; axis < 3; ++axis) {
        least[axis] = points == 0 ? point[axis] : std::min(least[axis], point[axis]);
        greatest[axis] = points == 0 ? point[axis] : std::max(greatest[axis], point[axis]);
      }
      ++points;
    }
    if (points > std::numeric_limits<std::uint32_t>::max()) {
      return fail(ErrorKind::full, "a batch of {} points; a message has at most 2^32 - 1", points);
    }
    offsets.push_back(static_cast<std::uint32_t>(points));
  }
  constexpr double greatest_number = 65535;
  double extent = 0;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    extent = std::max(extent, static_cast<double>(greatest[axis]) - static_cast<double>(least[axis]));
  }
  const auto unit = static_cast<float>(extent > 0 ? extent / greatest_number : 1.0);
  std::vector<std::uint16_t> numbers;
  numbers.reserve(3 * static_cast<std::size_t>(points));
  for (std::size_t i = 0; i < lines.positions.size() / 3; ++i) {
    const float* const point = lines.positions.data() + 3 * i;
    if (!is_shown(point)) continue;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const double from_least = static_cast<double>(point[axis]) - static_cast<double>(least[axis]);
      const double number = from_least / static_cast<double>(unit) + 0.5;
      numbers.push_back(static_cast<std::uint16_t>(std::min(number, greatest_number)));
    }
  }
  const MessageHead head = {message_magic, static_cast<std::uint16_t>(MessageKind::lines), 0, 0};
  const std::uint32_t counts[2] = {static_cast<std::uint32_t>(count), static_cast<std::uint32_t>(points)};
  std::vector<std::byte> bytes;
  bytes.reserve(sizeof head + sizeof counts + 16 + 8 * count + 8 + 2 * numbers.size());
  append(bytes, &head, 1);
  append(bytes, counts, 2);
  append(bytes, least.data(), 3);
  append(bytes, &unit, 1);
  append(bytes, offsets.data(), offsets.size());
  append(bytes, lines.places.data(), count);
  append(bytes, numbers.data(), numbers.size());
  bytes.resize((bytes.size() + 3) / 4 * 4);
  return bytes;
}

std::vector<std::byte> make_places_message(std::span<const std::array<float, 6>> boxes) {
  const MessageHead head = {message_magic, static_cast<std::uint16_t>(MessageKind::places), 0, 0};
  const auto count = static_cast<std::uint32_t>(boxes.size());
  std::vector<std::byte> bytes;
  append(bytes, &head, 1);
  append(bytes, &count, 1);
  for (const std::array<float, 6>& box : boxes) append(bytes, box.data(), box.size());
  return bytes;
}

Result<std::optional<std::uint32_t>> messages_behind(std::span<const std::byte> message) {
  MessageHead head{};
  std::uint32_t count = 0;
  if (message.size() < sizeof head + sizeof count) {
    return fail(ErrorKind::invalid_state, "a message of streamlines without a head");
  }
  std::memcpy(&head, message.data(), sizeof head);
  if (head.kind != static_cast<std::uint16_t>(MessageKind::places)) return std::nullopt;
  std::memcpy(&count, message.data() + sizeof head, sizeof count);
  return count;
}

}  // namespace cingulum::view
