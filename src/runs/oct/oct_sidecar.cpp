#include "runs/oct/oct_sidecar.hpp"

#include <optional>
#include <string_view>
#include <utility>

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
  if (!json.is_object() || json.value("command", Json()) != "oct run") return stored.damaged("its command is another");
  RepeatedOctRun run;
  CGL_TRY_ASSIGN(run.request,
                 request_of_stored_run(oct_fields(), stored, given,
                                       [](const Argument& argument, const auto&) { return argument.name == "tiles"; }));
  if (given.tiles.given()) return run;
  const Json inputs = json.value("inputs", Json());
  const Json input = inputs.is_array() && inputs.size() == 1 ? inputs.front() : Json();
  const Json voxels = input.is_object() ? input.value("voxels_xxh3_128", Json()) : Json();
  if (!voxels.is_string()) return stored.damaged("'inputs' has no hash of the tiles");
  run.voxels = voxels.get<std::string>();
  return run;
}

}  // namespace cingulum
