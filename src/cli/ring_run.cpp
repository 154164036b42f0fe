// `cingulum ring run`: the workloads, checked and timed.
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/atomic_file.hpp"
#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "base/read_file.hpp"
#include "cli/ring_actions.hpp"
#include "cli/table.hpp"
#include "formats/output_sidecar.hpp"
#include "ring/workloads/anomaly.hpp"
#include "ring/workloads/extended.hpp"
#include "ring/workloads/pagerank.hpp"

namespace cingulum {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "files of numbers are copied as they are");

// A file of nothing but numbers of type T.
template <class T>
Result<std::vector<T>> read_numbers_of(const std::string& path) {
  CGL_TRY_ASSIGN(const std::vector<std::byte> bytes, read_file(path));
  if (bytes.empty() || bytes.size() % sizeof(T) != 0) {
    return fail(ErrorKind::corrupt, "reading {}: {} bytes are not a whole number of {} bytes each", path, bytes.size(),
                sizeof(T));
  }
  std::vector<T> numbers(bytes.size() / sizeof(T));
  std::memcpy(numbers.data(), bytes.data(), bytes.size());
  return numbers;
}

Json json_of(const ring::LatencyResult& latency) {
  return {{"samples", latency.samples}, {"p50_us", latency.p50_us},   {"p95_us", latency.p95_us},
          {"p99_us", latency.p99_us},   {"p999_us", latency.p999_us}, {"min_us", latency.min_us},
          {"max_us", latency.max_us}};
}

Status run_extended(const ParsedArguments& arguments, VerbContext& context) {
  ring::ExtendedOptions options;
  if (arguments.flag("quick")) {
    options.latency_samples = 200;
    options.message_counts = {100, 1000};
    options.number_counts = {10, 1000};
    options.actor_counts = {1, 2};
    options.messages_per_actor = 200;
  }
  CGL_TRY_ASSIGN(const RingProgram program,
                 start_ring_program("run extended", arguments, context, {.actors = 8, .ring_capacity = 65536}));
  CGL_TRY_ASSIGN(const ring::ExtendedResult result, ring::run_extended(*program.place, options));
  if (context.common().json) {
    Json streaming = Json::array();
    for (const auto& one : result.streaming) {
      streaming.push_back({{"messages", one.messages},
                           {"numbers", one.numbers},
                           {"seconds", one.seconds},
                           {"messages_per_s", one.messages_per_s},
                           {"direct_per_s", one.direct_per_s}});
    }
    Json concurrency = Json::array();
    for (const auto& one : result.concurrency) {
      concurrency.push_back({{"actors", one.actors},
                             {"messages", one.messages},
                             {"seconds", one.seconds},
                             {"messages_per_s", one.messages_per_s}});
    }
    context.print(json_text({{"workload", "extended"},
                             {"place", program.place->name()},
                             {"latency", json_of(result.latency)},
                             {"streaming", std::move(streaming)},
                             {"concurrency", std::move(concurrency)}}));
    return {};
  }
  const ring::LatencyResult& latency = result.latency;
  context.print_format("round trip, one in flight: p50 {:.2f} us, p95 {:.2f}, p99 {:.2f}, min {:.2f} ({} samples)\n\n",
                       latency.p50_us, latency.p95_us, latency.p99_us, latency.min_us, latency.samples);
  Table streaming({{"stream of", Align::right},
                   {"numbers each", Align::right},
                   {"messages/s", Align::right},
                   {"sums without messages/s", Align::right}});
  for (const auto& one : result.streaming) {
    streaming.add_row({format_count(one.messages), format_count(one.numbers), fmt::format("{:.0f}", one.messages_per_s),
                       fmt::format("{:.0f}", one.direct_per_s)});
  }
  Table concurrency({{"actors", Align::right}, {"messages", Align::right}, {"messages/s", Align::right}});
  for (const auto& one : result.concurrency) {
    concurrency.add_row(
        {std::to_string(one.actors), format_count(one.messages), fmt::format("{:.0f}", one.messages_per_s)});
  }
  context.print(streaming.text() + "\n" + concurrency.text());
  return {};
}

Result<std::vector<ring::Edge>> edges_of(const ParsedArguments& arguments, std::uint32_t nodes,
                                         const VerbContext& context) {
  if (arguments.given("edges")) return read_numbers_of<ring::Edge>(arguments.text("edges"));
  const double wanted = static_cast<double>(nodes) * arguments.real("edges-per-node");
  if (wanted >= 4e9) return fail(ErrorKind::invalid_argument, "{:.0f} edges: at most 4000000000", wanted);
  return ring::random_edges(nodes, static_cast<std::uint64_t>(wanted), context.common().seed);
}

