#include "ring/edge/wire.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>

namespace cingulum::ring {
namespace {

enum class Colour : std::uint8_t { red, green };

struct Reading {
  static constexpr const char* message_name = "Reading";
  double value = 2.5;
  std::int32_t channel = -1;
  bool valid = false;
  Colour colour = Colour::red;
  friend bool operator==(const Reading&, const Reading&) = default;
};
CGL_RING_FIELDS(Reading, value, channel, valid, colour);

struct Everything {
  static constexpr const char* message_name = "Everything";
  Uuid origin;
  std::array<std::array<std::int16_t, 2>, 3> grid{};
  FixedText<8> label;
};
CGL_RING_FIELDS(Everything, origin, grid, label);

struct Samples {
  static constexpr const char* message_name = "Samples";
  NumberBuffer<float> values;
  FixedList<std::uint16_t, 4> picks;
  float gain = 1;
};
CGL_RING_FIELDS(Samples, values, picks, gain);

constexpr WireEnvelope some_envelope = {{0x0123456789ab4defULL, 0x8123456789abcdefULL}, 200, std::nullopt};

std::string error_of(const std::vector<std::byte>& bytes, BufferTable* buffers = nullptr) {
  WireRegistry registry(buffers);
  EXPECT_TRUE(registry.add<Reading>() && registry.add<Everything>() && registry.add<Samples>());
  const auto decoded = registry.decode(bytes);
  EXPECT_FALSE(decoded.has_value());
  return decoded ? "" : decoded.error().message();
}

bool mentions(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

// A message of type Reading in which `name` has the value that `write` writes.
template <class Write>
std::vector<std::byte> reading_with(std::string_view name, Write&& write) {
  std::vector<std::byte> bytes;
  MsgpackWriter writer(bytes);
  writer.map_header(2);
  writer.text(name);
  write(writer);
  writer.text("__type__");
  writer.text("Reading");
  return bytes;
}

TEST(wire, an_empty_base_message_is_98_bytes) {
  const auto bytes = encode(RingKernelMessage{}, {.message_id = Uuid::random(), .correlation_id = std::nullopt});
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(bytes->size(), 98U);
}

TEST(wire, messages_come_back_as_they_were) {
  const Reading reading{.value = -0.1, .channel = 70000, .valid = true, .colour = Colour::green};
  WireEnvelope envelope = some_envelope;
  envelope.correlation_id = Uuid::random();
  const auto bytes = encode(reading, envelope);
  ASSERT_TRUE(bytes.has_value());
  const auto back = decode<Reading>(*bytes);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(back->first, reading);
  EXPECT_EQ(back->second, envelope);
}

TEST(wire, a_registry_turns_bytes_into_ring_messages_and_back) {
  WireRegistry registry;
  ASSERT_TRUE(registry.add<Reading>().has_value());
  ASSERT_TRUE(registry.add<Everything>().has_value());
  Everything everything;
  everything.origin = Uuid::random();
  everything.grid = {{{1, -2}, {3, -4}, {32767, -32768}}};
  everything.label.assign("gr\xc3\xbcn");
  const auto bytes = encode(everything, some_envelope);
  ASSERT_TRUE(bytes.has_value());
  const auto decoded = registry.decode(*bytes);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message();
  ASSERT_TRUE(holds<Everything>(decoded->message));
  EXPECT_EQ(decoded->message.band(), Band::high);
  const auto back = payload<Everything>(decoded->message);
  EXPECT_EQ(back.origin, everything.origin);
  EXPECT_EQ(back.grid, everything.grid);
  EXPECT_EQ(back.label.view(), "gr\xc3\xbcn");
  std::vector<std::byte> again;
  ASSERT_TRUE(registry.encode(decoded->message, decoded->envelope, again).has_value());
  EXPECT_EQ(again, *bytes);
}

TEST(wire, arrays_of_any_length_travel_as_buffers) {
  BufferTable table(16);
  const std::vector<float> numbers = {1, -2.5F, std::numeric_limits<float>::infinity()};
  Samples samples;
  samples.values.handle = table.add(numbers.size() * sizeof(float)).value();
  std::memcpy(table.get(samples.values.handle)->data(), numbers.data(), numbers.size() * sizeof(float));
  samples.picks = {2, {7, 9}};
  const auto bytes = encode(samples, some_envelope, &table);
  ASSERT_TRUE(bytes.has_value()) << bytes.error().message();
  WireRegistry registry(&table);
  ASSERT_TRUE(registry.add<Samples>().has_value());
  const auto decoded = registry.decode(*bytes);
  ASSERT_TRUE(decoded.has_value()) << decoded.error().message();
  EXPECT_TRUE(decoded->message.has(mark_handle));
  const auto back = payload<Samples>(decoded->message);
  EXPECT_NE(back.values.handle.slot, samples.values.handle.slot);
  ASSERT_EQ(back.values.count(), 3U);
  EXPECT_EQ(std::memcmp(table.get(back.values.handle)->data(), numbers.data(), 12), 0);
  EXPECT_EQ(back.picks.size, 2U);
  EXPECT_EQ(back.picks.items[1], 9);
  // A stale handle is an error, not zeros.
  ASSERT_TRUE(table.release(samples.values.handle).has_value());
  const auto stale = encode(samples, some_envelope, &table);
  ASSERT_FALSE(stale.has_value());
  EXPECT_TRUE(mentions(stale.error().message(), "field 'values'")) << stale.error().message();
}

TEST(wire, a_damaged_message_leaves_no_buffer_behind) {
  BufferTable table(4);
  std::vector<std::byte> bytes;
  MsgpackWriter writer(bytes);
  writer.map_header(3);
  writer.text("values");
  writer.array_header(2);
  writer.integer(1);
  writer.real(0.5);
  writer.text("gain");
  writer.text("loud");
  writer.text("__type__");
  writer.text("Samples");
  for (int i = 0; i < 10; ++i) {
    const std::string error = error_of(bytes, &table);
    EXPECT_TRUE(mentions(error, "field 'gain': byte ")) << error;
    EXPECT_TRUE(mentions(error, "a text where a number is expected")) << error;
  }
  EXPECT_EQ(table.statistics().live, 0U);
}

TEST(wire, missing_keys_keep_defaults_and_unknown_keys_are_stepped_over) {
  const auto bytes = reading_with("from_the_future", [](MsgpackWriter& writer) {
    writer.map_header(1);
    writer.text("x");
    writer.array_header(1);
    writer.nil();
  });
  const auto back = decode<Reading>(bytes);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(back->first, Reading{});
  EXPECT_EQ(back->second.priority, 128);
  EXPECT_NE(back->second.message_id, Uuid{});
}

TEST(wire, older_forms_of_identities_are_read) {
  const Uuid uuid = Uuid::random();
  const auto id_written = [&](auto&& write) {
    const auto back = decode<Reading>(reading_with("message_id", write));
    EXPECT_TRUE(back.has_value()) << back.error().message();
    return back ? back->second.message_id : Uuid{};
  };
  EXPECT_EQ(id_written([&](MsgpackWriter& writer) {
              writer.map_header(1);
              writer.text("__uuid__");
              writer.text(uuid.text());
            }),
            uuid);
  EXPECT_EQ(id_written([&](MsgpackWriter& writer) { writer.text(uuid.text()); }), uuid);
  EXPECT_EQ(id_written([&](MsgpackWriter& writer) { writer.binary(uuid.bytes()); }), uuid);
}

TEST(wire, unknown_types_and_damage_are_named) {
  std::vector<std::byte> unknown;
  MsgpackWriter writer(unknown);
  writer.map_header(1);
  writer.text("__type__");
  writer.text("Raeding");
  const std::string error = error_of(unknown);
  EXPECT_TRUE(mentions(error, "the type 'Raeding' is not registered; did you mean 'Reading'?")) << error;

  EXPECT_TRUE(mentions(error_of({}), "message of 0 bytes: byte 0:"));
  EXPECT_TRUE(mentions(error_of({std::byte{0x80}}), "names no type"));
  const auto field_error = [](std::string_view name, auto&& write) { return error_of(reading_with(name, write)); };
  EXPECT_TRUE(mentions(field_error("channel", [](MsgpackWriter& out) { out.integer(1LL << 40); }),
                       "field 'channel': byte 9: 1099511627776 is outside -2147483648 to 2147483647"));
  EXPECT_TRUE(mentions(field_error("channel", [](MsgpackWriter& out) { out.real(1); }),
                       "byte 9: a real number where an integer is expected"));
  EXPECT_TRUE(
      mentions(field_error("priority", [](MsgpackWriter& out) { out.integer(256); }), "256 is outside 0 to 255"));
  EXPECT_TRUE(mentions(field_error("priority", [](MsgpackWriter& out) { out.integer(-1); }), "-1 is outside"));
  EXPECT_TRUE(mentions(field_error("valid", [](MsgpackWriter& out) { out.integer(1); }), "field 'valid'"));
  EXPECT_TRUE(mentions(field_error("message_id", [](MsgpackWriter& out) { out.binary({}); }), "a UUID of 0 bytes"));

  auto trailing = *encode(Reading{}, some_envelope);
  const std::size_t end = trailing.size();
  trailing.push_back(std::byte{0});
  EXPECT_TRUE(mentions(error_of(trailing), fmt::format("byte {}: 1 bytes follow", end)));
}

// The first 64 characters of a name are shown, whatever sends it.
TEST(wire, a_message_of_another_type_is_named) {
  const auto bytes = encode(Everything{}, some_envelope);
  ASSERT_TRUE(bytes.has_value());
  const auto other = decode<Reading>(*bytes);
  ASSERT_FALSE(other.has_value());
  EXPECT_TRUE(mentions(other.error().message(), "the message is a 'Everything'")) << other.error().message();
  std::vector<std::byte> unnamed;
  MsgpackWriter writer(unnamed);
  writer.map_header(1);
  writer.text("__type__");
  writer.text(std::string(64, 'a') + "b");
  const auto longer = decode<Reading>(unnamed);
  ASSERT_FALSE(longer.has_value());
  EXPECT_TRUE(mentions(longer.error().message(), "the message is a '" + std::string(64, 'a') + "'"))
      << longer.error().message();
}

TEST(wire, a_key_that_comes_twice_is_damage) {
  std::vector<std::byte> bytes;
  MsgpackWriter writer(bytes);
  writer.map_header(3);
  for (int i = 0; i < 2; ++i) {
    writer.text("channel");
    writer.integer(i);
  }
  writer.text("__type__");
  writer.text("Reading");
  EXPECT_TRUE(mentions(error_of(bytes), "the key 'channel' comes twice"));
}

TEST(wire, arrays_must_be_what_they_say) {
  const auto with_grid = [](std::string_view dtype, std::vector<std::int64_t> shape, std::size_t size) {
    std::vector<std::byte> bytes;
    MsgpackWriter writer(bytes);
    writer.map_header(2);
    writer.text("grid");
    writer.map_header(3);
    writer.text("__ndarray__");
    writer.binary(std::vector<std::byte>(size, std::byte{1}));
    writer.text("dtype");
    writer.text(dtype);
    writer.text("shape");
    writer.array_header(static_cast<std::uint32_t>(shape.size()));
    for (const std::int64_t extent : shape) writer.integer(extent);
    writer.text("__type__");
    writer.text("Everything");
    return bytes;
  };
  EXPECT_TRUE(decode<Everything>(with_grid("int16", {3, 2}, 12)).has_value());
  EXPECT_TRUE(decode<Everything>(with_grid("<i2", {3, 2}, 12)).has_value());
  EXPECT_TRUE(mentions(error_of(with_grid("int16", {2, 3}, 12)), "an array of 2 axes"));
  EXPECT_TRUE(mentions(error_of(with_grid("int16", {3, 2}, 10)), "10 bytes are not an array of shape [3, 2]"));
  EXPECT_TRUE(mentions(error_of(with_grid("int32", {3, 1}, 12)), "an array of int32 where int16 is expected"));
  EXPECT_TRUE(mentions(error_of(with_grid("complex64", {3, 2}, 48)), "dtype 'complex64' is not supported"));
  EXPECT_TRUE(mentions(error_of(with_grid("int16", {-3, 2}, 12)), "negative"));
  EXPECT_TRUE(mentions(error_of(with_grid("int16", {1LL << 62, 8, 6}, 12)), "12 bytes are not"));
}

TEST(wire, a_list_of_numbers_may_not_be_longer_than_its_room) {
  const auto with_picks = [](std::uint32_t count) {
    std::vector<std::byte> bytes;
    MsgpackWriter writer(bytes);
    writer.map_header(2);
    writer.text("picks");
    writer.array_header(count);
    for (std::uint32_t i = 0; i < count; ++i) writer.integer(i + 10);
    writer.text("__type__");
    writer.text("Samples");
    return bytes;
  };
  const auto whole = decode<Samples>(with_picks(4));
  ASSERT_TRUE(whole.has_value()) << whole.error().message();
  EXPECT_EQ(whole->first.picks.size, 4U);
  EXPECT_EQ(whole->first.picks.items[3], 13);
  const std::string error = error_of(with_picks(5));
  EXPECT_TRUE(mentions(error, "field 'picks': byte 7: 5 numbers where at most 4 are expected")) << error;
}

TEST(wire, arrays_of_the_other_byte_order_are_turned) {
  std::vector<std::byte> bytes;
  MsgpackWriter writer(bytes);
  writer.map_header(2);
  writer.text("picks");
  writer.map_header(3);
  writer.text("shape");
  writer.array_header(1);
  writer.integer(2);
  writer.text("dtype");
  writer.text(">u2");
  writer.text("__ndarray__");
  writer.binary(std::as_bytes(std::span("\x01\x02\xff\x00", 4)));
  writer.text("__type__");
  writer.text("Samples");
  const auto back = decode<Samples>(bytes);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  ASSERT_EQ(back->first.picks.size, 2U);
  EXPECT_EQ(back->first.picks.items[0], 0x0102);
  EXPECT_EQ(back->first.picks.items[1], 0xff00);
}

TEST(wire, an_array_in_another_process_is_an_error_not_zeros) {
  BufferTable table(4);
  std::vector<std::byte> bytes;
  MsgpackWriter writer(bytes);
  writer.map_header(2);
  writer.text("values");
  writer.map_header(1);
  writer.text("__array_ref__");
  writer.text("00112233445566778899aabbccddeeff");
  writer.text("__type__");
  writer.text("Samples");
  EXPECT_TRUE(mentions(error_of(bytes, &table), "lies in the memory of the process that wrote the message"));
}

TEST(wire, any_flipped_or_cut_byte_is_decoded_or_refused_and_never_harms) {
  BufferTable table(8);
  WireRegistry registry(&table);
  ASSERT_TRUE(registry.add<Reading>() && registry.add<Everything>() && registry.add<Samples>());
  std::mt19937 random(7);
  const auto good = *encode(Everything{}, some_envelope);
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto damaged = good;
    for (int k = 0; k < 64; ++k) {
      damaged[i] = static_cast<std::byte>(random());
      static_cast<void>(registry.decode(damaged));
    }
    EXPECT_FALSE(registry.decode(std::span(good).first(i)).has_value()) << i;
  }
}

TEST(wire, two_types_of_one_name_are_refused) {
  struct Local {
    static void defaults(void*) {}
  };
  static constexpr WireType other = {"Reading", 4, false, {}, Local::defaults};
  WireRegistry registry;
  ASSERT_TRUE(registry.add<Reading>().has_value());
  ASSERT_TRUE(registry.add<Reading>().has_value());
  const Status status = registry.add(other);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().kind(), ErrorKind::already_exists);
}

TEST(uuid, texts_are_parsed_with_and_without_hyphens) {
  const auto uuid = Uuid::parse("0f8fad5b-d9cb-469f-a165-70867728950e");
  ASSERT_TRUE(uuid.has_value());
  EXPECT_EQ(uuid->text(), "0f8fad5b-d9cb-469f-a165-70867728950e");
  EXPECT_EQ(Uuid::parse("0F8FAD5BD9CB469FA16570867728950E"), uuid);
  EXPECT_EQ(Uuid::from_bytes(uuid->bytes().data()), *uuid);
  EXPECT_FALSE(Uuid::parse("0f8fad5b-d9cb-469f-a165-70867728950").has_value());
  EXPECT_FALSE(Uuid::parse("0f8fad5b-d9cb-469f-a165-70867728950e0").has_value());
  EXPECT_FALSE(Uuid::parse("zf8fad5b-d9cb-469f-a165-70867728950e").has_value());
  const Uuid random = Uuid::random();
  EXPECT_EQ(random.text()[14], '4');
  EXPECT_NE(random, Uuid::random());
}

}  // namespace
}  // namespace cingulum::ring
