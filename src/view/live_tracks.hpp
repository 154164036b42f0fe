// Streamlines for the pages of `cingulum view`: a field, prepared as `cingulum track` prepares it, stays on a device in
// a session (tract/session), which is asked by each request of a page. A request of a page is one of `track` whose
// other members are those of the viewer's command line; every answer has a command that writes the same bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "runs/machine.hpp"
#include "view/page_request.hpp"
#include "view/request_queue.hpp"
#include "view/view_export.hpp"
#include "view/view_host.hpp"

namespace cingulum {

class LiveTracks {
 public:
  // Reads, fits and brings the field to the device. `scratch` is a folder for fits and saved runs. The machine
  // outlives it.
  [[nodiscard]] static Result<std::unique_ptr<LiveTracks>> open(LiveSource source, std::filesystem::path scratch,
                                                                RunMachine& machine);
  virtual ~LiveTracks() = default;
  LiveTracks(const LiveTracks&) = delete;
  LiveTracks& operator=(const LiveTracks&) = delete;

  // Member `live` of /api/files.
  [[nodiscard]] virtual nlohmann::ordered_json facts() const = 0;
  // Orientation distributions of a slice (view/field_glyphs.hpp). Another thread.
  [[nodiscard]] virtual Result<std::vector<std::byte>> glyphs(int axis, double mm) = 0;
  // Peaks of the same slice (view/field_peaks.hpp). The same thread.
  [[nodiscard]] virtual Result<std::vector<std::byte>> peaks(int axis, double mm) = 0;
  // What a page needs to track without this process. Refers to the field here.
  [[nodiscard]] virtual Result<ExportedLive> exported() const = 0;
  // One thread. The flag `score` of a request asks for the score where the truth is known.
  [[nodiscard]] virtual Status answer(const view::LiveRequest& request, std::uint32_t page, const CancelToken& cancel,
                                      const view::LiveSend& send) = 0;
  // Another thread.
  [[nodiscard]] virtual Result<view::SavedRun> save(const std::vector<ArgumentText>& asked,
                                                    const CancelToken& cancel) = 0;

 protected:
  LiveTracks() = default;
};

}  // namespace cingulum
