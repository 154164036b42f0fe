#include "zarr/hierarchy.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "base/json_text.hpp"
#include "base/json_view.hpp"
#include "formats/byte_stream.hpp"
#include "formats/sidecar.hpp"
#include "formats/zip_archive.hpp"
#include "zarr/json_values.hpp"

namespace cingulum::zarr {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_document_bytes = std::uint64_t{64} << 20U;
constexpr int zmetadata_version = 1;
constexpr std::array<const char*, 3> node_documents = {"zarr.json", ".zarray", ".zgroup"};

// A JSON object under `key`; absent where nothing is there.
Result<std::optional<Json>> read_document(const Store& store, const std::string& key) {
  const auto read = [&]() -> Result<std::optional<Json>> {
    CGL_TRY_ASSIGN(const std::optional<std::string> text, store.read_text(key, largest_document_bytes));
    if (!text) return std::optional<Json>();
    CGL_TRY_ASSIGN(Json json, parse_json(*text));
    if (!json.is_object()) return fail(ErrorKind::corrupt, "it is no JSON object");
    return std::optional<Json>(std::move(json));
  };
  return add_context(read(), "reading {}", node_name(store, key));
}

// `document` is what stands in zarr.json.
Result<Node> node_of_v3(const Json& document) {
  Node node;
  const auto version = document.find("zarr_format");
  if (version == document.end() || *version != 3) {
    return fail(ErrorKind::corrupt, "zarr_format is {}, expected 3",
                version == document.end() ? std::string("absent") : json_excerpt(*version));
  }
  const auto type = document.find("node_type");
  if (type != document.end() && *type == "array") {
    node.kind = NodeKind::array;
  } else if (type == document.end() || *type != "group") {
    return fail(ErrorKind::corrupt, "node_type is {}, expected \"group\" or \"array\"",
                type == document.end() ? std::string("absent") : json_excerpt(*type));
  }
  if (const auto attributes = document.find("attributes"); attributes != document.end()) {
    if (!attributes->is_object()) return fail(ErrorKind::corrupt, "attributes is no JSON object");
    node.attributes = attributes->dump();
  }
  if (node.kind == NodeKind::array) return node;  // its other fields are the array's matter
  static constexpr std::array<std::string_view, 4> known = {"zarr_format", "node_type", "attributes",
                                                            "consolidated_metadata"};
  for (const auto& [name, value] : document.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    const bool may_be_ignored = JsonView(value)["must_understand"].flag() == false;
    if (!may_be_ignored) return fail(ErrorKind::unavailable, "field '{}' must be understood and is not known", name);
  }
  return node;
}

Result<std::optional<Node>> find_v3_node(const Store& store, const std::string& path) {
  const std::string key = join_path(path, "zarr.json");
  CGL_TRY_ASSIGN(const std::optional<Json> document, read_document(store, key));
  if (!document) return std::optional<Node>();
  CGL_TRY_ASSIGN(Node node, add_context(node_of_v3(*document), "reading {}", node_name(store, key)));
  node.path = path;
  return std::optional<Node>(std::move(node));
}

Result<std::optional<Node>> find_v2_node(const Store& store, const std::string& path) {
  Node node{.path = path, .kind = NodeKind::array, .format = 2};
  CGL_TRY_ASSIGN(const std::optional<Json> array, read_document(store, join_path(path, ".zarray")));
  if (!array) {
    node.kind = NodeKind::group;
    const std::string key = join_path(path, ".zgroup");
    CGL_TRY_ASSIGN(const std::optional<Json> group, read_document(store, key));
    if (!group) return std::optional<Node>();
    if (JsonView(*group)["zarr_format"].json() != 2) {
      return fail(ErrorKind::corrupt, "reading {}: zarr_format is not 2", node_name(store, key));
    }
  }
  CGL_TRY_ASSIGN(std::optional<Json> attributes, read_document(store, join_path(path, ".zattrs")));
  if (attributes) node.attributes = attributes->dump();
  return std::optional<Node>(std::move(node));
}

Result<std::optional<Node>> find_node(const Store& store, const std::string& path) {
  CGL_TRY_ASSIGN(std::optional<Node> node, find_v3_node(store, path));
  if (node) return node;
  return find_v2_node(store, path);
}

// Documents of nodes by their keys, as consolidated metadata at `root` have them.
Result<std::map<std::string, Json>> consolidated_documents(const Store& store, const Node& root) {
  std::map<std::string, Json> documents;
  const bool v2 = root.format == 2;
  CGL_TRY_ASSIGN(const std::optional<Json> holder,
                 read_document(store, join_path(root.path, v2 ? ".zmetadata" : "zarr.json")));
  if (!holder) return documents;
  const JsonView said(*holder);
  if (v2 && said["zarr_consolidated_format"].json() != zmetadata_version) return documents;
  const Json* const list = (v2 ? said : said["consolidated_metadata"])["metadata"].object();
  if (list == nullptr) return documents;
  for (const auto& [name, document] : list->items()) {
    documents.emplace(join_path(root.path, v2 ? name : join_path(name, "zarr.json")), document);
  }
  return documents;
}

// Members in any order; consolidated metadata of a group inside do not count.
bool is_same_document(Json a, Json b) {
  for (Json* document : {&a, &b}) {
    if (document->is_object()) document->erase("consolidated_metadata");
  }
  return nlohmann::json(a) == nlohmann::json(b);
}

Status compare_with_consolidated(const Store& store, const Node& root, Hierarchy& hierarchy) {
  CGL_TRY_ASSIGN(const auto documents, consolidated_documents(store, root));
  if (documents.empty()) return {};
  std::set<std::string> named;
  for (const auto& [key, document] : documents) {
    named.insert(fs::path(key).parent_path().generic_string());
    // A key that leaves the store is one that nothing is under.
    const auto found = read_document(store, key);
    if (!found || !*found) {
      hierarchy.notes.push_back(
          fmt::format("consolidated metadata name {}, which is not there", node_name(store, key)));
    } else if (!is_same_document(**found, document)) {
      hierarchy.notes.push_back(
          fmt::format("consolidated metadata differ from {}, which is believed", node_name(store, key)));
    }
  }
  for (const Node& node : hierarchy.nodes) {
    if (node.path != root.path && !named.contains(node.path)) {
      hierarchy.notes.push_back(fmt::format("consolidated metadata do not name {}", node_name(store, node.path)));
    }
  }
  return {};
}

Status walk(const Store& store, Node node, std::size_t depth, const HierarchyLimits& limits, const CancelToken& cancel,
            std::vector<Node>& nodes) {
  CGL_TRY(cancel.check());
  const std::string path = node.path;
  const bool enter = node.kind == NodeKind::group;
  if (nodes.size() == limits.nodes) {
    return fail(ErrorKind::corrupt, "{}: more than {} groups and arrays", node_name(store, path), limits.nodes);
  }
  nodes.push_back(std::move(node));
  if (!enter) return {};
  CGL_TRY_ASSIGN(const Store::Children children, store.children(path));
  for (const std::string& name : children.folders) {
    const std::string below = join_path(path, name);
    CGL_TRY_ASSIGN(std::optional<Node> child, find_node(store, below));
    if (!child) continue;
    if (depth == limits.depth) {
      return fail(ErrorKind::corrupt, "{}: more than {} levels of groups", node_name(store, below), limits.depth);
    }
    CGL_TRY(walk(store, std::move(*child), depth + 1, limits, cancel, nodes));
  }
  return {};
}

}  // namespace

