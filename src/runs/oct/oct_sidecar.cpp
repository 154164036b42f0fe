#include "runs/oct/oct_sidecar.hpp"

#include <optional>
#include <string_view>
#include <utility>

#include "base/json_view.hpp"
#include "formats/sidecar.hpp"
#include "runs/oct/oct_fields.hpp"
#include "runs/stored_request.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

}  // namespace

Json oct_provenance(const OctRequest& request, const oct::TileSet& set, const std::string& voxels) {
  return {{"arguments", arguments_for_sidecar(oct_fields(), request)},
          {"inputs", Json::array({{{"option", "tiles"},
                                   {"path", request.tiles.value()},
                                   {"tiles", set.tiles.size()},
                                   {"voxels_xxh3_128", voxels}}})}};
}

Result<RepeatedOctRun> oct_request_of_sidecar(const fs::path& sidecar, const OctRequest& given) {
  CGL_TRY_ASSIGN(const Json json, read_sidecar_file(sidecar));
  const StoredRun stored = {json, sidecar, "oct run"};
  const JsonView said(json);
  if (said["command"].json() != "oct run") return stored.damaged("its command is another");
  RepeatedOctRun run;
  CGL_TRY_ASSIGN(run.request,
                 request_of_stored_run(oct_fields(), stored, given,
                                       [](const Argument& argument, const auto&) { return argument.name == "tiles"; }));
  if (given.tiles.given()) return run;
  const Json* const inputs = said["inputs"].list();
  const bool is_one = inputs != nullptr && inputs->size() == 1;
  const std::string* const voxels = is_one ? JsonView(inputs->front())["voxels_xxh3_128"].text() : nullptr;
  if (voxels == nullptr) return stored.damaged("'inputs' has no hash of the tiles");
  run.voxels = *voxels;
  return run;
}

}  // namespace cingulum
