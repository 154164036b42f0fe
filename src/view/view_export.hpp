// `cingulum view --export DIR`: the viewer as a folder that any web server serves, and that tracks in the browser. It
// holds what the server of `cingulum view` would answer, under the same names, the field, and the host part of tracking
// as WebAssembly (web/host). docs/view.md, "Without a server".
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "base/result.hpp"
#include "formats/folder_output.hpp"
#include "view/exported_tracks.hpp"
#include "view/view_host.hpp"

namespace cingulum {

// The checks that come before the work: this build can export, and the folder may be written.
[[nodiscard]] Result<FolderOutput> begin_export(const std::filesystem::path& folder, const WriteOptions& options);

// What is tracked there.
struct ExportedLive {
  ExportedFacts facts;
  const Field* field = nullptr;
};

// Series are left out: what is shown of them are images of their own.
[[nodiscard]] Status write_export(FolderOutput& folder, view::ViewHost& host, std::span<const view::ViewFile> files,
                                  const std::optional<ExportedLive>& live);

}  // namespace cingulum
