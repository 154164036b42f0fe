#include "ring/telemetry/telemetry_export.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

namespace cingulum::ring {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, band_count> band_names = {"system", "high", "normal", "low"};

struct LossReason {
  std::string_view name;
  std::uint64_t LossCounters::*count;
};
constexpr std::array<LossReason, 7> loss_reasons = {{{"rejected", &LossCounters::rejected},
                                                     {"dropped_new", &LossCounters::dropped_new},
                                                     {"dropped_oldest", &LossCounters::dropped_oldest},
                                                     {"expired", &LossCounters::expired},
                                                     {"dead_letters", &LossCounters::dead_letters},
                                                     {"discarded", &LossCounters::discarded},
                                                     {"late_replies", &LossCounters::late_replies}}};

Json json_of(const LatencySummary& latency) {
  return {{"count", latency.count},   {"min_ns", latency.min_ns}, {"mean_ns", latency.mean_ns},
          {"p50_ns", latency.p50_ns}, {"p99_ns", latency.p99_ns}, {"p999_ns", latency.p999_ns},
          {"max_ns", latency.max_ns}};
}

Json json_of(const ActorTelemetry& actor) {
  Json loss = Json::object();
  for (const LossReason& reason : loss_reasons) loss[std::string(reason.name)] = actor.loss.*reason.count;
  Json bands = Json::object();
  for (std::size_t i = 0; i < band_count; ++i) bands[std::string(band_names[i])] = actor.inbox_depth_of_band[i];
  return {{"name", actor.name},
          {"number", actor.number},
          {"backend", actor.backend},
          {"state", state_name(actor.state)},
          {"received", actor.received},
          {"sent", actor.sent},
          {"emitted", actor.emitted},
          {"refused", actor.refused},
          {"loss", std::move(loss)},
          {"inbox_depth", actor.inbox_depth},
          {"inbox_depth_of_band", std::move(bands)},
          {"inbox_peak", actor.inbox_peak},
          {"inbox_capacity", actor.inbox_capacity},
          {"outbox_depth", actor.outbox_depth},
          {"failures", actor.failures},
          {"restarts", actor.restarts},
          {"last_failure", actor.last_failure},
          {"stalled", actor.stalled},
          {"blocked", actor.blocked},
          {"stalls", actor.stalls},
          {"busy_share", actor.busy_share},
          {"uptime_s", actor.uptime_s},
          {"messages_per_s", actor.messages_per_s},
          {"latency", json_of(actor.latency)}};
}

Json json_of(const GpuReading& gpu) {
  return {{"index", gpu.index},
          {"name", gpu.name},
          {"uuid", gpu.uuid},
          {"memory_total_bytes", gpu.memory_total_bytes},
          {"memory_used_bytes", gpu.memory_used_bytes},
          {"utilisation", gpu.utilisation},
          {"memory_utilisation", gpu.memory_utilisation},
          {"temperature_celsius", gpu.temperature_celsius},
          {"power_watts", gpu.power_watts},
          {"power_limit_watts", gpu.power_limit_watts},
          {"note", gpu.note}};
}

// Members of one object of the text. The first that is of the wrong kind is remembered; later ones are left alone.
class Members {
 public:
  Members(const Json& object, std::string where, Status& status)
      : object_(object), where_(std::move(where)), status_(status) {
    if (status_ && !object_.is_object()) wrong("", "an object");
  }

