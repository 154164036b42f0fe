// TCK: header and triplets.
#include "formats/tck.hpp"

#include "fuzz/tractogram_round_trip.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cingulum;
  auto reader = open_tck("input", fuzz::copy_of(fuzz::as_bytes(data, size)));
  if (!reader) return 0;
  const bool walks = (*reader)->verify().has_value();
  const auto whole = read_tractogram(**reader, 3, false);
  fuzz::require(walks == whole.has_value(), "verify and the reader disagree");
  if (!whole) return 0;
  const auto bytes = fuzz::write_whole(*whole, whole->layout, "/again.tck");
  auto again = fuzz::expect(open_tck("again", fuzz::copy_of(bytes)), "reading again");
  fuzz::require(again->layout().warnings.empty(), "a warning about our own file");
  const auto read = fuzz::expect(read_tractogram(*again, 1000, false), "reading again");
  fuzz::require(again->layout().warnings.empty(), "a warning about our own file");
  fuzz::require_same(*whole, read);
  return 0;
}
