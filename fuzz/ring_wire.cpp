// Messages at the edge of the process: what is decoded must be the same after it was encoded, and leave no buffer
// behind.
#include <cstring>

#include "fuzz/fuzz_target.hpp"
#include "tests/ring/wire_types.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cingulum;
  using namespace cingulum::ring;
  BufferTable table(8);
  WireRegistry registry(&table);
  fuzz::require(wire_test::add_all(registry).has_value(), "registering the types");
  {
    const auto decoded = registry.decode(fuzz::as_bytes(data, size));
    if (decoded) {
      std::vector<std::byte> once;
      const auto encoded = registry.encode(decoded->message, decoded->envelope, once);
      // A list that the message did not have is a handle that was never given out.
      const bool without_buffer = holds<wire_test::Lists>(decoded->message) &&
                                  payload<wire_test::Lists>(decoded->message).samples.handle.generation == 0;
      fuzz::require(encoded.has_value() != without_buffer, "encoding what was decoded");
      if (encoded) {
        const auto again = fuzz::expect(registry.decode(once), "decoding what was encoded");
        std::vector<std::byte> twice;
        fuzz::expect(registry.encode(again.message, again.envelope, twice).map([] { return 0; }), "encoding again");
        fuzz::require(once == twice, "encoded and decoded again, the message differs");
        wire_test::release_buffers(again.message, table);
      }
      wire_test::release_buffers(decoded->message, table);
    }
  }
  fuzz::require(table.statistics().live == 0, "a buffer is left behind");
  return 0;
}
