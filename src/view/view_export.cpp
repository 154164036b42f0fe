#include "view/view_export.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "device/selfcheck_item.hpp"
#include "numerics/float16.hpp"
#include "view/assets.hpp"
#include "view/field_bytes.hpp"

namespace cingulum {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view listing_name = "api/files";
constexpr std::string_view head_name = "field/head";
constexpr std::string_view records_name = "field/records";
constexpr std::uint32_t selfcheck_items = 1024;

bool is_exported_viewer(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_regular_file(folder / "index.html", ignored) && fs::is_regular_file(folder / listing_name, ignored);
}
constexpr FolderKind exported_viewer{"viewer that was exported before", is_exported_viewer};

Status write(FolderOutput& folder, std::string_view name, std::span<const std::byte> bytes) {
  const std::array<std::span<const std::byte>, 1> parts = {bytes};
  return folder.write_file(std::string(name), parts);
}
Status write(FolderOutput& folder, std::string_view name, std::string_view text) {
  return write(folder, name, std::as_bytes(std::span(text)));
}

Status copy_file(FolderOutput& folder, const std::string& name, const fs::path& from) {
  std::ifstream in(from, std::ios::binary);
  CGL_TRY_ASSIGN(FolderOutput::File out, folder.begin_file(name));
  std::vector<char> piece(std::size_t{1} << 20U);
  while (in) {
    in.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    CGL_TRY(out.append(std::as_bytes(std::span(piece).first(static_cast<std::size_t>(in.gcount())))));
  }
  if (!in.eof())
    return fail_file(from.native(), ErrorKind::io, "reading {}: it cannot be read to its end", from.native());
  return out.end();
}

Status replace_once(std::string& text, std::string_view what, std::string_view by) {
  const std::size_t at = text.find(what);
  if (at == std::string::npos) return fail(ErrorKind::invalid_state, "the page has no '{}'", what);
  text.replace(at, what.size(), by);
  return {};
}

// The page says of itself that there is no server, and what it may load. What it says until its script runs is seen
// where that does not: scripts of files that were opened without a web server are refused by browsers.
Result<std::string> exported_index() {
  std::string text(view::find_asset("index.html").text);
  constexpr std::string_view charset = "<meta charset=\"utf-8\">\n";
  CGL_TRY(replace_once(
      text, charset,
      fmt::format(
          "{}<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'self'; img-src 'self' data: blob:; "
          "script-src 'self' 'wasm-unsafe-eval'; base-uri 'none'; form-action 'none'\">\n"
          "<meta name=\"cingulum-source\" content=\"exported\">\n",
          charset)));
  constexpr std::string_view silent = "<p id=\"message\" role=\"status\" aria-live=\"polite\" hidden></p>";
  CGL_TRY(
      replace_once(text, silent,
                   "<p id=\"message\" role=\"status\" aria-live=\"polite\">This page needs a web server, and a browser "
                   "with scripts. Any server of files does: python3 -m http.server in this folder, then open "
                   "http://localhost:8000/.</p>"));
  return text;
}

// Middles of the voxels with the greatest numbers in the stopping map, the greatest first.
std::vector<numerics::Vec3d> strongest_places(const Field& field, std::size_t count) {
  const ImageGeometry& geometry = field.geometry;
  std::vector<std::pair<float, std::array<std::int64_t, 3>>> voxels;
  for (std::int64_t k = 0; k < geometry.size[2]; ++k) {
    for (std::int64_t j = 0; j < geometry.size[1]; ++j) {
      for (std::int64_t i = 0; i < geometry.size[0]; ++i) {
        const std::uint32_t record = field.record_of_voxel[static_cast<std::size_t>(voxel_index(geometry, i, j, k))];
        if (record == 0) continue;
        const std::size_t at = std::size_t{record} * field.stride + field.channels;
        const float value =
            field.is_float16() ? numerics::finite_float16_to_float(field.float16_records[at]) : field.records[at];
        voxels.push_back({-value, {i, j, k}});
      }
    }
  }
  count = std::min(count, voxels.size());
  std::partial_sort(voxels.begin(), voxels.begin() + static_cast<std::ptrdiff_t>(count), voxels.end());
  std::vector<numerics::Vec3d> places;
  for (std::size_t n = 0; n < count; ++n) {
    const auto& [i, j, k] = voxels[n].second;
    places.push_back(
        geometry.voxel_to_world.apply({static_cast<double>(i), static_cast<double>(j), static_cast<double>(k)}));
  }
  return places;
}

// A small request of a getter, by which a page compares its adapter with the CPU of the program.
std::string check_request(const std::string& getter, numerics::Vec3d place, const Field& field) {
  return Json({{"dg", getter},
               {"sphere", {place.x, place.y, place.z, field.geometry.smallest_edge_mm()}},
               {"nseeds", 6},
               {"min-length", 0}})
      .dump();
}

// Where the first getter has something to say: noise has strong voxels, too.
Result<numerics::Vec3d> place_of_checks(ExportedTracks& tracks, const std::string& getter) {
  constexpr std::size_t most_places = 50;
  constexpr std::uint64_t enough_points = 200;
  numerics::Vec3d best{};
  std::uint64_t most_points = 0;
  for (const numerics::Vec3d place : strongest_places(tracks.field(), most_places)) {
    CGL_TRY(sum_by_cpu(tracks, check_request(getter, place, tracks.field())));
    const std::uint64_t points = tracks.statistics().points;
    if (points <= most_points) continue;
    best = place;
    most_points = points;
    if (points >= enough_points) break;
  }
  return best;
}

Result<Json> check_json(const ExportedLive& live, std::span<const std::byte> head) {
  BitSum arithmetic;
  for (std::uint32_t i = 0; i < selfcheck_items; ++i) {
    std::array<std::uint32_t, selfcheck_words> words{};
    selfcheck_item(i, words.data());
    arithmetic.add(std::as_bytes(std::span(words)));
  }
  // By the bytes that the page will read, so that they are read once before anybody gets them.
  CGL_TRY_ASSIGN(const std::unique_ptr<ExportedTracks> tracks, ExportedTracks::open(live.facts, head));
  const std::span<const std::byte> records = live.field->stored_bytes();
  if (tracks->records().size() != records.size())
    return fail(ErrorKind::invalid_state, "the field was not exported whole");
  std::memcpy(tracks->records().data(), records.data(), records.size());
  CGL_TRY_ASSIGN(const numerics::Vec3d place, place_of_checks(*tracks, live.facts.first_getter));
  Json of_getters = Json::object();
  for (const std::string& getter : live.facts.limits.getters) {
    const std::string request = check_request(getter, place, *live.field);
    CGL_TRY_ASSIGN(std::string sum,
                   add_context(sum_by_cpu(*tracks, request), "the check of {} {}", argument_name("dg"), getter));
    of_getters[getter] = {{"request", request}, {"sum", std::move(sum)}};
  }
  return Json({{"items", selfcheck_items}, {"arithmetic", arithmetic.hex()}, {"getters", std::move(of_getters)}});
}

// All messages of its streamlines (view/shown_lines.hpp): up to the one that says how many follow it, and those.
Status write_lines(FolderOutput& folder, view::ViewHost& host, const view::ViewFile& file) {
  std::optional<std::uint64_t> last;
  for (std::uint64_t number = 0; !last || number <= *last; ++number) {
    CGL_TRY_ASSIGN(const std::vector<std::byte> message, host.lines(file, number));
    CGL_TRY(write(folder, fmt::format("api/lines/{}/{}", file.id, number), message));
    if (last) continue;
    CGL_TRY_ASSIGN(const std::optional<std::uint32_t> further, view::messages_behind(message));
    if (further) last = number + *further;
  }
  return {};
}

// A number of each streamline, for every column that the listing says.
Status write_values(FolderOutput& folder, view::ViewHost& host, const view::ViewFile& file, const Json& listing) {
  for (const Json& entry : listing["files"]) {
    if (entry["id"] != file.id || !entry.contains("columns")) continue;
    for (std::size_t column = 0; column < entry["columns"].size(); ++column) {
      CGL_TRY_ASSIGN(const std::vector<std::byte> values, host.values(file, column));
      CGL_TRY(write(folder, fmt::format("api/values/{}/{}", file.id, column), values));
    }
  }
  return {};
}

}  // namespace

