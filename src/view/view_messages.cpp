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

Status add_texts(const Json& value, WishedOption& option) {
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
    if (message.body.size() > most_wish_bytes) {
      return fail(ErrorKind::corrupt, "a request of {} bytes; accepted are {}", message.body.size(), most_wish_bytes);
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

Result<std::vector<WishedOption>> parse_track_wish(std::string_view text) {
  if (text.size() > most_wish_bytes) {
    return fail(ErrorKind::corrupt, "a request of {} bytes; accepted are {}", text.size(), most_wish_bytes);
  }
  CGL_TRY_ASSIGN(const Json json, parse_json(text));
  if (!json.is_object()) return fail(ErrorKind::corrupt, "a request is a JSON object");
  if (json.size() > most_members) {
    return fail(ErrorKind::corrupt, "a request with {} members; accepted are {}", json.size(), most_members);
  }
  std::vector<WishedOption> wish;
  for (const auto& [name, value] : json.items()) {
    if (!is_option_name(name)) return fail(ErrorKind::corrupt, "a member whose name is no option's");
    WishedOption option{name, {}, value.is_boolean()};
    if (option.is_flag) {
      if (value.get<bool>()) wish.push_back(std::move(option));
      continue;
    }
    CGL_TRY(add_texts(value, option));
    if (!option.texts.empty()) wish.push_back(std::move(option));
  }
  return wish;
}

std::string wish_json(const std::vector<WishedOption>& wish) {
  Json json = Json::object();
  for (const WishedOption& option : wish) {
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

}  // namespace cingulum::view
