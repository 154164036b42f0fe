#include "zarr/direct/engine.hpp"

namespace cingulum::zarr {
std::string_view engine_name(Engine) {
  return "host";
}
Result<EngineChoice> choose_engine(const Array&, Device&, Engine, const EngineSettings&, int) {
  return EngineChoice{};
}
}  // namespace cingulum::zarr
