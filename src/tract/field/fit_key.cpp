#include "tract/field/fit_key.hpp"

#include <span>
#include <utility>

#include "base/hash.hpp"
#include "base/log.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What an entry is, for people: which series, which model.
Json about_fit(const SeriesFieldFiles& files, const FieldRequest& request) {
  return {{"series", files.series.dwi.filename().string()},
          {"model", field_model_name(request.model)},
          {"bootstrap", request.bootstrap}};
}

}  // namespace

Json fit_key(std::string_view build, Json inputs, const SeriesFieldRequest& request) {
  const FieldRequest& field = request.field;
  if (field.response) {
    const auto& eigenvalues = field.response->eigenvalues;
    inputs["given_response"] = {{"eigenvalues", eigenvalues ? Json(*eigenvalues) : Json()},
                                {"s0", field.response->s0},
                                {"zonal", field.response->zonal}};
  }
  return {{"build", hash_hex(build)},
          {"inputs", std::move(inputs)},
          {"b0_threshold", request.series.b0_threshold},
          {"bvec_frame", wanted_frame_name(request.series.frame)},
          {"gradient_check", request.series.check_frame},
          {"model", field_model_name(field.model)},
          {"bootstrap", field.bootstrap},
          {"degree", field.degree},
          {"smoothing", field.smoothing},
          {"min_signal", signal_floor_text(field.min_signal)},
          {"shell", field.shell ? Json(*field.shell) : Json()},
          {"response_fa", field.response_box.least_fa},
          {"response_widens", field.response_box.widen},
          {"response_radius", field.response_box.radius},
          {"response_centre", field.response_box.centre ? Json(*field.response_box.centre) : Json()},
          {"amplitudes", field.amplitudes},
          {"stop_threshold", field.stop_threshold},
          {"reach_voxels", field.reach_voxels},
          {"sphere", hash_hex(std::as_bytes(std::span(request.sphere.directions)))},
          {"half_sphere", request.sphere.is_hemisphere}};
}

Result<FitKey::Stamp> FitKey::stamp_of(const fs::path& path) {
  std::error_code error;
  Stamp stamp{.path = path, .bytes = fs::file_size(path, error)};
  if (!error) stamp.time = fs::last_write_time(path, error);
  if (error) return fail(ErrorKind::io, "looking at {}: {}", path.string(), error.message());
  return stamp;
}

Result<FitKey> FitKey::create(std::string_view build, const SeriesFieldFiles& files,
                              const SeriesFieldRequest& request) {
  FitKey key;
  Json inputs = Json::object();
  const auto add = [&](const char* name, const fs::path& path) -> Status {
    if (path.empty()) return {};
    CGL_TRY_ASSIGN(Stamp stamp, stamp_of(path));
    CGL_TRY_ASSIGN(inputs[name], hash_of_file(path));
    key.stamps_.push_back(std::move(stamp));
    return {};
  };
  CGL_TRY(add("dwi", files.series.dwi));
  CGL_TRY(add("bvals", files.series.bvals));
  CGL_TRY(add("bvecs", files.series.bvecs));
  CGL_TRY(add("grad", files.series.grad));
  CGL_TRY(add("mask", files.series.mask));  // absent: made from the series
  CGL_TRY(add("stop_map", files.stop_map));
  CGL_TRY(add("response", files.response));
  key.json_ = fit_key(build, std::move(inputs), request);
  return key;
}

bool FitKey::inputs_unchanged() const {
  for (const Stamp& stamp : stamps_) {
    const Result<Stamp> now = stamp_of(stamp.path);
    if (!now || *now != stamp) return false;
  }
  return true;
}

Result<TrackingData> kept_or_made(const FitCache& cache, std::string_view build, const SeriesFieldFiles& files,
                                  const ImageGeometry& geometry, const SeriesFieldRequest& request,
                                  const std::function<Result<TrackingData>()>& make) {
  CGL_TRY_ASSIGN(const FitKey key, FitKey::create(build, files, request));
  if (auto kept = cache.load(key.json(), geometry, request.sphere)) {
    log_info("using the fit kept in {}", cache.path_of(key.json()).string());
    for (const std::string& warning : kept->prepared.warnings) log_warning("{}", warning);
    TrackingData data;
    data.geometry = geometry;
    data.prepared = std::move(kept->prepared);
    data.stop_map = std::move(kept->stop_map);
    data.mask = std::move(kept->mask);
    data.mask_made = files.series.mask.empty();
    return data;
  }
  CGL_TRY_ASSIGN(TrackingData data, make());
  if (!key.inputs_unchanged()) {
    log_warning("an input has changed while it was read: the fit is not kept");
    return data;
  }
  const Status stored =
      cache.store(key.json(), about_fit(files, request.field), data.prepared, data.stop_map, data.mask);
  if (!stored) log_warning("the fit is not kept: {}", stored.error());
  return data;
}

}  // namespace cingulum
