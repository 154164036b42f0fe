// JSON with the bounds of the sidecars.
#include <nlohmann/json.hpp>

#include "formats/sidecar.hpp"
#include "fuzz/fuzz_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace cingulum;
  const auto json = parse_json(fuzz::as_text(data, size));
  if (!json) return 0;
  const auto again = fuzz::expect(parse_json(json->dump()), "reading again");
  fuzz::require(again == *json, "written and read again, the content differs");
  fuzz::require(again.dump() == json->dump(), "written twice, the text differs");
  return 0;
}
