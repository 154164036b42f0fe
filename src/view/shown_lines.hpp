// Streamlines of a file for a page, message after message, in an order that is good to look at: first a sample of the
// whole file, drawn with a fixed seed, then the others in batches whose lines lie near each other, of which the page
// takes those first that are near to where it looks. Points that a line does not need are left out (linearise.hpp) and
// the others have 16 bits for a coordinate (view_messages.hpp), since a page draws and does not measure. Called by the
// server of `cingulum view` and where a viewer is exported.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/result.hpp"
#include "base/thread_pool.hpp"
#include "formats/tractogram.hpp"

namespace cingulum::view {

class ShownLines {
 public:
  // The pool may be null and outlives it.
  explicit ShownLines(ThreadPool* pool) : pool_(pool) {}

  // Message `number` of a file: those of the sample; then one that says where the lines of each further message lie;
  // then these (view_messages.hpp: lines, places, lines). The same bytes whoever asks, and in which order; behind the
  // last there is none. What stays in memory is four bytes for each line that is not in the sample. any thread
  [[nodiscard]] Result<std::vector<std::byte>> message(const std::filesystem::path& path, std::uint64_t number);

 private:
  // Lines of the sample are read in runs of neighbours, since a file is read best in pieces.
  struct Shown {
    std::filesystem::file_time_type written{};  // of the file that all this is of
    std::uintmax_t bytes = 0;
    std::uint64_t lines = 0;
    std::vector<std::uint32_t> sample;               // runs, in the order in which they are sent
    std::vector<std::size_t> sample_begins = {0};    // of the messages in `sample`, as far as they are known
    std::optional<std::vector<std::uint32_t>> rest;  // the other lines, neighbours beside each other; none: not known
    std::vector<std::size_t> rest_begins;            // of the messages in `rest`, and its end
    std::vector<std::array<float, 6>> boxes;         // of the middles of their lines
  };

  [[nodiscard]] Status open(const std::filesystem::path& path);
  [[nodiscard]] Result<Shown*> find(const std::filesystem::path& path);
  [[nodiscard]] Result<std::vector<std::byte>> sample_message(Shown& shown, std::size_t number);
  [[nodiscard]] Status sort_rest(const std::filesystem::path& path, Shown& shown);
  [[nodiscard]] Result<std::vector<std::byte>> message_of(std::span<const std::uint32_t> lines);
  [[nodiscard]] Status gather(std::span<const std::uint32_t> lines, TractogramBatch& batch);

  ThreadPool* pool_;
  std::mutex mutex_;
  std::map<std::filesystem::path, Shown> files_;
  std::filesystem::path open_path_;           // of the file that was asked for last
  std::unique_ptr<TractogramReader> reader_;  // of it
};

}  // namespace cingulum::view
