// The JSON file beside an output: a.trx -> a.trx.json (contract, section 5). Holds every parameter of the run that made
// the file, the hashes of its inputs, and the hash of the file itself, by which `cingulum verify` finds damage that the
// format cannot see. Only the member `run` (device, threads, times, host, versions) may differ between equal runs. How
// file and sidecar change together is the matter of output_sidecar.hpp; while they do, the sidecar has a member
// `pending`, which readers never see: {"replaces": null, where no file was replaced, or what the sidecar said of the
// old file}.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/atomic_file.hpp"
#include "base/result.hpp"

namespace cingulum {

[[nodiscard]] std::filesystem::path sidecar_path(const std::filesystem::path& file);

// XXH3-128 over the bytes of a file; of a folder (TRX, Zarr) over the sorted relative names, sizes and bytes.
[[nodiscard]] Result<std::string> hash_of_file(const std::filesystem::path& file, const CancelToken& cancel = {});

// The same, with the bytes of the file, or of all files of the folder.
struct FileDigest {
  std::string hash;
  std::uint64_t bytes = 0;
};
[[nodiscard]] Result<FileDigest> digest_of_file(const std::filesystem::path& file, const CancelToken& cancel = {});

// Sets "file" (name of `file`), "bytes" and "xxh3_128".
void set_digest(nlohmann::ordered_json& sidecar, const std::filesystem::path& file, const FileDigest& digest);

// What the sidecar says of the file that is there. Bounded: at most 64 MB and 64 levels. not_found when there is none.
[[nodiscard]] Result<nlohmann::ordered_json> read_sidecar(const std::filesystem::path& file);
// The same by the sidecar's own name, FILE.json.
[[nodiscard]] Result<nlohmann::ordered_json> read_sidecar_file(const std::filesystem::path& sidecar);
// A sidecar with `pending` speaks of two files, the new and the replaced one. The value is what it says of the one that
// is there, without `pending`; of the new one where the hash is neither's or nothing is there.
[[nodiscard]] nlohmann::ordered_json settle_sidecar(nlohmann::ordered_json sidecar, const std::filesystem::path& file);
[[nodiscard]] bool is_pending_sidecar(const nlohmann::ordered_json& sidecar);
// Parses JSON text with the same bounds; the message names the position. Out of memory is an Error here, but the
// destructors of what comes back allocate, too, and end the process when they cannot: hold JSON only while it is small
// and never across the reading of large data.
[[nodiscard]] Result<nlohmann::ordered_json> parse_json(std::string_view text);

// What the run was made of, for the member "run": version, threads, host, time, duration.
[[nodiscard]] nlohmann::ordered_json run_facts(int threads, double seconds);

}  // namespace cingulum
