// The host part of tracking in a page that has no server: view/exported_tracks.hpp as functions that a page calls
// (web/src/exported_engine.ts), compiled to WebAssembly by cmake/BrowserHost.cmake. Bytes go in by memory that the page
// asks for, and come out as the `answer`. A function that fails answers false, and the answer is the body of an error
// message.
#include <emscripten/emscripten.h>

#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "device/shader_library.hpp"
#include "formats/sidecar.hpp"
#include "view/exported_tracks.hpp"

namespace cingulum {
namespace {

std::vector<std::byte> answer;
std::unique_ptr<ExportedTracks> tracks;
BitSum sum;

void give(std::string_view text) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  answer.assign(bytes, bytes + text.size());
}

void give(const void* bytes, std::size_t size) {
  give(std::string_view(static_cast<const char*>(bytes), size));
}

bool done(const Status& status) {
  if (!status) give(describe_failure(status.error()));
  return status.has_value();
}

bool done(Result<std::vector<std::byte>> made) {
  if (made) {
    answer = std::move(*made);
  } else {
    give(describe_failure(made.error()));
  }
  return made.has_value();
}

std::span<const std::byte> bytes_at(const void* memory, std::size_t size) {
  return {static_cast<const std::byte*>(memory), size};
}

// With the number from the uniform block, as browsers want it (device/shader_library.hpp); the line that sets the
// variable in its place goes.
std::string selfcheck_text() {
  constexpr std::string_view number = "selfcheck_scalars.negative_zero";
  std::string own(embedded_shader("selfcheck.wgsl"));
  const std::string setting = fmt::format("  negative_zero = {};\n", number);
  own.erase(own.find(setting), setting.size());
  return numerics_wgsl(LaneForm::workgroup, number) + own;
}

Status open(std::string_view listing, std::span<const std::byte> field_head) {
  CGL_TRY_ASSIGN(const nlohmann::ordered_json json, parse_json(listing));
  if (!json.is_object() || !json.contains("tracks")) return fail(ErrorKind::corrupt, "the exported listing is damaged");
  CGL_TRY_ASSIGN(ExportedFacts facts, facts_of_json(json["tracks"]));
  CGL_TRY_ASSIGN(tracks, ExportedTracks::open(std::move(facts), field_head));
  return {};
}

}  // namespace
}  // namespace cingulum

using cingulum::answer;
using cingulum::done;
using cingulum::give;
using cingulum::tracks;

