// A whole array: its metadata, a zero byte, and what is stored under every one of its keys: the indices of shards and
// the frames of all codecs.
#include <algorithm>

#include "formats/sidecar.hpp"
#include "fuzz/fuzz_target.hpp"
#include "tests/support/memory_store.hpp"
#include "zarr/array.hpp"

namespace {

using namespace cingulum;
using namespace cingulum::zarr;

constexpr std::uint64_t most_bytes = std::uint64_t{1} << 20U;

bool is_lossless(const CodecChain& chain) {
  return std::none_of(chain.begin(), chain.end(), [](const Codec& codec) {
    return codec.kind == CodecKind::fixed_scale_offset || codec.kind == CodecKind::bitround ||
           (codec.kind == CodecKind::delta && codec.decoded != codec.encoded) ||
           (codec.kind == CodecKind::delta && codec.decoded.type.code == ElementType::Code::floating) ||
           (codec.kind == CodecKind::delta && codec.decoded.type.code == ElementType::Code::complex);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto input = fuzz::as_bytes(data, size);
  const auto end = std::find(input.begin(), input.end(), std::byte{0});
  const auto text = input.first(static_cast<std::size_t>(end - input.begin()));
  const auto stored = input.subspan(std::min(input.size(), text.size() + 1));
  const auto json = parse_json({reinterpret_cast<const char*>(text.data()), text.size()});
  if (!json) return 0;
  const bool v2 = json->is_object() && json->value("zarr_format", Json()) == 2;
  const auto metadata = v2 ? parse_v2_array(*json, Json()) : parse_v3_array(*json);
  if (!metadata || metadata->bytes() > most_bytes) return 0;
  // A chunk may be larger than its array, but what decodes to millions of bytes takes its time.
  std::uint64_t leaf_bytes = metadata->type.bytes();
  for (const std::uint64_t extent : metadata->leaf_shape()) leaf_bytes *= extent;
  std::uint64_t chunks = 1;
  constexpr std::uint64_t most_chunks = 64;
  for (const std::uint64_t count : metadata->grid()) chunks = std::min(most_chunks + 1, chunks * count);
  if (chunks > most_chunks) return 0;

  testing::StoredKeys keys;
  const Shape grid = metadata->grid();
  Shape index(grid.size(), 0);
  for (std::uint64_t i = 0; i < chunks; ++i) {
    keys[metadata->chunk_key(index)].assign(stored.begin(), stored.end());
    for (std::size_t d = grid.size(); d-- > 0 && ++index[d] == grid[d];) index[d] = 0;
  }
  const Array array = Array::describe(std::make_shared<const testing::MemoryStore>(std::move(keys)), "", *metadata);
  std::vector<std::byte> elements(static_cast<std::size_t>(metadata->bytes()));
  if (!read_region(array, whole(*metadata), elements)) return 0;
  if (leaf_bytes > most_bytes || !is_lossless(metadata->leaf_coding().chain)) return 0;
  testing::MemoryOutput output;
  fuzz::expect(write_region(array, output, whole(*metadata), elements), "writing again");
  const Array copy = Array::describe(std::make_shared<const testing::MemoryStore>(output.keys()), "", *metadata);
  std::vector<std::byte> again(elements.size());
  fuzz::expect(read_region(copy, whole(*metadata), again), "reading again");
  fuzz::require(again == elements, "elements have changed");
  return 0;
}
