#include "ring/telemetry/telemetry_export.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>

namespace cingulum::ring {
namespace {

TelemetrySnapshot example() {
  TelemetrySnapshot snapshot;
  snapshot.process = 123;
  snapshot.program = "test";
  snapshot.unix_time_ns = 1800000000000000000ULL;
  snapshot.runtime.uptime_s = 2.5;
  snapshot.runtime.received = 7;
  snapshot.runtime.lost = 3;
  ActorTelemetry actor;
  actor.name = "strange \"name\" \\ with\nlines";
  actor.number = 9;
  actor.backend = "cuda:0";
  actor.state = ActorState::deactivated;
  actor.received = ~std::uint64_t{0};
  actor.loss.expired = 2;
  actor.loss.late_replies = 1;
  actor.inbox_depth_of_band[3] = 11;
  actor.last_failure = "code 4";
  actor.blocked = true;
  actor.busy_share = 0.25;
  actor.latency = {10, 100, 200, 150, 900, 950, 1000};
  snapshot.runtime.actors = {actor, {}};
  GpuReading gpu;
  gpu.index = 1;
  gpu.name = "H200";
  gpu.uuid = "GPU-1";
  gpu.memory_used_bytes = 5;
  gpu.utilisation = 0.5;
  snapshot.gpus = {gpu};
  return snapshot;
}

TEST(telemetry_export, json_reads_back_as_it_was) {
  const std::string text = telemetry_json(example()).dump();
  const auto back = parse_telemetry_json(text);
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(telemetry_json(*back).dump(), text);
  EXPECT_EQ(back->runtime.actors[0].name, example().runtime.actors[0].name);
  EXPECT_EQ(back->runtime.actors[0].state, ActorState::deactivated);
  EXPECT_EQ(back->runtime.actors[0].latency.p999_ns, 950U);
  EXPECT_TRUE(back->runtime.actors[0].blocked);
}

// Every member has a value of its own: one that is left out, or takes the place of another, is found.
TEST(telemetry_export, every_member_is_told_under_its_own_name) {
  TelemetrySnapshot snapshot = example();
  RuntimeTelemetry& runtime = snapshot.runtime;
  runtime.sent = 501;
  runtime.failures = 502;
  ActorTelemetry& actor = runtime.actors[0];
  actor.loss = {601, 602, 603, 604, 605, 606, 607};
  actor.latency = {701, 702, 703, 704, 705, 706, 707};
  for (std::uint64_t band = 0; band < band_count; ++band) actor.inbox_depth_of_band[band] = 801 + band;
  std::uint64_t next = 901;
  for (std::uint64_t* const count :
       {&actor.received, &actor.sent, &actor.emitted, &actor.refused, &actor.inbox_depth, &actor.inbox_peak,
        &actor.inbox_capacity, &actor.outbox_depth, &actor.failures, &actor.restarts, &actor.stalls}) {
    *count = next++;
  }
  actor.uptime_s = 3.25;
  actor.messages_per_s = 4.5;
  const nlohmann::ordered_json json = telemetry_json(snapshot);
  const auto at = [&](const char* pointer) { return json.at(nlohmann::ordered_json::json_pointer(pointer)); };
  EXPECT_EQ(at("/received"), 7);
  EXPECT_EQ(at("/sent"), 501);
  EXPECT_EQ(at("/lost"), 3);
  EXPECT_EQ(at("/failures"), 502);
  next = 901;
  for (const char* const name : {"received", "sent", "emitted", "refused", "inbox_depth", "inbox_peak",
                                 "inbox_capacity", "outbox_depth", "failures", "restarts", "stalls"}) {
    EXPECT_EQ(json["actors"][0].at(name), next++) << name;
  }
  next = 601;
  for (const char* const name :
       {"rejected", "dropped_new", "dropped_oldest", "expired", "dead_letters", "discarded", "late_replies"}) {
    EXPECT_EQ(json["actors"][0]["loss"].at(name), next++) << name;
  }
  next = 701;
  for (const char* const name : {"count", "min_ns", "mean_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"}) {
    EXPECT_EQ(json["actors"][0]["latency"].at(name), next++) << name;
  }
  next = 801;
  for (const char* const name : {"system", "high", "normal", "low"}) {
    EXPECT_EQ(json["actors"][0]["inbox_depth_of_band"].at(name), next++) << name;
  }
  EXPECT_EQ(json["actors"][0]["uptime_s"], 3.25);
  EXPECT_EQ(json["actors"][0]["messages_per_s"], 4.5);
  const auto back = parse_telemetry_json(json.dump());
  ASSERT_TRUE(back.has_value()) << back.error().message();
  EXPECT_EQ(telemetry_json(*back).dump(), json.dump());
  // And in the text for Prometheus each loss and each band under its own.
  const std::string text = prometheus_text(snapshot);
  for (const char* const sample :
       {"reason=\"rejected\"} 601", "reason=\"dropped_new\"} 602", "reason=\"dropped_oldest\"} 603",
        "reason=\"expired\"} 604", "reason=\"dead_letters\"} 605", "reason=\"discarded\"} 606",
        "reason=\"late_replies\"} 607", "band=\"system\"} 801", "band=\"high\"} 802", "band=\"normal\"} 803",
        "band=\"low\"} 804"}) {
    EXPECT_NE(text.find(sample), std::string::npos) << sample << "\n" << text;
  }
}

TEST(telemetry_export, every_member_of_the_wrong_kind_is_named) {
  const auto whole = telemetry_json(example());
  const auto error_of = [&](const nlohmann::json::json_pointer& where, nlohmann::ordered_json value) {
    nlohmann::ordered_json damaged = whole;
    damaged[nlohmann::ordered_json::json_pointer(where.to_string())] = std::move(value);
    const auto read = parse_telemetry_json(damaged.dump());
    return read ? std::string("accepted") : read.error().message();
  };
  using Pointer = nlohmann::json::json_pointer;
  EXPECT_EQ(error_of(Pointer("/actors/1/received"), -1), "telemetry: actors[1].received is not a count");
  EXPECT_EQ(error_of(Pointer("/actors/0/number"), 65536), "telemetry: actors[0].number is not a count");
  EXPECT_EQ(error_of(Pointer("/actors/0/loss/expired"), "x"), "telemetry: actors[0].loss.expired is not a count");
  EXPECT_EQ(error_of(Pointer("/actors/0/state"), "asleep"), "telemetry: actors[0].state is not a state");
  EXPECT_EQ(error_of(Pointer("/gpus/0/name"), 5), "telemetry: gpus[0].name is not a text");
  EXPECT_EQ(error_of(Pointer("/actors"), 5), "telemetry: actors is not a list");
  EXPECT_EQ(error_of(Pointer("/actors/0"), 5), "telemetry: actors[0]. is not an object");
  EXPECT_FALSE(parse_telemetry_json("[]").has_value());
  EXPECT_FALSE(parse_telemetry_json("{").has_value());
  EXPECT_FALSE(parse_telemetry_json(std::string(100000, '[')).has_value());
}

// The grammar of the text exposition format: families are declared before their samples, once; labels are quoted.
TEST(telemetry_export, prometheus_text_keeps_the_format) {
  const std::string text = prometheus_text(example());
  ASSERT_EQ(text.back(), '\n');
  const std::regex sample(R"re(([a-z_]+)(\{[a-z]+="(\\.|[^"\\])*"(,[a-z]+="(\\.|[^"\\])*")*\})? [0-9.e+-]+)re");
  std::set<std::string> declared;
  std::set<std::string> seen;
  std::string family;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("# HELP ")) continue;
    if (line.starts_with("# TYPE ")) {
      family = line.substr(7, line.find(' ', 7) - 7);
      EXPECT_TRUE(declared.insert(family).second) << family;
      EXPECT_TRUE((std::set<std::string>{"counter", "gauge", "summary"}.contains(line.substr(8 + family.size()))))
          << line;
      continue;
    }
    std::smatch match;
    ASSERT_TRUE(std::regex_match(line, match, sample)) << line;
    EXPECT_TRUE(match[1].str().starts_with(family)) << line;
    EXPECT_TRUE(seen.insert(match[1].str() + match[2].str()).second) << line;
  }
  EXPECT_NE(text.find("cingulum_ring_lost_total{actor=\"strange \\\"name\\\" \\\\ with\\nlines\",backend=\"cuda:0\","
                      "reason=\"expired\"} 2\n"),
            std::string::npos);
  EXPECT_NE(text.find("quantile=\"0.99\"} 9e-07\n"), std::string::npos) << text;
  EXPECT_NE(text.find("state=\"deactivated\"} 1\n"), std::string::npos);
  EXPECT_NE(text.find("cingulum_gpu_memory_used_bytes{gpu=\"1\",name=\"H200\",uuid=\"GPU-1\"} 5\n"), std::string::npos);
}

TEST(telemetry_export, without_nvml_there_is_one_record_named_not_available) {
  const GpuMonitor monitor(std::filesystem::path("/no/such/library.so"));
  EXPECT_FALSE(monitor.available());
  const auto readings = monitor.read();
  ASSERT_EQ(readings.size(), 1U);
  EXPECT_EQ(readings[0].name, "N/A");
  EXPECT_EQ(readings[0].memory_total_bytes, 0U);
  EXPECT_FALSE(readings[0].note.empty());
  TelemetrySnapshot snapshot;
  snapshot.gpus = readings;
  EXPECT_EQ(prometheus_text(snapshot).find("cingulum_gpu"), std::string::npos);
}

}  // namespace
}  // namespace cingulum::ring
