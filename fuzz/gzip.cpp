// gzip members; zlib is the judge of what is accepted and of the bytes.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "formats/gzip.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file_layer.hpp"

namespace {

using namespace cingulum;

constexpr std::size_t largest_output = std::size_t{8} << 20U;

// None when damaged; `complete` is false when there was more than `largest_output`.
std::optional<std::vector<std::byte>> decompress(std::span<const std::byte> bytes, std::size_t step, bool& complete) {
  auto stream = fuzz::expect(open_gzip(std::make_unique<MemoryStream>(bytes)), "opening");
  std::vector<std::byte> output;
  std::vector<std::byte> block(step);
  complete = true;
  while (output.size() <= largest_output) {
    const auto got = stream->read(block);
    if (!got) return std::nullopt;
    if (*got == 0) return output;
    output.insert(output.end(), block.begin(), block.begin() + static_cast<std::ptrdiff_t>(*got));
  }
  complete = false;
  return output;
}

// All members by zlib; none when it finds anything wrong, or anything but zeros behind the last member.
std::optional<std::vector<std::byte>> decompress_by_zlib(const std::uint8_t* data, std::size_t size) {
  std::vector<std::byte> output;
  std::vector<std::byte> block(65536);
  std::size_t used = 0;
  while (true) {
    z_stream stream{};
    fuzz::require(::inflateInit2(&stream, 15 + 16) == Z_OK, "zlib");
    stream.next_in = const_cast<Bytef*>(data + used);
    stream.avail_in = static_cast<uInt>(size - used);
    int code = Z_OK;
    while (code == Z_OK && output.size() <= largest_output) {
      stream.next_out = reinterpret_cast<Bytef*>(block.data());
      stream.avail_out = static_cast<uInt>(block.size());
      code = ::inflate(&stream, Z_NO_FLUSH);
      output.insert(output.end(), block.begin(),
                    block.begin() + static_cast<std::ptrdiff_t>(block.size() - stream.avail_out));
    }
    used = size - stream.avail_in;
    ::inflateEnd(&stream);
    if (code != Z_STREAM_END) return std::nullopt;
    if (std::all_of(data + used, data + size, [](std::uint8_t byte) { return byte == 0; })) return output;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  bool complete = false;
  const auto ours = decompress(fuzz::as_bytes(data, size), 65536, complete);
  if (!complete) return 0;
  const auto theirs = decompress_by_zlib(data, size);
  fuzz::require(ours.has_value() == theirs.has_value(), "zlib disagrees",
                ours ? "accepted here, refused there" : "refused here, accepted there");
  if (!ours) return 0;
  fuzz::require(*ours == *theirs, "zlib disagrees about the bytes");
  const auto in_steps = decompress(fuzz::as_bytes(data, size), 7, complete);
  fuzz::require(in_steps && *in_steps == *ours, "small steps give other bytes");

  fuzz::MemoryFileLayer layer;
  auto file = fuzz::expect(AtomicFile::create("/again.gz", {.buffer_bytes = 4096, .layer = &layer}), "writing again");
  auto writer = fuzz::expect(GzipWriter::create(file, 1, nullptr), "writing again");
  fuzz::require(writer.append(*ours).has_value() && writer.finish().has_value() && file.commit().has_value(),
                "writing again");
  const auto again = decompress(layer.content("/again.gz"), 65536, complete);
  fuzz::require(again && *again == *ours, "written and read again, the bytes differ");
  return 0;
}
