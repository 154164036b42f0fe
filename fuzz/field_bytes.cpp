// The field of an exported page, without its records: what is accepted must give the same bytes whenever it is written,
// and tables that trackers can be given.
#include <algorithm>

#include "fuzz/fuzz_target.hpp"
#include "view/field_bytes.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cingulum;
  const auto field = view::field_of_head_bytes(fuzz::as_bytes(data, size));
  if (!field) return 0;
  const auto written = view::field_head_bytes(*field);
  const auto again = fuzz::expect(view::field_of_head_bytes(written), "reading a field that was written");
  fuzz::require(std::ranges::equal(view::field_head_bytes(again), written), "a field written again differs");
  fuzz::require(field->record_count() > 0 && field->sphere.neighbour_offsets.size() <= size, "a field without records");
  return 0;
}
