// Gradient tables: an FSL pair, its two texts separated by a zero byte, and the whole as an MRtrix table.
#include <cstring>

#include "formats/gradient_table.hpp"
#include "fuzz/fuzz_target.hpp"

namespace {

using namespace cingulum;

bool same_bits(const void* a, const void* b, std::size_t bytes) {
  return bytes == 0 || std::memcmp(a, b, bytes) == 0;
}

void compare(const GradientTable& table, const GradientTable& again) {
  fuzz::require(again.size() == table.size() && again.vectors.size() == table.vectors.size(), "other counts");
  fuzz::require(same_bits(table.b_values.data(), again.b_values.data(), table.size() * sizeof(double)),
                "other b-values");
  fuzz::require(same_bits(table.vectors.data(), again.vectors.data(), table.size() * sizeof(numerics::Vec3d)),
                "other vectors");
  std::size_t in_shells = 0;
  for (const GradientShell& shell : find_shells(table)) in_shells += shell.volumes.size();
  fuzz::require(in_shells == table.size(), "a volume is in no shell, or in two");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::as_text(data, size);
  const std::size_t zero = text.find('\0');
  if (zero != std::string_view::npos) {
    if (const auto table = parse_fsl_gradients(text.substr(0, zero), text.substr(zero + 1))) {
      compare(*table, fuzz::expect(parse_fsl_gradients(format_bvals(*table), format_bvecs(*table)), "reading again"));
    }
  }
  if (const auto table = parse_mrtrix_gradients(text)) {
    compare(*table, fuzz::expect(parse_mrtrix_gradients(format_mrtrix_table(*table)), "reading again"));
  }
  return 0;
}
