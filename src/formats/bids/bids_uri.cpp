#include "formats/bids/bids_uri.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/json_view.hpp"
#include "base/read_file.hpp"
#include "formats/sidecar.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view bids_scheme = "bids:";
constexpr const char* local_folder = ".cingulum";
constexpr const char* local_links = "links.json";

Json json_of(const fs::path& path) {
  const auto text = read_text_file(path);
  if (!text) return {};
  const auto json = parse_json(*text);
  return json && json->is_object() ? *json : Json();
}

// Where one of the two files says that a dataset lies.
std::optional<fs::path> link_in(const JsonView& links, std::string_view name, const fs::path& root) {
  const std::string* const link = links[std::string(name)].text();
  if (link == nullptr) return std::nullopt;
  std::string text = *link;
  constexpr std::string_view file_scheme = "file://";
  if (text.starts_with(file_scheme)) text.erase(0, file_scheme.size());
  if (text.find("://") != std::string::npos) return std::nullopt;
  return root / text;
}

}  // namespace

std::string bids_uri(std::string_view dataset, const fs::path& file) {
  return fmt::format("{}{}:{}", bids_scheme, dataset, file.generic_string());
}

std::optional<fs::path> resolve_bids_uri(std::string_view text, const fs::path& shared) {
  if (!text.starts_with(bids_scheme)) return std::nullopt;
  text.remove_prefix(bids_scheme.size());
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const std::string_view name = text.substr(0, colon);
  const fs::path file = fs::path(text.substr(colon + 1)).lexically_normal();
  if (file.is_absolute() || file.empty() || *file.begin() == "..") return std::nullopt;
  std::error_code ignored;
  fs::path root = fs::absolute(shared, ignored).parent_path();
  while (!fs::exists(root / "dataset_description.json", ignored)) {
    if (root == root.parent_path()) return std::nullopt;
    root = root.parent_path();
  }
  if (name.empty()) return root / file;
  const Json description = json_of(root / "dataset_description.json");
  auto folder = link_in(JsonView(description)["DatasetLinks"], name, root);
  if (!folder) folder = link_in(JsonView(json_of(root / local_folder / local_links)), name, root);
  if (folder) return (*folder / file).lexically_normal();
  return std::nullopt;
}

Status write_local_link(const fs::path& folder, std::string_view name, const fs::path& target,
                        const WriteOptions& options) {
  std::error_code error;
  fs::create_directories(folder / local_folder, error);
  if (error) return fail(ErrorKind::io, "making {}: {}", (folder / local_folder).string(), error.message());
  const fs::path path = folder / local_folder / local_links;
  Json links = json_of(path);
  if (!links.is_object()) links = Json::object();
  const fs::path absolute = fs::absolute(target, error).lexically_normal();
  if (links.value(std::string(name), Json()) == absolute.string()) return {};
  links[std::string(name)] = absolute.string();
  WriteOptions replacing = options;
  replacing.force = true;
  return write_file_atomically(path, json_text(links), replacing);
}

}  // namespace cingulum