Status run_pagerank(const ParsedArguments& arguments, VerbContext& context) {
  auto nodes = static_cast<std::uint32_t>(arguments.integer("nodes"));
  if (arguments.flag("quick") && !arguments.given("nodes")) nodes = 1000;
  if (arguments.given("ranks")) CGL_TRY(check_output(arguments.text("ranks"), context.write_options()));
  CGL_TRY_ASSIGN(const std::vector<ring::Edge> edges, edges_of(arguments, nodes, context));
  ring::PageRankOptions options;
  options.workers = static_cast<std::uint32_t>(arguments.integer("actors"));
  CGL_TRY_ASSIGN(const RingProgram program,
                 start_ring_program("run pagerank", arguments, context, {.actors = 128, .ring_capacity = 16}));
  CGL_TRY_ASSIGN(const ring::PageRankResult result, ring::run_pagerank(*program.place, nodes, edges, options));
  const ring::PageRankRun& steps = result.fastest;
  if (arguments.given("ranks")) {
    const std::string ranks = arguments.text("ranks");
    CGL_TRY(write_file_atomically(ranks, std::as_bytes(std::span(result.ranks)),
                                  without_sidecar(ranks, context.write_options())));
  }
  const double visits_per_s = static_cast<double>(edges.size()) * steps.steps / steps.iterate_s;
  if (context.common().json) {
    context.print(json_text({{"workload", "pagerank"},
                             {"place", program.place->name()},
                             {"nodes", nodes},
                             {"edges", edges.size()},
                             {"workers", result.workers},
                             {"iterations", steps.steps},
                             {"converged", steps.converged},
                             {"difference", steps.difference},
                             {"build_s", result.build_s},
                             {"keep_s", result.keep_s},
                             {"iterate_s", steps.iterate_s},
                             {"sum_s", steps.sum_s},
                             {"meet_s", steps.meet_s},
                             {"edge_visits_per_s", visits_per_s}}));
    return {};
  }
  context.print_format(
      "{} nodes, {} edges, {} workers on {}: {} iterations{}, last change {:.3g}\n"
      "build {:.1f} ms, keep {:.1f} ms, iterate {:.2f} ms ({:.1f} M edge visits/s; of it sums {:.2f} ms, meetings "
      "{:.2f})\n",
      format_count(nodes), format_count(edges.size()), result.workers, program.place->name(), steps.steps,
      steps.converged ? "" : " without convergence", steps.difference, 1e3 * result.build_s, 1e3 * result.keep_s,
      1e3 * steps.iterate_s, visits_per_s / 1e6, 1e3 * steps.sum_s, 1e3 * steps.meet_s);
  return {};
}

Status run_anomaly(const ParsedArguments& arguments, VerbContext& context) {
  auto points = static_cast<std::uint32_t>(arguments.integer("points"));
  if (arguments.flag("quick") && !arguments.given("points")) points = 20000;
  std::vector<float> signal;
  if (arguments.given("signal")) {
    CGL_TRY_ASSIGN(signal, read_numbers_of<float>(arguments.text("signal")));
  } else {
    CGL_TRY_ASSIGN(signal, ring::example_signal(points, context.common().seed));
  }
  ring::AnomalyOptions options;
  options.batch = static_cast<std::uint32_t>(arguments.integer("batch"));
  options.window = static_cast<std::uint32_t>(arguments.integer("window"));
  CGL_TRY_ASSIGN(const RingProgram program, start_ring_program("run anomaly", arguments, context, {.actors = 1}));
  CGL_TRY_ASSIGN(const ring::AnomalyResult result, ring::run_anomaly(*program.place, signal, options));
  if (context.common().json) {
    context.print(json_text({{"workload", "anomaly"},
                             {"place", program.place->name()},
                             {"points", signal.size()},
                             {"batch", options.batch},
                             {"window", options.window},
                             {"batches", result.batches},
                             {"anomalies", result.anomalies},
                             {"first_indices", result.first_indices},
                             {"mean_score", result.mean_score},
                             {"max_score", result.max_score},
                             {"seconds", result.seconds},
                             {"points_per_s", result.points_per_s},
                             {"batch_latency", json_of(result.batch_latency)}}));
    return {};
  }
  context.print_format(
      "{} points in {} batches of {} on {}: {} anomalies, mean score {:.3f}, largest {:.2f}\n"
      "{:.2f} M points/s; a batch p50 {:.1f} us, p99 {:.1f} us\n",
      format_count(signal.size()), format_count(result.batches), options.batch, program.place->name(),
      format_count(result.anomalies), result.mean_score, result.max_score, result.points_per_s / 1e6,
      result.batch_latency.p50_us, result.batch_latency.p99_us);
  return {};
}

}  // namespace

Status run_ring_workload(const ParsedArguments& arguments, VerbContext& context) {
  const std::string& workload = arguments.text("workload");
  if (workload == "extended") return run_extended(arguments, context);
  if (workload == "pagerank") return run_pagerank(arguments, context);
  return run_anomaly(arguments, context);
}

}  // namespace cingulum
