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
  const auto damaged = [&](std::string_view what) {
    return fail_file(sidecar.string(), ErrorKind::corrupt, "reading {}: {}; it is not a sidecar of `cingulum oct run`",
                     sidecar.string(), what);
  };
  CGL_TRY_ASSIGN(const Json json, read_sidecar_file(sidecar));
  if (!json.is_object() || json.value("command", Json()) != "oct run") return damaged("its command is another");
  const auto stored = StoredArguments::of(json);
  if (!stored) return damaged(stored.error().message());

  RepeatedOctRun run;
  for (const RequestField<OctRequest>& field : oct_fields()) {
    auto then = stored->find(field.argument);
    if (!then) return damaged(then.error().message());
    if (!*then || field.given(given) || !decides_result(field.phase)) {
      field.set(run.request, field.values(given), field.given(given));
      continue;
    }
    if (field.argument.name == "tiles") {
      for (std::string& path : (*then)->texts) path = find_file_of_run(json, path, sidecar);
    }
    CGL_TRY(add_context(field.set_texts(run.request, (*then)->texts, (*then)->given), "reading {}", sidecar.string()));
  }
  if (given.tiles.given()) return run;
  const Json inputs = json.value("inputs", Json());
  const Json input = inputs.is_array() && inputs.size() == 1 ? inputs.front() : Json();
  const Json voxels = input.is_object() ? input.value("voxels_xxh3_128", Json()) : Json();
  if (!voxels.is_string()) return damaged("'inputs' has no hash of the tiles");
  run.voxels = voxels.get<std::string>();
  return run;
}

}  // namespace cingulum
