// header.json of TRX.
#include "formats/trx.hpp"
#include "fuzz/fuzz_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cingulum;
  const auto header = parse_trx_header(fuzz::as_text(data, size));
  if (!header) return 0;
  const std::string text = format_trx_header(*header, 600);
  const TrxHeader again = fuzz::expect(parse_trx_header(text), "reading again");
  fuzz::require(again.streamlines == header->streamlines && again.points == header->points, "the counts have changed");
  fuzz::require(again.reference == header->reference, "the reference has changed");
  return 0;
}