extern "C" {

EMSCRIPTEN_KEEPALIVE const void* host_answer() {
  return answer.data();
}
EMSCRIPTEN_KEEPALIVE std::uint32_t host_answer_bytes() {
  return static_cast<std::uint32_t>(answer.size());
}

// The listing is JSON with the member `tracks`, the head those bytes of the field.
EMSCRIPTEN_KEEPALIVE bool host_open(const char* listing, std::uint32_t listing_bytes, const void* head,
                                    std::uint32_t head_bytes) {
  return done(cingulum::open({listing, listing_bytes}, cingulum::bytes_at(head, head_bytes)));
}
// Where the records go, before the first request.
EMSCRIPTEN_KEEPALIVE void* host_records() {
  return tracks->records().data();
}
EMSCRIPTEN_KEEPALIVE std::uint32_t host_records_bytes() {
  return static_cast<std::uint32_t>(tracks->records().size());
}

// The adapter that tracks from now on; the answer are numbers of 32 bits: bindings of the field, bytes of records in
// each but the last, bytes of the work, of the pages, and where seeds and points begin in those.
EMSCRIPTEN_KEEPALIVE bool host_use_adapter(bool software, double largest_binding_bytes, std::uint32_t storage_bindings,
                                           std::uint32_t workgroup_bytes) {
  cingulum::DrivenAdapter adapter;
  adapter.software = software;
  adapter.largest_binding_bytes = static_cast<std::uint64_t>(largest_binding_bytes);
  adapter.storage_bindings = storage_bindings;
  adapter.workgroup_bytes = workgroup_bytes;
  if (!done(tracks->use_adapter(adapter))) return false;
  const cingulum::DrivenLayout& layout = tracks->driven()->layout();
  give(&layout, sizeof layout);
  return true;
}
EMSCRIPTEN_KEEPALIVE void host_use_cpu() {
  tracks->use_cpu();
}

EMSCRIPTEN_KEEPALIVE bool host_ask(std::uint32_t number, const char* asked, std::uint32_t bytes, bool saves) {
  return done(tracks->ask(number, {asked, bytes}, saves));
}
EMSCRIPTEN_KEEPALIVE void host_command() {
  give(tracks->command());
}
// The sidecar of what was saved last, as JSON.
EMSCRIPTEN_KEEPALIVE void host_sidecar() {
  give(tracks->sidecar().dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}
// Which tables the request reads: the same number, the same tables.
EMSCRIPTEN_KEEPALIVE std::uint32_t host_getter() {
  return tracks->plan().getter;
}
EMSCRIPTEN_KEEPALIVE void host_text() {
  give(tracks->driven()->text());
}
// The tables, and behind them the numbers of records per voxel.
EMSCRIPTEN_KEEPALIVE void host_tables() {
  const std::vector<std::uint32_t> words = tracks->driven()->tables();
  give(words.data(), words.size() * sizeof(std::uint32_t));
}

// Whether there is one more range.
EMSCRIPTEN_KEEPALIVE bool host_next_range() {
  return tracks->next_range().has_value();
}
EMSCRIPTEN_KEEPALIVE bool host_track_by_cpu() {
  return done(tracks->track_by_cpu());
}
// The seeds of the range, as the work has them.
EMSCRIPTEN_KEEPALIVE bool host_begin_dispatches() {
  const auto words = tracks->begin_dispatches();
  if (!words) return done(cingulum::Status(tl::make_unexpected(words.error())));
  give(words->data(), words->size_bytes());
  return true;
}
// The uniform block; the value is the number of workgroups.
EMSCRIPTEN_KEEPALIVE std::uint32_t host_launch() {
  const std::vector<std::uint32_t> words = tracks->driven()->launch_words();
  give(words.data(), words.size() * sizeof(std::uint32_t));
  return tracks->driven()->launch_workgroups();
}
// With the counters at `counters`: the pages to take.
EMSCRIPTEN_KEEPALIVE std::uint32_t host_after_dispatch(const std::uint32_t* counters, double seconds) {
  const std::size_t words = tracks->driven()->layout().counter_bytes / sizeof(std::uint32_t);
  return tracks->driven()->after_dispatch({counters, words}, seconds);
}
EMSCRIPTEN_KEEPALIVE void host_take_pages(const void* entries, std::uint32_t entry_bytes, const void* points,
                                          std::uint32_t point_bytes) {
  tracks->driven()->take_pages(cingulum::bytes_at(entries, entry_bytes), cingulum::bytes_at(points, point_bytes));
}
EMSCRIPTEN_KEEPALIVE bool host_finished() {
  return tracks->driven()->finished();
}
// The message of the range; empty where nothing was kept.
EMSCRIPTEN_KEEPALIVE bool host_end_range() {
  return done(tracks->end_range());
}
// The message at the end, or the TRX.
EMSCRIPTEN_KEEPALIVE bool host_end() {
  return done(tracks->end());
}

EMSCRIPTEN_KEEPALIVE bool host_glyphs(std::uint32_t axis, double mm) {
  return done(tracks->glyphs(static_cast<int>(axis), mm));
}

EMSCRIPTEN_KEEPALIVE bool host_peaks(std::uint32_t axis, double mm) {
  return done(tracks->peaks(static_cast<int>(axis), mm));
}

// Sums of bits, by which the adapter is checked.
EMSCRIPTEN_KEEPALIVE void host_begin_sum() {
  cingulum::sum = {};
}
EMSCRIPTEN_KEEPALIVE void host_add_to_sum(const void* bytes, std::uint32_t count) {
  cingulum::sum.add(cingulum::bytes_at(bytes, count));
}
EMSCRIPTEN_KEEPALIVE void host_sum() {
  give(cingulum::sum.hex());
}
// The text of `cingulum selfcheck`.
EMSCRIPTEN_KEEPALIVE void host_selfcheck_text() {
  give(cingulum::selfcheck_text());
}
}