std::string join_path(std::string_view path, std::string_view name) {
  if (path.empty()) return std::string(name);
  if (name.empty()) return std::string(path);
  return fmt::format("{}/{}", path, name);
}

std::string node_name(const Store& store, std::string_view path) {
  return join_path(store.path().native(), path);
}

Result<Node> open_node(const Store& store, const std::string& path) {
  CGL_TRY_ASSIGN(std::optional<Node> node, find_node(store, path));
  if (node) return std::move(*node);
  return fail(ErrorKind::not_found, "{}: no group and no array of Zarr (no zarr.json, .zarray or .zgroup)",
              node_name(store, path));
}

Result<bool> is_zarr(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    return std::any_of(node_documents.begin(), node_documents.end(),
                       [&](const char* name) { return fs::exists(path / name, error); });
  }
  CGL_TRY_ASSIGN(const InputFile file, InputFile::open(path));
  std::array<std::byte, 4> begin{};
  CGL_TRY_ASSIGN(const std::size_t got, file.read_at(0, begin));
  if (!looks_like_zip(std::span(begin).first(got))) return false;
  const auto store = Store::open(path);
  // A damaged archive is reported by the reader of whichever other format it may be.
  if (!store) return path.native().ends_with(".zarr.zip");
  const auto root = find_node(**store, "");
  return !root || root->has_value();
}

Result<Hierarchy> read_hierarchy(const Store& store, const std::string& path, const HierarchyLimits& limits,
                                 const CancelToken& cancel) {
  return catch_out_of_memory([&]() -> Result<Hierarchy> {
    Hierarchy hierarchy;
    CGL_TRY_ASSIGN(const Node root, open_node(store, path));
    CGL_TRY(walk(store, root, 0, limits, cancel, hierarchy.nodes));
    if (root.kind == NodeKind::group) CGL_TRY(compare_with_consolidated(store, root, hierarchy));
    return hierarchy;
  });
}

Status write_group(const std::string& path, int format, const Json& attributes, StoreOutput& output) {
  if (format == 3) {
    Json document = {{"zarr_format", 3}, {"node_type", "group"}};
    document["attributes"] = attributes;
    return output.put_text(join_path(path, "zarr.json"), json_text(document));
  }
  CGL_TRY(output.put_text(join_path(path, ".zgroup"), json_text(Json{{"zarr_format", 2}})));
  if (attributes.empty()) return {};
  return output.put_text(join_path(path, ".zattrs"), json_text(attributes));
}

}  // namespace cingulum::zarr
