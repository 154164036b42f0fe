#include "formats/bids/bids_sidecar.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/json_view.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view bids_suffix = "_tractogram";
constexpr std::array<std::string_view, 3> bids_extensions = {".trx", ".trk", ".tck"};
constexpr const char* bids_member = "Cingulum";

}  // namespace

bool has_bids_sidecar(const fs::path& file) {
  return std::find(bids_extensions.begin(), bids_extensions.end(), file.extension().native()) !=
             bids_extensions.end() &&
         file.stem().native().ends_with(bids_suffix);
}

fs::path file_of_sidecar(const fs::path& sidecar) {
  fs::path file = sidecar;
  if (file.extension() == ".json") file.replace_extension();
  if (!file.native().ends_with(bids_suffix)) return file;
  for (const std::string_view extension : bids_extensions) {
    fs::path named = file;
    named += extension;
    std::error_code ignored;
    if (fs::exists(named, ignored)) return named;
  }
  return file += bids_extensions.front();
}

nlohmann::ordered_json sidecar_as_written(nlohmann::ordered_json sidecar, const fs::path& file) {
  if (!has_bids_sidecar(file)) return sidecar;
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (sidecar.is_object() && sidecar.contains("bids")) {
    json = std::move(sidecar["bids"]);
    sidecar.erase("bids");
  }
  if (JsonView(sidecar)["run"].object() != nullptr) {
    for (const char* of_this_machine : {"host", "folder"}) sidecar["run"].erase(of_this_machine);
  }
  json[bids_member] = std::move(sidecar);
  return json;
}

nlohmann::ordered_json sidecar_as_read(nlohmann::ordered_json json) {
  if (JsonView(json)[bids_member].object() == nullptr) return json;
  nlohmann::ordered_json sidecar = std::move(json[bids_member]);
  return sidecar;
}

}  // namespace cingulum
