// `cingulum ring bench`: the runtime beside the machine's own limit.
#include "ring/workloads/ring_bench.hpp"

#include <nlohmann/json.hpp>

#include "base/json_text.hpp"
#include "cli/ring_actions.hpp"
#include "cli/table.hpp"

namespace cingulum {
namespace {

std::string number_text(double value) {
  if (value == 0) return "";
  if (value >= 1e5) return fmt::format("{:.2f} M", value / 1e6);
  return value >= 100 ? fmt::format("{:.0f}", value) : fmt::format("{:.3f}", value);
}

}  // namespace

Status run_ring_bench(const ParsedArguments& arguments, VerbContext& context) {
  ring::BenchOptions options;
  if (arguments.flag("quick")) options = {1000, 20000, 1000, 2, 4, 20};
  // Answers come soonest from a block of one warp, streams from larger ones. One place after the other: the limits of a
  // device are measured while no actors stay on it.
  std::vector<ring::BenchRow> rows;
  using Rows = Result<std::vector<ring::BenchRow>> (*)(ring::WorkloadPlace&, const ring::BenchOptions&);
  struct Part {
    Rows bench;
    std::uint32_t actors;
    std::uint32_t lanes;
  };
  for (const Part& part : {Part{&ring::bench_answers, 2, 32}, Part{&ring::bench_streams, 32, 128}}) {
    CGL_TRY_ASSIGN(
        const RingProgram program,
        start_ring_program("bench", arguments, context,
                           {.actors = part.actors, .lanes = part.lanes, .limit_samples = options.round_trips}));
    CGL_TRY_ASSIGN(std::vector<ring::BenchRow> some, part.bench(*program.place, options));
    for (ring::BenchRow& row : some) rows.push_back(std::move(row));
  }
  if (context.common().json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ring::BenchRow& row : rows) {
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
    context.print(json_text({{"threads", context.common().threads},
                             {"round_trips", options.round_trips},
                             {"stream_messages", options.stream_messages},
                             {"rows", std::move(list)}}));
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
  for (const ring::BenchRow& row : rows) {
    table.add_row({row.scenario, row.place, number_text(row.value), number_text(row.p99), number_text(row.p999),
                   number_text(row.best), row.unit,
                   row.limit > 0 ? fmt::format("{:.3g} x", row.value / row.limit) : std::string()});
  }
  context.print(table.text());
  return {};
}

}  // namespace cingulum
