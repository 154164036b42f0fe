// phantom.json, which the score, the report and `cingulum track --from` read: what is accepted is a set of sound
// bundles and reads the same after it was written again.
#include "dmri/phantom/phantom_description.hpp"
#include "fuzz/fuzz_target.hpp"

namespace {

using namespace cingulum;

void require_sound(const Bundle& bundle) {
  fuzz::require(bundle.length() > 0 && bundle.length() < 1e9, "a bundle has no length");
  fuzz::require(bundle.smallest_radius() > 0, "a bundle has no width");
  for (int i = 0; i <= 16; ++i) {
    const double arc = bundle.length() * i / 16;
    const numerics::Vec3d point = bundle.fibre_point(arc, {0.3, -0.2});
    const BundlePosition position = bundle.position(point);
    fuzz::require(position.distance >= 0 && position.radius > 0, "a point of a fibre has no place");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto truth = parse_phantom(fuzz::as_text(data, size));
  if (!truth) return 0;
  for (const Bundle& bundle : truth->bundles) require_sound(bundle);
  const PhantomTruth again = fuzz::expect(parse_phantom(format_phantom(*truth)), "reading again");
  fuzz::require(again.preset == truth->preset && again.geometry == truth->geometry, "another phantom");
  fuzz::require(again.bundles.size() == truth->bundles.size(), "another number of bundles");
  for (std::size_t i = 0; i < again.bundles.size(); ++i) {
    fuzz::require(again.bundles[i].shape() == truth->bundles[i].shape(), "another bundle");
  }
  return 0;
}
