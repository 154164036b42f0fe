// The JSON file beside an output: a.trx -> a.trx.json (contract, section 5). Holds every parameter of the run that made
// the file, the hashes of its inputs, and the hash of the file itself, by which `cingulum verify` finds damage that the
// format cannot see. Only the member `run` (device, threads, times, host, versions) may differ between equal runs.
#pragma once

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

// Adds "file" (name), "bytes" and "xxh3_128" of `file`, which is complete, and writes it all beside it.
[[nodiscard]] Status write_sidecar(const std::filesystem::path& file, const nlohmann::ordered_json& content,
                                   const WriteOptions& options);
// Bounded: at most 64 MB and 64 levels. not_found when there is none.
[[nodiscard]] Result<nlohmann::ordered_json> read_sidecar(const std::filesystem::path& file);
// Parses JSON text with the same bounds; the message names the position. Out of memory is an Error here, but the
// destructors of what comes back allocate, too, and end the process when they cannot: hold JSON only while it is small
// and never across the reading of large data.
[[nodiscard]] Result<nlohmann::ordered_json> parse_json(std::string_view text);

// What the run was made of, for the member "run": version, threads, host, time, duration.
[[nodiscard]] nlohmann::ordered_json run_facts(int threads, double seconds);

}  // namespace cingulum
