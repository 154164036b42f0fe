#include "runs/oct/oct_tiles.hpp"

#include <algorithm>
#include <vector>

#include "base/argument_name.hpp"
#include "oct/tiles/galvo_band.hpp"

namespace cingulum {
namespace {

// Where the band lies, by a vote of at most 25 tiles spread over all.
Result<oct::GalvoBand> find_galvo_band(const oct::TileSet& set, ThreadPool& pool, const CancelToken& cancel) {
  constexpr std::size_t most_votes = 25;
  const std::size_t count = std::min(most_votes, set.tiles.size());
  std::vector<oct::GalvoVote> votes(count);
  std::vector<Status> states(count);
  pool.parallel_for(count, 1, [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) {
      std::uint64_t replaced = 0;
      const auto tile = oct::read_tile(set, set.tiles[i * set.tiles.size() / count], replaced, cancel);
      if (!tile) {
        states[i] = tl::make_unexpected(tile.error());
      } else {
        votes[i] = oct::vote_for_band(*tile, set.extra_lines);
      }
    }
  });
  for (const Status& state : states) CGL_TRY(state);
  return oct::count_votes(votes);
}

}  // namespace

Result<oct::TileSet> open_oct_tiles(const OctRequest& request) {
  oct::TileSetOptions options;
  if (request.axial_step.has()) options.axial_step_um = request.axial_step.value();
  if (request.unit.has()) options.unit = request.unit.value();
  options.allow_missing = request.allow_missing.value();
  options.average_repeats = request.average_repeats.value();
  CGL_TRY_ASSIGN(oct::TileSet set, oct::open_tiles(request.tiles.value(), options));
  for (const std::string& missing : set.missing) log_warning("{}: {} is missing", request.tiles.value(), missing);
  return set;
}

Result<std::size_t> last_good_line(const oct::TileSet& set, const OctRequest& request, RunMachine& machine,
                                   nlohmann::ordered_json& found) {
  if (set.extra_lines == 0) return 0;
  if (request.galvo_line.has()) {
    const auto line = static_cast<std::size_t>(request.galvo_line.value());
    if (line >= set.shape[2]) {
      return fail_argument("galvo_line", "{} {}: a tile has {} A-lines", argument_name("galvo_line"), line,
                           set.shape[2]);
    }
    found["last_line"] = line;
    return line;
  }
  CGL_TRY_ASSIGN(ThreadPool* const pool, machine.pool());
  CGL_TRY_ASSIGN(const oct::GalvoBand band, find_galvo_band(set, *pool, machine.cancel()));
  if (band.confidence < oct::galvo_confidence_needed) {
    return fail(ErrorKind::corrupt,
                "{}: the band of {} extra lines was not found: {} of {} tiles agree on line {}, confidence {:.2f} of "
                "{:.2f} needed; name the last good line by {}",
                request.tiles.value(), set.extra_lines, band.agreeing, band.votes, band.last_line, band.confidence,
                oct::galvo_confidence_needed, argument_name("galvo_line"));
  }
  found = {{"agreeing", band.agreeing},
           {"votes", band.votes},
           {"confidence", band.confidence},
           {"last_line", band.last_line}};
  return band.last_line;
}

}  // namespace cingulum
