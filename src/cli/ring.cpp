// `cingulum ring`: the actors' runtime seen from the command line. `top` shows what runs, `bench` measures the runtime
// beside the machine's own limit, `run` runs a workload.
#include "base/option_name.hpp"
#include "cli/ring_actions.hpp"
#include "cli/verb.hpp"

namespace cingulum {

Verb ring_verb();

namespace {

// The CUDA device that was asked for, or none: actors on the CPU.
Result<Device*> choose_device(const std::string& wanted, VerbContext& context, OpenedDevice& kept) {
  if (wanted == "cpu" || wanted == "numba") return nullptr;
  CGL_TRY_ASSIGN(kept, open_one_device(context.settings(), wanted));
  Device* const device = kept.device;
  if (device->description().backend == Backend::cuda) return device;
  // By `auto` a GPU that cannot hold actors is passed over.
  if (wanted == "auto" || device->description().backend == Backend::cpu) return nullptr;
  return fail(ErrorKind::unavailable, "actors run on cpu and on CUDA devices, not on {}", device->id());
}

}  // namespace

Result<RingProgram> start_ring_program(const std::string& what, const ParsedArguments& arguments, VerbContext& context,
                                       const ring::DevicePlaceOptions& device_options, bool is_first) {
  CGL_TRY_ASSIGN(const std::string wanted, context.only_device("cingulum ring " + what));
  RingProgram program;
  CGL_TRY_ASSIGN(Device* const device, choose_device(wanted, context, program.opened));
  if (device != nullptr) {
    CGL_TRY_ASSIGN(program.place, ring::make_cuda_place(*device, device_options));
  } else {
    // A bench shows the shortest way; elsewhere whoever waits gives the processor back.
    const auto mode = what == "bench" ? ring::WaitMode::spin : ring::WaitMode::spin_then_park;
    CGL_TRY_ASSIGN(program.place,
                   ring::make_cpu_place(static_cast<std::uint32_t>(context.common().threads), {mode, 2000}));
  }
  if (arguments.flag("no-telemetry")) return program;
  ring::PublisherOptions options;
  options.program = "cingulum ring " + what;
  CGL_TRY_ASSIGN(options.nvml_library, context.settings().library(Setting::nvml_library));
  ring::Runtime& runtime = program.place->runtime();
  const auto publish = [&]() -> Status {
    if (arguments.given("telemetry")) {
      options.path = arguments.text("telemetry");
    } else {
      CGL_TRY_ASSIGN(options.path, ring::process_page_path(context.settings().runtime_dir()));
    }
    CGL_TRY_ASSIGN(program.publisher,
                   ring::TelemetryPublisher::start([&runtime] { return runtime.telemetry(); }, std::move(options)));
    return {};
  };
  if (const Status published = publish(); !published) {
    // Nobody asked for the page: to be unseen is no reason to stop.
    if (arguments.given("telemetry")) return tl::make_unexpected(published.error());
    if (is_first) {
      context.log().print(LogLevel::warning, "`cingulum ring top` will not see this run: {}",
                          with_option_names(published.error()));
    }
  }
  return program;
}

namespace {

Status run_ring(const ParsedArguments& arguments, VerbContext& context) {
  const std::string& action = arguments.text("action");
  if (action == "run" && !arguments.given("workload")) {
    return fail(ErrorKind::invalid_argument, "cingulum ring run: name a workload: extended, pagerank or anomaly");
  }
  if (action != "run" && arguments.given("workload")) {
    return fail(ErrorKind::invalid_argument, "cingulum ring {} takes no workload", action);
  }
  if (action == "top") return run_ring_top(arguments, context);
  if (action == "bench") return run_ring_bench(arguments, context);
  return run_ring_workload(arguments, context);
}

}  // namespace

Verb ring_verb() {
  return {
      .name = "ring",
      .summary = "watch, measure and try the runtime of actors",
      .description =
          "Actors are pieces of code that stay where they are, on a CPU thread or on a GPU, and answer messages.\n\n"
          "`top` shows the actors of running processes of this user: state, messages, queue, share of the time in "
          "which "
          "they work, and how long messages waited (median, 99 %, 99.9 % and longest). A process shows itself on a "
          "page "
          "in $XDG_RUNTIME_DIR/cingulum; --telemetry names another. On a terminal the table is drawn anew at every "
          "--interval until Ctrl-C.\n\n"
          "`bench` measures round trips, streams, many actors and stopping through the whole runtime, beside what the "
          "machine does without it in the same run.\n\n"
          "`run` runs a workload and checks its answers: `extended` (latency, streaming, concurrency), `pagerank` (the "
          "graph is kept by the actors) and `anomaly` (a signal in small batches, one in flight).",
      .arguments =
          {
              {.name = "action",
               .type = ArgumentType::choice,
               .help = "what to do",
               .metavar = "ACTION",
               .choices = {"top", "bench", "run"},
               .positional = true,
               .required = true},
              {.name = "workload",
               .type = ArgumentType::choice,
               .help = "of run",
               .metavar = "WORKLOAD",
               .choices = {"extended", "pagerank", "anomaly"},
               .positional = true},
              {.name = "once", .type = ArgumentType::flag, .help = "print one table and end", .actions = {"top"}},
              {.name = "prometheus",
               .type = ArgumentType::flag,
               .help = "print once, as text for Prometheus",
               .actions = {"top"}},
              {.name = "interval",
               .type = ArgumentType::real,
               .help = "time between tables",
               .metavar = "SECONDS",
               .unit = "s",
               .range = {.minimum = 0.05, .maximum = 3600.0},
               .default_text = "1",
               .actions = {"top"}},
              {.name = "telemetry",
               .type = ArgumentType::text,
               .help = "the page to read (top), or to show oneself on (bench, run)",
               .metavar = "FILE"},
              {.name = "no-telemetry", .type = ArgumentType::flag, .help = "show no page", .actions = {"bench", "run"}},
              {.name = "quick",
               .type = ArgumentType::flag,
               .help = "small sizes, to see that it works",
               .actions = {"bench", "run"}},
              {.name = "nodes",
               .type = ArgumentType::integer,
               .help = "of pagerank: nodes of the graph",
               .metavar = "N",
               .range = {.minimum = 2.0, .maximum = 4e9},
               .default_text = "100000",
               .actions = {"run"}},
              {.name = "edges-per-node",
               .type = ArgumentType::real,
               .help = "of pagerank: edges of a random graph for each node",
               .metavar = "N",
               .range = {.minimum = 0.0, .maximum = 1e6},
               .default_text = "5",
               .actions = {"run"}},
              {.name = "edges",
               .type = ArgumentType::file_in,
               .help = "of pagerank: a graph instead of a random one: pairs of little-endian uint32, source and target",
               .metavar = "FILE",
               .actions = {"run"}},
              {.name = "actors",
               .type = ArgumentType::integer,
               .help = "of pagerank: actors that share the graph, on a GPU seats of one; 0: as many as are useful",
               .metavar = "N",
               .range = {.minimum = 0.0, .maximum = 1024.0},
               .default_text = "0",
               .actions = {"run"}},
              {.name = "ranks",
               .type = ArgumentType::file_out,
               .help = "of pagerank: where to write the ranks, as little-endian float64",
               .metavar = "FILE",
               .actions = {"run"}},
              {.name = "points",
               .type = ArgumentType::integer,
               .help = "of anomaly: length of the signal",
               .metavar = "N",
               .range = {.minimum = 1.0, .maximum = 1e9},
               .default_text = "1000000",
               .actions = {"run"}},
              {.name = "signal",
               .type = ArgumentType::file_in,
               .help = "of anomaly: a signal instead of a generated one: little-endian float32",
               .metavar = "FILE",
               .actions = {"run"}},
              {.name = "batch",
               .type = ArgumentType::integer,
               .help = "of anomaly: points in a message",
               .metavar = "N",
               .range = {.minimum = 1.0, .maximum = 1e7},
               .default_text = "1000",
               .actions = {"run"}},
              {.name = "window",
               .type = ArgumentType::integer,
               .help = "of anomaly: points that the actor keeps",
               .metavar = "N",
               .range = {.minimum = 1.0, .maximum = 1e8},
               .default_text = "10000",
               .actions = {"run"}},
          },
      .common = {CommonOption::device, CommonOption::threads, CommonOption::force, CommonOption::json,
                 CommonOption::seed},
      .examples = {{"cingulum ring top", "the actors of this user's processes, live"},
                   {"cingulum ring top --once --json", "the same once, for programs"},
                   {"cingulum ring bench --json", "the runtime beside the machine's limit"},
                   {"cingulum ring run pagerank --nodes 2000000 --edges-per-node 5",
                    "ranks of a graph of 10 million edges"},
                   {"cingulum ring run anomaly --points 100000 --batch 100", "a signal in batches of 100"}},
      .references =
          {"L. Page et al., The PageRank Citation Ranking: Bringing Order to the Web, Stanford InfoLab, 1999"},
      .run = run_ring,
  };
}

}  // namespace cingulum
