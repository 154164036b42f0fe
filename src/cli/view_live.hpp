// Streamlines for the pages of `cingulum view`: one field, prepared as `cingulum track` prepares it, stays on a device,
// and an actor answers requests about it (tract/session). A request becomes the words of a command, so that options are
// checked, completed and spelled as on the command line, and every answer has a command that writes the same bytes.
#pragma once

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "cli/verb.hpp"
#include "view/live_desk.hpp"
#include "view/view_host.hpp"

namespace cingulum {

// What is tracked: the words of `track` that name it and the options that hold for every request.
struct LiveSource {
  std::vector<std::string> data;
  std::vector<view::WishedOption> options;
  std::string name;           // of the file, for the page
  std::string hidden_folder;  // of the phantom: shown by its name alone
  std::string before;         // what has to be run before the command: the phantom
};

class LiveTracks {
 public:
  // Reads, fits and brings the field to the device. `scratch` is a folder for fits and saved runs. The context outlives
  // it.
  [[nodiscard]] static Result<std::unique_ptr<LiveTracks>> open(LiveSource source, std::filesystem::path scratch,
                                                                VerbContext& context);
  virtual ~LiveTracks() = default;
  LiveTracks(const LiveTracks&) = delete;
  LiveTracks& operator=(const LiveTracks&) = delete;

  // Member `live` of /api/files.
  [[nodiscard]] virtual nlohmann::ordered_json facts() const = 0;
  // Orientation distributions of a slice (view/field_glyphs.hpp). Another thread.
  [[nodiscard]] virtual Result<std::vector<std::byte>> glyphs(int axis, double mm) = 0;
  // One thread.
  [[nodiscard]] virtual Status answer(const view::LiveRequest& request, std::uint32_t page, const CancelToken& cancel,
                                      const view::LiveSend& send) = 0;
  // Another thread.
  [[nodiscard]] virtual Result<view::SavedRun> save(const std::vector<view::WishedOption>& wish,
                                                    const CancelToken& cancel) = 0;

 protected:
  LiveTracks() = default;
};

// A word as a shell reads it.
[[nodiscard]] std::string shell_word(const std::string& word);

}  // namespace cingulum
