// What the viewer's server serves: files by identifier, streamlines of requests, runs that are saved. The server
// (view_server.hpp) knows HTTP and sockets and nothing of data; `cingulum view` implements this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/cancel.hpp"
#include "base/result.hpp"
#include "view/request_queue.hpp"

namespace cingulum::view {

struct ViewFile {
  std::string id;    // "f1"
  std::string name;  // without folders
  std::string kind;  // image, tractogram, series
  std::filesystem::path path;
  std::uint64_t bytes = 0;
};

// A run that was written into a folder of the process.
struct SavedRun {
  std::filesystem::path tractogram;
  std::filesystem::path sidecar;
  std::string command;
};

class ViewHost : public Answerer {
 public:
  // The body of /api/files. any thread
  [[nodiscard]] virtual std::string files_json() const = 0;
  // Null where there is none. They stay for the life of the host. any thread
  [[nodiscard]] virtual const ViewFile* find_file(std::string_view id) const = 0;
  // A message of the streamlines of a tractogram (shown_lines.hpp). Called by one thread, beside the others.
  [[nodiscard]] virtual Result<std::vector<std::byte>> lines(const ViewFile& file, std::uint64_t number) = 0;
  // Orientation distributions of a slice (field_glyphs.hpp). Called by the same thread as lines().
  [[nodiscard]] virtual Result<std::vector<std::byte>> glyphs(int axis, double mm) = 0;
  // Peaks of a slice (field_peaks.hpp). Called by the same thread.
  [[nodiscard]] virtual Result<std::vector<std::byte>> peaks(int axis, double mm) = 0;
  // A number for each streamline of a tractogram (line_values.hpp). Called by the same thread.
  [[nodiscard]] virtual Result<std::vector<std::byte>> values(const ViewFile& file, std::size_t column) = 0;
  // Tracks what a request asks for as `cingulum track` does, into files that stay until the next call with
  // another request. Called by one thread, beside answer().
  [[nodiscard]] virtual Result<SavedRun> save(const std::vector<ArgumentText>& request, const CancelToken& cancel) = 0;
};

}  // namespace cingulum::view