Result<FolderOutput> begin_export(const fs::path& folder, const WriteOptions& options) {
  if (view::find_asset("page.js").text.empty()) {
    return fail(ErrorKind::unavailable,
                "{}: the page was left out of this program; build it with Node (docs/view.md, \"Building\")",
                argument_name("export"));
  }
  if (view::find_asset("browser_host.wasm").text.empty()) {
    return fail(ErrorKind::unavailable,
                "{}: the module for browsers was left out of this program; install emscripten and build it again "
                "(docs/view.md, \"Building\")",
                argument_name("export"));
  }
  // "DIR/" is DIR.
  const fs::path name = folder.has_filename() ? folder : folder.parent_path();
  WriteOptions with_empty = options;
  std::error_code error;
  with_empty.force = options.force || (fs::is_directory(name, error) && fs::is_empty(name, error));
  return FolderOutput::create(name, exported_viewer, with_empty);
}

Status write_export(FolderOutput& folder, view::ViewHost& host, std::span<const view::ViewFile> files,
                    const std::optional<ExportedLive>& live) {
  Json listing = Json::parse(host.files_json());
  for (const view::ViewFile& file : files) {
    if (file.kind == "tractogram") {
      CGL_TRY(write_lines(folder, host, file));
      CGL_TRY(write_values(folder, host, file, listing));
    }
    if (file.kind == "image") CGL_TRY(copy_file(folder, "data/" + file.id, file.path));
  }
  if (live) {
    // What every adapter has, so that the page works wherever there is WebGPU.
    CGL_TRY(add_context(make_driven_tracking(*live->field, {}), "{}", argument_name("export")));
    const std::vector<std::byte> head = view::field_head_bytes(*live->field);
    listing["tracks"] = facts_json(live->facts);
    CGL_TRY_ASSIGN(listing["check"], check_json(*live, head));
    listing["live"]["getters"] = live->facts.limits.getters;
    listing["live"]["device"] = "this browser";
    listing["live"]["truth"] = live->facts.truth.has_value();
    CGL_TRY(write(folder, head_name, head));
    CGL_TRY(write(folder, records_name, live->field->stored_bytes()));
    for (const char* name : {"browser_host.js", "browser_host.wasm"}) {
      CGL_TRY(write(folder, name, view::find_asset(name).text));
    }
  }
  CGL_TRY_ASSIGN(const std::string index, exported_index());
  CGL_TRY(write(folder, "index.html", index));
  for (const char* name : {"page.js", "page.css"}) CGL_TRY(write(folder, name, view::find_asset(name).text));
  CGL_TRY(write(folder, listing_name, json_text(listing)));
  return folder.commit();
}

}  // namespace cingulum