  void read(const char* name, std::string& value) {
    if (const Json* member = find(name); member != nullptr) {
      member->is_string() ? void(value = member->get<std::string>()) : wrong(name, "a text");
    }
  }
  void read(const char* name, bool& value) {
    if (const Json* member = find(name); member != nullptr) {
      member->is_boolean() ? void(value = member->get<bool>()) : wrong(name, "true or false");
    }
  }
  void read(const char* name, double& value) {
    if (const Json* member = find(name); member != nullptr) {
      member->is_number() ? void(value = member->get<double>()) : wrong(name, "a number");
    }
  }
  template <std::unsigned_integral Count>
  void read(const char* name, Count& value) {
    if (const Json* member = find(name); member != nullptr) {
      if (!member->is_number_unsigned() || member->get<std::uint64_t>() > std::numeric_limits<Count>::max()) {
        return wrong(name, "a count");
      }
      value = member->get<Count>();
    }
  }
  template <std::signed_integral Number>
  void read(const char* name, Number& value) {
    if (const Json* member = find(name); member != nullptr) {
      if (!member->is_number_integer()) return wrong(name, "a whole number");
      value = member->get<Number>();
    }
  }
  [[nodiscard]] const Json* find(const char* name) const {
    if (!status_) return nullptr;
    const auto member = object_.find(name);
    return member == object_.end() ? nullptr : &*member;
  }
  [[nodiscard]] const Json* list(const char* name) {
    const Json* const member = find(name);
    if (member != nullptr && !member->is_array()) {
      wrong(name, "a list");
      return nullptr;
    }
    return member;
  }
  void wrong(std::string_view name, std::string_view expected) {
    if (status_) status_ = fail(ErrorKind::corrupt, "telemetry: {}{} is not {}", where_, name, expected);
  }
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  const Json& object_;
  std::string where_;
  Status& status_;
};

ActorTelemetry actor_of(const Json& json, const std::string& where, Status& status) {
  ActorTelemetry actor;
  Members members(json, where, status);
  members.read("name", actor.name);
  members.read("number", actor.number);
  members.read("backend", actor.backend);
  std::string state(state_name(actor.state));
  members.read("state", state);
  bool known = false;
  for (int i = 0; i <= static_cast<int>(ActorState::failed); ++i) {
    if (state_name(static_cast<ActorState>(i)) != state) continue;
    actor.state = static_cast<ActorState>(i);
    known = true;
  }
  if (!known) members.wrong("state", "a state");
  members.read("received", actor.received);
  members.read("sent", actor.sent);
  members.read("emitted", actor.emitted);
  members.read("refused", actor.refused);
  if (const Json* loss = members.find("loss"); loss != nullptr) {
    Members counters(*loss, where + "loss.", status);
    for (const LossReason& reason : loss_reasons) counters.read(reason.name.data(), actor.loss.*reason.count);
  }
  if (const Json* bands = members.find("inbox_depth_of_band"); bands != nullptr) {
    Members depths(*bands, where + "inbox_depth_of_band.", status);
    for (std::size_t i = 0; i < band_count; ++i) depths.read(band_names[i].data(), actor.inbox_depth_of_band[i]);
  }
  members.read("inbox_depth", actor.inbox_depth);
  members.read("inbox_peak", actor.inbox_peak);
  members.read("inbox_capacity", actor.inbox_capacity);
  members.read("outbox_depth", actor.outbox_depth);
  members.read("failures", actor.failures);
  members.read("restarts", actor.restarts);
  members.read("last_failure", actor.last_failure);
  members.read("stalled", actor.stalled);
  members.read("blocked", actor.blocked);
  members.read("stalls", actor.stalls);
  members.read("busy_share", actor.busy_share);
  members.read("uptime_s", actor.uptime_s);
  members.read("messages_per_s", actor.messages_per_s);
  if (const Json* latency = members.find("latency"); latency != nullptr) {
    Members times(*latency, where + "latency.", status);
    times.read("count", actor.latency.count);
    times.read("min_ns", actor.latency.min_ns);
    times.read("mean_ns", actor.latency.mean_ns);
    times.read("p50_ns", actor.latency.p50_ns);
    times.read("p99_ns", actor.latency.p99_ns);
    times.read("p999_ns", actor.latency.p999_ns);
    times.read("max_ns", actor.latency.max_ns);
  }
  return actor;
}

GpuReading gpu_of(const Json& json, const std::string& where, Status& status) {
  GpuReading gpu;
  Members members(json, where, status);
  members.read("index", gpu.index);
  members.read("name", gpu.name);
  members.read("uuid", gpu.uuid);
  members.read("memory_total_bytes", gpu.memory_total_bytes);
  members.read("memory_used_bytes", gpu.memory_used_bytes);
  members.read("utilisation", gpu.utilisation);
  members.read("memory_utilisation", gpu.memory_utilisation);
  members.read("temperature_celsius", gpu.temperature_celsius);
  members.read("power_watts", gpu.power_watts);
  members.read("power_limit_watts", gpu.power_limit_watts);
  members.read("note", gpu.note);
  return gpu;
}

// One metric family of the Prometheus text after the other.
class PrometheusText {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string_view>>;

