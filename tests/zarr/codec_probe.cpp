// Runs one codec, for the comparison with numcodecs: a line of JSON in ({"do": "encode" or "decode", "codec": {...},
// "bytes": hexadecimal digits, "room": bytes of the result}), a line "ok HEX" or "error TEXT" out.
#include <fmt/format.h>

#include <cstdio>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/hex_bytes.hpp"
#include "zarr/codec.hpp"

namespace {

using namespace cingulum::zarr;
using cingulum::ElementType;
using cingulum::test::from_hex;
using cingulum::test::to_hex;

// "<f4": numpy's spelling.
FilterType filter_type(const std::string& text) {
  const std::map<char, ElementType::Code> codes = {{'i', ElementType::Code::integer},
                                                   {'u', ElementType::Code::unsigned_integer},
                                                   {'f', ElementType::Code::floating},
                                                   {'c', ElementType::Code::complex}};
  return {{codes.at(text.at(1)), static_cast<std::uint8_t>(8 * std::stoi(text.substr(2)))}, text.at(0) == '>'};
}

Codec codec_of(const nlohmann::json& json) {
  const std::map<std::string, CodecKind> kinds = {{"swap_bytes", CodecKind::swap_bytes},
                                                  {"permute", CodecKind::permute},
                                                  {"shuffle", CodecKind::shuffle},
                                                  {"delta", CodecKind::delta},
                                                  {"fixedscaleoffset", CodecKind::fixed_scale_offset},
                                                  {"bitround", CodecKind::bitround},
                                                  {"crc32c", CodecKind::crc32c},
                                                  {"fletcher32", CodecKind::fletcher32},
                                                  {"gzip", CodecKind::gzip},
                                                  {"zlib", CodecKind::zlib},
                                                  {"bz2", CodecKind::bz2},
                                                  {"zstd", CodecKind::zstd},
                                                  {"blosc", CodecKind::blosc},
                                                  {"lz4", CodecKind::lz4}};
  Codec codec;
  codec.name = json.at("kind").get<std::string>();
  codec.kind = kinds.at(codec.name);
  codec.element_bytes = json.value("element_bytes", std::size_t{0});
  codec.shape = json.value("shape", std::vector<std::uint64_t>{});
  codec.order = json.value("order", std::vector<std::uint32_t>{});
  if (json.contains("decoded")) codec.decoded = filter_type(json.at("decoded").get<std::string>());
  if (json.contains("encoded")) codec.encoded = filter_type(json.at("encoded").get<std::string>());
  codec.scale = json.value("scale", 1.0);
  codec.offset = json.value("offset", 0.0);
  codec.keep_bits = json.value("keep_bits", 0);
  codec.level = json.value("level", 0);
  codec.checksum = json.value("checksum", false);
  codec.compressor = blosc_compressor_of(json.value("compressor", "lz4")).value();
  codec.blosc_shuffle = static_cast<BloscShuffle>(json.value("shuffle", 1));
  codec.block_bytes = json.value("block_bytes", std::size_t{0});
  return codec;
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const auto request = nlohmann::json::parse(line);
    const Codec codec = codec_of(request.at("codec"));
    const std::vector<std::byte> in = from_hex(request.at("bytes").get_ref<const std::string&>());
    const bool encoding = request.at("do") == "encode";
    const std::size_t room = encoding ? encoded_bytes(codec, in.size()) : request.at("room").get<std::size_t>();
    std::vector<std::byte> out(room);
    const auto made = encoding ? encode(codec, in, out) : decode(codec, in, out);
    if (made) {
      fmt::print("ok {}\n", to_hex(std::span(out).first(*made)));
    } else {
      fmt::print("error {}\n", made.error().message());
    }
    std::fflush(stdout);
  }
  return 0;
}
