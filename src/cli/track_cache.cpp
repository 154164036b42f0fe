#include "cli/track_cache.hpp"

#include <span>

#include "base/hash.hpp"
#include "base/version.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Result<FitKey::Stamp> FitKey::stamp_of(const fs::path& path) {
  std::error_code error;
  Stamp stamp{.path = path, .bytes = fs::file_size(path, error)};
  if (!error) stamp.time = fs::last_write_time(path, error);
  if (error) return fail(ErrorKind::io, "looking at {}: {}", path.string(), error.message());
  return stamp;
}

Result<FitKey> FitKey::create(const ParsedArguments& arguments, const SeriesPaths& paths, const FieldRequest& request,
                              const Sphere& sphere) {
  FitKey key;
  Json inputs = Json::object();
  const auto add = [&](const char* name, const fs::path& path) -> Status {
    if (path.empty()) return {};
    CGL_TRY_ASSIGN(Stamp stamp, stamp_of(path));
    CGL_TRY_ASSIGN(inputs[name], hash_of_file(path));
    key.stamps_.push_back(std::move(stamp));
    return {};
  };
  CGL_TRY(add("dwi", paths.dwi));
  CGL_TRY(add("bvals", paths.bvals));
  CGL_TRY(add("bvecs", paths.bvecs));
  CGL_TRY(add("grad", paths.grad));
  CGL_TRY(add("mask", paths.mask));  // absent: made from the series
  CGL_TRY(add("stop_map", arguments.given("stop-map") ? fs::path(arguments.text("stop-map")) : fs::path()));
  CGL_TRY(add("response", request.response));
  key.json_ = {{"build", hash_hex(version_text())},
               {"inputs", std::move(inputs)},
               {"b0_threshold", arguments.real("b0-threshold")},
               {"bvec_frame", arguments.given("bvec-frame") ? arguments.text("bvec-frame") : ""},
               {"gradient_check", !paths.phantom},
               {"model", field_model_name(request.model)},
               {"bootstrap", request.bootstrap},
               {"degree", request.degree},
               {"smoothing", request.smoothing},
               {"min_signal", request.min_signal},
               {"shell", request.shell ? Json(*request.shell) : Json()},
               {"amplitudes", request.amplitudes},
               {"stop_threshold", request.stop_threshold},
               {"reach_voxels", request.reach_voxels},
               {"sphere", hash_hex(std::as_bytes(std::span(sphere.directions)))},
               {"half_sphere", sphere.half}};
  return key;
}

bool FitKey::inputs_unchanged() const {
  for (const Stamp& stamp : stamps_) {
    const Result<Stamp> now = stamp_of(stamp.path);
    if (!now || *now != stamp) return false;
  }
  return true;
}

Json about_fit(const SeriesPaths& paths, const FieldRequest& request) {
  return {{"series", paths.dwi.filename().string()},
          {"model", field_model_name(request.model)},
          {"bootstrap", request.bootstrap}};
}

}  // namespace cingulum
