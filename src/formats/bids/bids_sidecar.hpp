// The sidecar of a tractogram that is named after BIDS: sub-01_..._tractogram.trx has sub-01_..._tractogram.json, in
// which all that formats/sidecar.hpp speaks of is the member `Cingulum`, beside the members that BIDS knows
// (`Sources`). Readers of sidecars see the member alone, so that `info`, `verify`, `report` and `--from` need not know.
// Called by sidecar.cpp and output_sidecar.cpp.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

namespace cingulum {

[[nodiscard]] bool has_bids_sidecar(const std::filesystem::path& file);

// The file of which a sidecar speaks, by the sidecar's name: of several formats the one that is there.
[[nodiscard]] std::filesystem::path file_of_sidecar(const std::filesystem::path& sidecar);

// The JSON of the sidecar of `file` as it is written: where that is BIDS's, the member `bids` gives what stands beside
// `Cingulum`, and `run` names neither host nor folder: datasets are made to be shared.
[[nodiscard]] nlohmann::ordered_json sidecar_as_written(nlohmann::ordered_json sidecar,
                                                        const std::filesystem::path& file);
// The sidecar that was given to sidecar_as_written(), without the members that BIDS knows.
[[nodiscard]] nlohmann::ordered_json sidecar_as_read(nlohmann::ordered_json json);

}  // namespace cingulum
