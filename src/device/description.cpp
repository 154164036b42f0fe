#include "device/description.hpp"

namespace cingulum {

std::string_view backend_name(Backend backend) {
  switch (backend) {
    case Backend::cuda: return "cuda";
    case Backend::webgpu: return "webgpu";
    case Backend::cpu: return "cpu";
  }
  return "unknown";
}

std::string_view determinism_name(Determinism determinism) {
  return determinism == Determinism::exact ? "exact" : "guarded";
}

}  // namespace cingulum
