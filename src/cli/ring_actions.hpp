// The actions of `cingulum ring`, each in a file of its own: ring_top.cpp, ring_bench.cpp, ring_run.cpp. ring.cpp
// declares their arguments.
#pragma once

#include <memory>
#include <string>

#include "cli/verb.hpp"
#include "device/registry.hpp"
#include "ring/telemetry/telemetry_publisher.hpp"
#include "ring/workloads/workload_place.hpp"

namespace cingulum {

[[nodiscard]] Status run_ring_top(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_ring_bench(const ParsedArguments& arguments, VerbContext& context);
[[nodiscard]] Status run_ring_workload(const ParsedArguments& arguments, VerbContext& context);

// What bench and run share: where actors are started, and the page on which `cingulum ring top` sees them.
struct RingProgram {
  OpenedDevice opened;  // where the place is on one of them
  std::unique_ptr<ring::WorkloadPlace> place;
  std::unique_ptr<ring::TelemetryPublisher> publisher;  // goes before the place
};
// `is_first`: whether it is said that `top` will not see it; who starts several in turn says so once.
[[nodiscard]] Result<RingProgram> start_ring_program(const std::string& what, const ParsedArguments& arguments,
                                                     VerbContext& context,
                                                     const ring::DevicePlaceOptions& device_options,
                                                     bool is_first = true);

}  // namespace cingulum