  void family(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
  }
  template <class Number>
  void sample(const Labels& labels, Number value, std::string_view suffix = "") {
    text_ += name_;
    text_ += suffix;
    if (!labels.empty()) {
      text_ += '{';
      for (std::size_t i = 0; i < labels.size(); ++i) {
        text_ += fmt::format("{}{}=\"{}\"", i == 0 ? "" : ",", labels[i].first, escaped(labels[i].second));
      }
      text_ += '}';
    }
    text_ += fmt::format(" {}\n", value);
  }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  static std::string escaped(std::string_view value) {
    std::string text;
    for (const char letter : value) {
      if (letter == '\\' || letter == '"') text += '\\';
      if (letter == '\n') {
        text += "\\n";
      } else {
        text += letter;
      }
    }
    return text;
  }

  std::string name_;
  std::string text_;
};

}  // namespace

nlohmann::ordered_json telemetry_json(const TelemetrySnapshot& snapshot) {
  Json actors = Json::array();
  for (const ActorTelemetry& actor : snapshot.runtime.actors) actors.push_back(json_of(actor));
  Json gpus = Json::array();
  for (const GpuReading& gpu : snapshot.gpus) gpus.push_back(json_of(gpu));
  return {{"process", snapshot.process},           {"program", snapshot.program},
          {"unix_time_ns", snapshot.unix_time_ns}, {"uptime_s", snapshot.runtime.uptime_s},
          {"received", snapshot.runtime.received}, {"sent", snapshot.runtime.sent},
          {"lost", snapshot.runtime.lost},         {"failures", snapshot.runtime.failures},
          {"actors", std::move(actors)},           {"gpus", std::move(gpus)}};
}

Result<TelemetrySnapshot> parse_telemetry_json(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return fail(ErrorKind::corrupt, "telemetry: {} bytes that are not JSON", text.size());
  TelemetrySnapshot snapshot;
  Status status;
  Members members(json, "", status);
  members.read("process", snapshot.process);
  members.read("program", snapshot.program);
  members.read("unix_time_ns", snapshot.unix_time_ns);
  members.read("uptime_s", snapshot.runtime.uptime_s);
  members.read("received", snapshot.runtime.received);
  members.read("sent", snapshot.runtime.sent);
  members.read("lost", snapshot.runtime.lost);
  members.read("failures", snapshot.runtime.failures);
  if (const Json* actors = members.list("actors"); actors != nullptr) {
    for (const Json& actor : *actors) {
      const std::string where = fmt::format("actors[{}].", snapshot.runtime.actors.size());
      snapshot.runtime.actors.push_back(actor_of(actor, where, status));
    }
  }
  if (const Json* gpus = members.list("gpus"); gpus != nullptr) {
    for (const Json& gpu : *gpus) {
      const std::string where = fmt::format("gpus[{}].", snapshot.gpus.size());
      snapshot.gpus.push_back(gpu_of(gpu, where, status));
    }
  }
  CGL_TRY(status);
  return snapshot;
}

