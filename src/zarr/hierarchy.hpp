// The groups and arrays of a store with their attributes, of Zarr v2 (.zgroup, .zarray, .zattrs) and v3 (zarr.json).
// Called by whoever is given a path and must find out what is there: verbs, OME-Zarr. Folders are walked, arrays never
// entered, so that a listing does not grow with the number of chunks. Consolidated metadata are compared with what each
// node says of itself, and a difference is reported: the nodes themselves are believed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "zarr/array_metadata.hpp"
#include "zarr/store.hpp"

namespace cingulum::zarr {

enum class NodeKind : std::uint8_t { group, array };

struct Node {
  std::string path;  // in its store; "" is the root
  NodeKind kind = NodeKind::group;
  int format = 3;                 // 2 or 3
  std::string attributes = "{}";  // the text of a JSON object: nodes live long, and destroying JSON allocates
};

// The key of `name` below the node `path`.
[[nodiscard]] std::string join_path(std::string_view path, std::string_view name);
// For messages: "scan.ome.zarr/labels".
[[nodiscard]] std::string node_name(const Store& store, std::string_view path);

// What is at `path`; kind not_found where neither a group nor an array is there.
[[nodiscard]] Result<Node> open_node(const Store& store, const std::string& path);

// Whether a folder or archive is a Zarr hierarchy; false for what is none, failures for what cannot be looked at.
[[nodiscard]] Result<bool> is_zarr(const std::filesystem::path& path);

struct HierarchyLimits {
  std::size_t depth = 64;
  std::size_t nodes = 100'000;
};

struct Hierarchy {
  std::vector<Node> nodes;         // the node asked for first, parents before their children, siblings by name
  std::vector<std::string> notes;  // where consolidated metadata say something else
};

// The node at `path` and all below it.
[[nodiscard]] Result<Hierarchy> read_hierarchy(const Store& store, const std::string& path,
                                               const HierarchyLimits& limits = {}, const CancelToken& cancel = {});

[[nodiscard]] Status write_group(const std::string& path, int format, const Json& attributes, StoreOutput& output);

}  // namespace cingulum::zarr
