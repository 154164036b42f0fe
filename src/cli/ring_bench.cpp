// `cingulum ring bench`: the runtime beside the machine's own limit.
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "cli/ring_actions.hpp"
#include "cli/table.hpp"
#include "measure/bench_report.hpp"
#include "measure/ring_rows.hpp"

namespace cingulum {
namespace {

std::string number_text(double value) {
  if (value == 0) return "";
  if (value >= 1e5) return fmt::format("{:.2f} M", value / 1e6);
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3f}", value);
}

}  // namespace

Status run_ring_bench(const ParsedArguments& arguments, VerbContext& context) {
  measure::RingCounts counts;
  if (arguments.flag("quick")) counts = {1000, 20000, 1000, 2, 4, 20};
  // Answers come soonest from a block of one warp, streams from the largest. One place after the other: the limits of a
  // device are measured while no actors stay on it.
  std::vector<measure::RingRow> rows;
  using Rows = Result<std::vector<measure::RingRow>> (*)(ring::WorkloadPlace&, const measure::RingCounts&);
  struct Part {
    Rows bench;
    std::uint32_t actors;
    std::uint32_t lanes;
  };
  for (const Part& part : {Part{&measure::ring_answer_rows, 2, 32}, Part{&measure::ring_stream_rows, 32, 256}}) {
    CGL_TRY_ASSIGN(const RingProgram program,
                   start_ring_program("bench", arguments, context,
                                      {.actors = part.actors, .lanes = part.lanes, .limit_samples = counts.round_trips},
                                      rows.empty()));
    CGL_TRY_ASSIGN(std::vector<measure::RingRow> some, part.bench(*program.place, counts));
    for (measure::RingRow& row : some) rows.push_back(std::move(row));
  }
  if (context.common().json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const measure::RingRow& row : rows) {
      nlohmann::ordered_json json = {{"scenario", row.scenario},
                                     {"place", row.place},
                                     {"unit", row.unit},
                                     {"median", row.value},
                                     {"best", row.best}};
      if (row.p99 > 0) json.update({{"p99", row.p99}, {"p999", row.p999}});
      if (row.limit > 0) {
        json.update({{"limit_name", row.limit_name}, {"limit", row.limit}, {"ratio", row.value / row.limit}});
      }
      list.push_back(std::move(json));
    }
    nlohmann::ordered_json json = measure::report_frame("ring bench");
    json.update({{"threads", context.common().threads},
                 {"round_trips", counts.round_trips},
                 {"stream_messages", counts.stream_messages},
                 {"rows", std::move(list)}});
    context.print(json_text(json));
    return {};
  }
  Table table({{"scenario"},
               {"on"},
               {"median", Align::right},
               {"p99", Align::right},
               {"p99.9", Align::right},
               {"best", Align::right},
               {"unit"},
               {"of the limit", Align::right}});
  for (const measure::RingRow& row : rows) {
    table.add_row({row.scenario, row.place, number_text(row.value), number_text(row.p99), number_text(row.p999),
                   number_text(row.best), row.unit,
                   row.limit > 0 ? fmt::format("{:.3g} x", row.value / row.limit) : std::string()});
  }
  context.print(table.text());
  return {};
}

}  // namespace cingulum
