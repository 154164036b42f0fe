// `cingulum ring top`: the telemetry pages of running processes as a table.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/interrupt.hpp"
#include "base/json_text.hpp"
#include "base/quantity.hpp"
#include "base/terminal.hpp"
#include "cli/ring_actions.hpp"
#include "cli/table.hpp"
#include "ring/telemetry/telemetry_export.hpp"
#include "ring/telemetry/telemetry_page.hpp"

namespace cingulum {
namespace {

using ring::ActorTelemetry;
using ring::TelemetrySnapshot;

struct Shown {
  TelemetrySnapshot snapshot;
  bool alive = true;
};

// Received messages of an actor at the time of the table before.
struct Before {
  std::uint64_t received = 0;
  std::uint64_t unix_time_ns = 0;
};
using History = std::map<std::pair<std::int64_t, std::string>, Before>;

// A page that vanished or stays half-written between listing and reading belongs to a process that ends: left out.
Result<std::vector<Shown>> read_pages(const ParsedArguments& arguments, const VerbContext& context) {
  std::vector<Shown> shown;
  if (arguments.given("telemetry")) {
    const std::filesystem::path path = arguments.text("telemetry");
    CGL_TRY_ASSIGN(const std::string text, ring::read_telemetry_page(path));
    CGL_TRY_ASSIGN(TelemetrySnapshot snapshot,
                   add_context(ring::parse_telemetry_json(text), "the telemetry page {}", path.string()));
    bool alive = false;
    for (const auto& page : ring::list_telemetry_pages(path.parent_path())) {
      if (page.process == snapshot.process) alive = page.alive;
    }
    shown.push_back({std::move(snapshot), alive || path.extension() != ".ring"});
    return shown;
  }
  CGL_TRY_ASSIGN(const std::filesystem::path folder, ring::telemetry_folder(context.settings().runtime_dir(), false));
  for (const auto& page : ring::list_telemetry_pages(folder)) {
    const auto text = ring::read_telemetry_page(page.path);
    if (!text) continue;
    auto snapshot = ring::parse_telemetry_json(*text);
    if (snapshot) shown.push_back({std::move(*snapshot), page.alive});
  }
  return shown;
}

std::string duration_text(std::uint64_t ns) {
  const auto value = static_cast<double>(ns);
  if (ns == 0) return "-";
  if (ns < 1000) return fmt::format("{} ns", ns);
  if (ns < 1000000) return fmt::format("{:.1f} us", value / 1e3);
  if (ns < 1000000000) return fmt::format("{:.1f} ms", value / 1e6);
  return fmt::format("{:.1f} s", value / 1e9);
}

std::string rate_text(double per_second) {
  if (per_second < 1000) return fmt::format("{:.0f}", per_second);
  if (per_second < 1e6) return fmt::format("{:.1f} K", per_second / 1e3);
  return fmt::format("{:.2f} M", per_second / 1e6);
}

std::uint64_t lost_of(const ring::LossCounters& loss) {
  return loss.rejected + loss.dropped_new + loss.dropped_oldest + loss.expired + loss.dead_letters + loss.discarded +
         loss.late_replies;
}

double rate_of(const TelemetrySnapshot& snapshot, const ActorTelemetry& actor, History& history) {
  Before& before = history[{snapshot.process, actor.name}];
  double rate = actor.messages_per_s;
  if (before.unix_time_ns != 0 && snapshot.unix_time_ns > before.unix_time_ns && actor.received >= before.received) {
    rate = 1e9 * static_cast<double>(actor.received - before.received) /
           static_cast<double>(snapshot.unix_time_ns - before.unix_time_ns);
  }
  before = {actor.received, snapshot.unix_time_ns};
  return rate;
}

std::string tables(const std::vector<Shown>& all, History& history) {
  if (all.empty()) return "no process of this user shows actors\n";
  std::string text;
  for (const Shown& shown : all) {
    const TelemetrySnapshot& snapshot = shown.snapshot;
    text += fmt::format("{}process {}: {}, {} actors, up {}, {} received, {} lost, {} failures{}\n",
                        text.empty() ? "" : "\n", snapshot.process, snapshot.program, snapshot.runtime.actors.size(),
                        format_duration(std::chrono::duration<double>(snapshot.runtime.uptime_s)),
                        format_count(snapshot.runtime.received), format_count(snapshot.runtime.lost),
                        snapshot.runtime.failures, shown.alive ? "" : " (ended without farewell)");
    for (const ring::GpuReading& gpu : snapshot.gpus) {
      if (!gpu.available()) continue;
      text += fmt::format("gpu {} {}: {} of {}, load {:.0f} %, {:.0f} C, {:.0f} of {:.0f} W\n", gpu.index, gpu.name,
                          format_bytes(gpu.memory_used_bytes), format_bytes(gpu.memory_total_bytes),
                          100 * gpu.utilisation, gpu.temperature_celsius, gpu.power_watts, gpu.power_limit_watts);
    }
    Table table({{"actor"},
                 {"on"},
                 {"state"},
                 {"received", Align::right},
                 {"per s", Align::right},
                 {"sent", Align::right},
                 {"lost", Align::right},
                 {"queue", Align::right},
                 {"peak", Align::right},
                 {"busy", Align::right},
                 {"p50", Align::right},
                 {"p99", Align::right},
                 {"p99.9", Align::right},
                 {"max", Align::right},
                 {"failed", Align::right}});
    for (const ActorTelemetry& actor : snapshot.runtime.actors) {
      const std::string state = fmt::format("{}{}{}", ring::state_name(actor.state), actor.stalled ? ", stalled" : "",
                                            actor.blocked ? ", blocked" : "");
      table.add_row({actor.name, actor.backend, state, format_count(actor.received),
                     rate_text(rate_of(snapshot, actor, history)), format_count(actor.sent + actor.emitted),
                     format_count(lost_of(actor.loss)), format_count(actor.inbox_depth), format_count(actor.inbox_peak),
                     fmt::format("{:.0f} %", 100 * actor.busy_share), duration_text(actor.latency.p50_ns),
                     duration_text(actor.latency.p99_ns), duration_text(actor.latency.p999_ns),
                     duration_text(actor.latency.max_ns), format_count(actor.failures)});
    }
    if (table.rows() > 0) text += table.text(2);
    for (const ActorTelemetry& actor : snapshot.runtime.actors) {
      if (!actor.last_failure.empty()) text += fmt::format("  {}: {}\n", actor.name, actor.last_failure);
    }
  }
  return escape_control_characters(text);
}

std::string prometheus_of(const std::vector<Shown>& all) {
  std::string text;
  for (const Shown& shown : all) text += ring::prometheus_text(shown.snapshot);
  return text;
}

std::string json_of(const std::vector<Shown>& all) {
  nlohmann::ordered_json processes = nlohmann::ordered_json::array();
  for (const Shown& shown : all) {
    nlohmann::ordered_json process = ring::telemetry_json(shown.snapshot);
    process["alive"] = shown.alive;
    processes.push_back(std::move(process));
  }
  return json_text({{"processes", std::move(processes)}});
}

}  // namespace

Status run_ring_top(const ParsedArguments& arguments, VerbContext& context) {
  History history;
  const bool for_programs = context.common().json || arguments.flag("prometheus");
  const bool once = arguments.flag("once") || for_programs;
  const bool draw = !once && is_terminal(STDOUT_FILENO);
  while (true) {
    CGL_TRY_ASSIGN(const std::vector<Shown> all, read_pages(arguments, context));
    if (arguments.flag("prometheus")) {
      // One exposition is one process's: families may not come twice.
      if (all.size() > 1) {
        return fail(ErrorKind::invalid_argument, "{} processes show actors; name one by --telemetry", all.size());
      }
      context.print(prometheus_of(all));
    } else if (context.common().json) {
      context.print(json_of(all));
    } else {
      // Home, then each line cleared to its end, then what is left of the screen: nothing flickers.
      std::string text = tables(all, history);
      if (draw) {
        std::string screen = "\x1b[H";
        for (const char letter : text) screen += letter == '\n' ? std::string("\x1b[K\n") : std::string(1, letter);
        text = screen + "\x1b[J";
      }
      context.print(text);
    }
    if (once) return {};
    const auto until = std::chrono::steady_clock::now() + std::chrono::duration<double>(arguments.real("interval"));
    while (std::chrono::steady_clock::now() < until) {
      if (interrupt_requested()) return {};  // Ctrl-C is how one leaves
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    if (!draw) context.print("\n");
  }
}

}  // namespace cingulum
