#include "dmri/models/fit_folder.hpp"

#include "base/json_text.hpp"
#include "formats/nifti.hpp"
#include "formats/output_sidecar.hpp"

namespace cingulum {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

constexpr const char* summary_name = "fit.json";

Status check_folder(const fs::path& folder, const WriteOptions& options) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (fs::exists(status)) {
    if (!fs::is_directory(status)) {
      return fail(ErrorKind::already_exists, "{} exists and is not a folder; {} names a folder", folder.string(),
                  argument_name("out"));
    }
    if (!options.force && fs::exists(folder / summary_name, error)) {
      return fail(ErrorKind::already_exists, "{} holds a fit already; use another {}, or {} to replace it",
                  folder.string(), argument_name("out"), argument_name("force"));
    }
    return {};
  }
  fs::path parent = folder.parent_path();
  if (!folder.has_filename()) parent = parent.parent_path();  // "out/"
  if (!parent.empty() && !fs::is_directory(parent, error)) {
    return fail(ErrorKind::not_found, "making {}: there is no folder {}", folder.string(), parent.string());
  }
  return {};
}

}  // namespace

Result<FitFolder> FitFolder::create(fs::path folder, const WriteOptions& options) {
  CGL_TRY(check_folder(folder, options));
  FitFolder result;
  result.folder_ = std::move(folder);
  result.options_ = options;
  return result;
}

Status FitFolder::make_folder() {
  if (made_) return {};
  std::error_code error;
  fs::create_directory(folder_, error);
  if (error)
    return fail_file(folder_.string(), ErrorKind::io, "making the folder {}: {}", folder_.string(), error.message());
  fs::remove(folder_ / summary_name, error);
  if (error)
    return fail_file((folder_ / summary_name).string(), ErrorKind::io, "removing {}: {}",
                     (folder_ / summary_name).string(), error.message());
  made_ = true;
  return {};
}

void FitFolder::describe(const ImageGeometry& geometry, std::vector<std::uint32_t> voxels, Json facts) {
  geometry_ = geometry;
  voxels_ = std::move(voxels);
  facts_ = std::move(facts);
}

WriteOptions FitFolder::with_facts(const fs::path& path, Json facts) const {
  auto sidecar = std::make_shared<OutputSidecar>(path, options_);
  sidecar->describe([facts = std::move(facts)] { return facts; });
  return with_sidecar(options_, std::move(sidecar));
}

Status FitFolder::write_map(const std::string& name, std::span<const float> records, std::size_t columns,
                            std::string_view meaning, ThreadPool& pool, const Json& more) {
  CGL_TRY(make_folder());
  const fs::path path = folder_ / (name + ".nii.gz");
  Json facts = facts_;
  facts["meaning"] = meaning;
  for (const auto& [key, value] : more.items()) facts[key] = value;
  NiftiWriteOptions options;
  options.file = with_facts(path, std::move(facts));
  options.description = "cingulum fit: " + name;
  options.compression_search = DeflateSearch::runs;
  options.pool = &pool;
  std::vector<std::int64_t> further;
  if (columns > 1) further.push_back(static_cast<std::int64_t>(columns));
  CGL_TRY_ASSIGN(NiftiWriter writer, NiftiWriter::create(path, geometry_, further, options));
  std::vector<float> volume(static_cast<std::size_t>(geometry_.voxel_count()), 0.0f);
  for (std::size_t column = 0; column < columns; ++column) {
    CGL_TRY(options_.cancel.check());
    for (std::size_t v = 0; v < voxels_.size(); ++v) volume[voxels_[v]] = records[v * columns + column];
    CGL_TRY(writer.append(std::span<const float>(volume)));
  }
  commits_.push_back(std::async(std::launch::async | std::launch::deferred,
                                [own = std::move(writer)]() mutable { return own.commit(); }));
  files_.push_back({{"file", path.filename().string()}, {"volumes", columns}, {"meaning", meaning}});
  return {};
}

Status FitFolder::write_mask(std::span<const std::uint8_t> mask, const Json& more, ThreadPool& pool) {
  CGL_TRY(make_folder());
  const fs::path path = folder_ / "mask.nii.gz";
  Json facts = facts_;
  facts["meaning"] = "brain mask by median Otsu";
  for (const auto& [key, value] : more.items()) facts[key] = value;
  NiftiWriteOptions options;
  options.file = with_facts(path, std::move(facts));
  options.type = element_type_of<std::uint8_t>();
  options.description = "cingulum fit: mask";
  options.pool = &pool;
  const std::vector<float> values(mask.begin(), mask.end());
  CGL_TRY(write_image(path, geometry_, 1, values, options));
  files_.push_back({{"file", "mask.nii.gz"}, {"volumes", 1}, {"meaning", "brain mask by median Otsu"}});
  return {};
}

Status FitFolder::write_text(const std::string& name, std::string_view text, std::string_view meaning) {
  CGL_TRY(make_folder());
  CGL_TRY(write_file_atomically(folder_ / name, text, options_));
  files_.push_back({{"file", name}, {"meaning", meaning}});
  return {};
}

Status FitFolder::finish(const Json& results, const Json& run) {
  CGL_TRY(make_folder());
  Status first;
  for (std::future<Status>& commit : commits_) {
    Status status = commit.get();
    if (first) first = std::move(status);
  }
  commits_.clear();
  CGL_TRY(std::move(first));
  Json summary = facts_;
  summary["results"] = results;
  summary["files"] = files_;
  summary["run"] = run;
  return write_file_atomically(folder_ / summary_name, json_text(summary), options_);
}

}  // namespace cingulum
