#include "formats/sidecar.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <nlohmann/json.hpp>
#include <system_error>
#include <vector>

#include "base/hash.hpp"
#include "base/json_view.hpp"
#include "base/read_file.hpp"
#include "formats/bids/bids_sidecar.hpp"
#include "formats/content_hash.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t largest_json_bytes = std::uint64_t{64} << 20U;
constexpr int deepest_json = 64;

// Names, sizes and bytes of the files of a folder, each name ended by a zero, so that no two folders give one sequence.
Result<FileDigest> folder_digest(const fs::path& folder, const CancelToken& cancel) {
  std::error_code error;
  std::vector<std::string> names;
  fs::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    if (!entry->is_directory()) names.push_back(entry->path().lexically_relative(folder).generic_string());
  }
  if (error) return fail(ErrorKind::io, "{}", error.message());
  std::sort(names.begin(), names.end());
  Hash128 hash;
  FileDigest digest;
  for (const std::string& name : names) {
    hash.add(name);
    hash.add(std::string_view("\0", 1));
    CGL_TRY_ASSIGN(const ContentHash content, add_context(hash_content(folder / name, cancel), "{}", name));
    hash.add(fmt::format("{}\n{}\n", content.bytes, content.hex));
    digest.bytes += content.bytes;
  }
  digest.hash = hash.hex();
  return digest;
}

// The parser works by recursion: the depth is looked at first.
Status check_depth(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
      continue;
    }
    if (c == '"') in_string = true;
    if (c == '[' || c == '{') ++depth;
    if (c == ']' || c == '}') --depth;
    if (depth > deepest_json) {
      return fail(ErrorKind::corrupt, "JSON: more than {} levels at byte {}", deepest_json, i);
    }
  }
  return {};
}

Result<nlohmann::ordered_json> read_sidecar_of(const fs::path& path, const fs::path& file) {
  CGL_TRY_ASSIGN(const std::string text, read_text_file(path, largest_json_bytes));
  CGL_TRY_ASSIGN(nlohmann::ordered_json json, add_file_context(parse_json(text), "reading", path.native()));
  return settle_sidecar(sidecar_as_read(std::move(json)), file);
}

}  // namespace

fs::path sidecar_path(const fs::path& file) {
  fs::path path = file;
  // "a.trx.d/" names the folder a.trx.d.
  if (!path.has_filename()) path = path.parent_path();
  if (has_bids_sidecar(path)) return path.replace_extension(".json");
  path += ".json";
  return path;
}

Result<FileDigest> digest_of_file(const fs::path& file, const CancelToken& cancel) {
  const auto digest = [&]() -> Result<FileDigest> {
    std::error_code ignored;
    if (fs::is_directory(file, ignored)) return folder_digest(file, cancel);
    CGL_TRY_ASSIGN(ContentHash content, hash_content(file, cancel));
    return FileDigest{std::move(content.hex), content.bytes};
  };
  return add_file_context(catch_out_of_memory(digest), "hashing", file.native());
}

Result<std::string> hash_of_file(const fs::path& file, const CancelToken& cancel) {
  CGL_TRY_ASSIGN(FileDigest digest, digest_of_file(file, cancel));
  return std::move(digest.hash);
}

void set_digest(nlohmann::ordered_json& sidecar, const fs::path& file, const FileDigest& digest) {
  const fs::path named = file.has_filename() ? file : file.parent_path();
  sidecar["file"] = named.filename().native();
  sidecar["bytes"] = digest.bytes;
  sidecar["xxh3_128"] = digest.hash;
}

Result<nlohmann::ordered_json> parse_json(std::string_view text) {
  return catch_out_of_memory([&]() -> Result<nlohmann::ordered_json> {
    if (text.size() > largest_json_bytes) {
      return fail(ErrorKind::corrupt, "JSON: {} bytes are above the limit of {}", text.size(), largest_json_bytes);
    }
    CGL_TRY(check_depth(text));
    try {
      return nlohmann::ordered_json::parse(text.begin(), text.end());
    } catch (const nlohmann::json::parse_error& error) {
      return fail(ErrorKind::corrupt, "JSON: not well-formed at byte {}", error.byte);
    } catch (const nlohmann::json::exception& error) {
      return fail(ErrorKind::corrupt, "JSON: {}", error.what());
    }
  });
}

Result<nlohmann::ordered_json> read_sidecar(const fs::path& file) {
  return read_sidecar_of(sidecar_path(file), file);
}

Result<nlohmann::ordered_json> read_sidecar_file(const fs::path& sidecar) {
  return read_sidecar_of(sidecar, file_of_sidecar(sidecar));
}

bool is_pending_sidecar(const nlohmann::ordered_json& sidecar) {
  return JsonView(sidecar)["pending"].object() != nullptr;
}

nlohmann::ordered_json settle_sidecar(nlohmann::ordered_json sidecar, const fs::path& file) {
  if (!is_pending_sidecar(sidecar)) return sidecar;
  const nlohmann::ordered_json pending = std::move(sidecar["pending"]);
  sidecar.erase("pending");
  const auto found = hash_of_file(file);
  const JsonView replaced = JsonView(pending)["replaces"];
  const auto names_it = [&](JsonView json) { return found && json["xxh3_128"].json() == *found; };
  return !names_it(JsonView(sidecar)) && names_it(replaced) ? replaced.json() : sidecar;
}

nlohmann::ordered_json run_facts(int threads, double seconds) {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  std::array<char, 32> time{};
  if (::gmtime_r(&now, &utc) != nullptr) (void)std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return {{"version", CINGULUM_VERSION_TEXT},
          {"threads", threads},
          {"seconds", seconds},
          {"host", std::string(host.data())},
          {"finished", std::string(time.data())}};
}

}  // namespace cingulum