std::string prometheus_text(const TelemetrySnapshot& snapshot) {
  PrometheusText text;
  using Labels = PrometheusText::Labels;
  const auto& actors = snapshot.runtime.actors;
  const auto per_actor = [&](std::string_view name, std::string_view type, std::string_view help, auto value) {
    text.family(name, type, help);
    for (const ActorTelemetry& actor : actors)
      text.sample({{"actor", actor.name}, {"backend", actor.backend}}, value(actor));
  };
  text.family("cingulum_ring_uptime_seconds", "gauge", "Age of the runtime.");
  text.sample({}, snapshot.runtime.uptime_s);
  per_actor("cingulum_ring_received_total", "counter", "Messages given to the body.",
            [](const ActorTelemetry& actor) { return actor.received; });
  per_actor("cingulum_ring_sent_total", "counter", "Messages answered.",
            [](const ActorTelemetry& actor) { return actor.sent; });
  per_actor("cingulum_ring_emitted_total", "counter", "Messages passed on to other actors.",
            [](const ActorTelemetry& actor) { return actor.emitted; });
  per_actor("cingulum_ring_refused_total", "counter", "Messages of the actor that their receivers did not take.",
            [](const ActorTelemetry& actor) { return actor.refused; });
  text.family("cingulum_ring_lost_total", "counter", "Messages to the actor that did not reach its body.");
  for (const ActorTelemetry& actor : actors) {
    for (const LossReason& reason : loss_reasons) {
      text.sample({{"actor", actor.name}, {"backend", actor.backend}, {"reason", reason.name}},
                  actor.loss.*reason.count);
    }
  }
  text.family("cingulum_ring_inbox_depth", "gauge", "Messages that wait, by band.");
  for (const ActorTelemetry& actor : actors) {
    for (std::size_t i = 0; i < band_count; ++i) {
      text.sample({{"actor", actor.name}, {"backend", actor.backend}, {"band", band_names[i]}},
                  actor.inbox_depth_of_band[i]);
    }
  }
  per_actor("cingulum_ring_inbox_peak", "gauge", "The most messages that waited at a time.",
            [](const ActorTelemetry& actor) { return actor.inbox_peak; });
  per_actor("cingulum_ring_outbox_depth", "gauge", "Answers that nobody has read yet.",
            [](const ActorTelemetry& actor) { return actor.outbox_depth; });
  per_actor("cingulum_ring_busy_share", "gauge", "Share of the time in which the body worked.",
            [](const ActorTelemetry& actor) { return actor.busy_share; });
  per_actor("cingulum_ring_failures_total", "counter", "Failures of the body.",
            [](const ActorTelemetry& actor) { return actor.failures; });
  per_actor("cingulum_ring_restarts_total", "counter", "Starts of the body after a failure.",
            [](const ActorTelemetry& actor) { return actor.restarts; });
  per_actor("cingulum_ring_stalls_total", "counter", "Times that the body did not come back within its limit.",
            [](const ActorTelemetry& actor) { return actor.stalls; });
  text.family("cingulum_ring_state", "gauge", "1 for the state that the actor is in.");
  for (const ActorTelemetry& actor : actors) {
    for (int i = 0; i <= static_cast<int>(ActorState::failed); ++i) {
      const auto state = static_cast<ActorState>(i);
      text.sample({{"actor", actor.name}, {"backend", actor.backend}, {"state", state_name(state)}},
                  actor.state == state ? 1 : 0);
    }
  }
  text.family("cingulum_ring_latency_seconds", "summary",
              "Of sampled messages: from send to the body's receive; on a device from a request to its answer.");
  for (const ActorTelemetry& actor : actors) {
    const Labels labels = {{"actor", actor.name}, {"backend", actor.backend}};
    const LatencySummary& latency = actor.latency;
    for (const auto& [quantile, ns] :
         {std::pair{std::string_view("0.5"), latency.p50_ns}, std::pair{std::string_view("0.99"), latency.p99_ns},
          std::pair{std::string_view("0.999"), latency.p999_ns}, std::pair{std::string_view("1"), latency.max_ns}}) {
      Labels with_quantile = labels;
      with_quantile.emplace_back("quantile", quantile);
      text.sample(with_quantile, static_cast<double>(ns) / 1e9);
    }
    text.sample(labels, static_cast<double>(latency.mean_ns) * static_cast<double>(latency.count) / 1e9, "_sum");
    text.sample(labels, latency.count, "_count");
  }
  const auto per_gpu = [&](std::string_view name, std::string_view help, auto value) {
    text.family(name, "gauge", help);
    for (const GpuReading& gpu : snapshot.gpus) {
      if (gpu.available())
        text.sample({{"gpu", std::to_string(gpu.index)}, {"name", gpu.name}, {"uuid", gpu.uuid}}, value(gpu));
    }
  };
  if (std::any_of(snapshot.gpus.begin(), snapshot.gpus.end(), [](const GpuReading& gpu) { return gpu.available(); })) {
    per_gpu("cingulum_gpu_memory_total_bytes", "Memory of the GPU.",
            [](const GpuReading& gpu) { return gpu.memory_total_bytes; });
    per_gpu("cingulum_gpu_memory_used_bytes", "Memory in use, by all processes.",
            [](const GpuReading& gpu) { return gpu.memory_used_bytes; });
    per_gpu("cingulum_gpu_utilisation", "Share of the time in which a kernel ran; 1 while an actor is resident.",
            [](const GpuReading& gpu) { return gpu.utilisation; });
    per_gpu("cingulum_gpu_temperature_celsius", "Temperature.",
            [](const GpuReading& gpu) { return gpu.temperature_celsius; });
    per_gpu("cingulum_gpu_power_watts", "Power draw.", [](const GpuReading& gpu) { return gpu.power_watts; });
  }
  return text.take();
}

}  // namespace cingulum::ring
