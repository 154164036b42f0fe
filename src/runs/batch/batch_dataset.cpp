#include "runs/batch/batch_dataset.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <system_error>

#include "base/json_text.hpp"
#include "formats/bids/bids_uri.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view bids_version = "1.9.0";
// Names of the draft for tractography are not in the standard yet, and the rest is for whoever runs it.
constexpr std::string_view ignored_by_bids = "*_tractogram.*\nfailures*.tsv\ncohort.html\ncohort.json\n.cingulum/\n";

// From one folder to the other where that tells no more than the other's own name: above it, or beside it.
std::optional<std::string> telling_nothing(const fs::path& from, const fs::path& to) {
  std::error_code error;
  const fs::path relative = fs::weakly_canonical(to, error).lexically_relative(fs::weakly_canonical(from, error));
  if (relative.empty()) return std::nullopt;
  const auto names = std::count_if(relative.begin(), relative.end(), [](const fs::path& part) { return part != ".."; });
  if (names > 1 || (names == 1 && std::distance(relative.begin(), relative.end()) > 2)) return std::nullopt;
  return relative.generic_string();
}

Status write_unless_there(const fs::path& path, std::string_view text, const WriteOptions& options) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) return {};
  WriteOptions replacing = options;  // another worker may write the same bytes at this moment
  replacing.force = true;
  return write_file_atomically(path, text, replacing);
}

}  // namespace

Status write_dataset_files(const fs::path& out, const fs::path& source, const WriteOptions& options) {
  std::error_code error;
  fs::create_directories(out, error);
  if (error) return fail(ErrorKind::io, "making {}: {}", out.string(), error.message());
  Json description = {{"Name", "Tractograms by Cingulum"},
                      {"BIDSVersion", bids_version},
                      {"DatasetType", "derivative"},
                      {"GeneratedBy", Json::array({{{"Name", "Cingulum"}, {"Version", run_facts(0, 0)["version"]}}})}};
  const auto link = telling_nothing(out, source);
  if (link) description["DatasetLinks"] = {{std::string(source_dataset), *link}};
  CGL_TRY(write_unless_there(out / "dataset_description.json", json_text(description), options));
  CGL_TRY(write_unless_there(out / ".bidsignore", ignored_by_bids, options));
  return write_local_link(out, source_dataset, source, options);
}

fs::path output_of_series(const BidsSeries& series, std::string_view getter) {
  return series.dwi.parent_path() / (bids_tractogram_name(series.name, getter) + ".trx");
}

fs::path made_mask_of_series(const BidsSeries& series) {
  return series.dwi.parent_path() / (bids_mask_name(series.name) + ".nii.gz");
}

std::string shared_name(const std::string& path, const fs::path& source) {
  std::error_code error;
  const fs::path relative =
      fs::absolute(path, error).lexically_normal().lexically_relative(fs::absolute(source, error).lexically_normal());
  if (relative.empty() || *relative.begin() == "..") return fs::path(path).filename().string();
  return bids_uri(source_dataset, relative);
}

SharedFacts shared_facts(Json arguments, Json inputs, const fs::path& source) {
  std::map<std::string, std::string> names;
  for (Json& input : inputs) {
    const std::string path = input["path"].get<std::string>();
    input["path"] = names[path] = shared_name(path, source);
  }
  const auto rename = [&](Json& value) {
    if (!value.is_string()) return;
    const auto found = names.find(value.get<std::string>());
    if (found != names.end()) value = found->second;
  };
  for (auto& [option, value] : arguments["options"].items()) {
    rename(value);
    if (value.is_array()) std::for_each(value.begin(), value.end(), rename);
  }
  return {std::move(arguments), std::move(inputs)};
}

Json shared_sidecar(Json sidecar, const fs::path& source) {
  SharedFacts facts = shared_facts(std::move(sidecar["arguments"]), std::move(sidecar["inputs"]), source);
  Json sources = Json::array();
  for (const Json& input : facts.inputs) sources.push_back(input["path"]);
  sidecar["arguments"] = std::move(facts.arguments);
  sidecar["inputs"] = std::move(facts.inputs);
  sidecar["bids"] = {{"Description", "streamlines of the whole brain"}, {"Sources", std::move(sources)}};
  return sidecar;
}

}  // namespace cingulum
