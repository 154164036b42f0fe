// An actor that stays on a GPU: compiled by nvcc, launched once, then spoken to in microseconds. Nothing is launched,
// allocated or copied for a message.
#include <chrono>
#include <cstdio>

#include "device/registry.hpp"
#include "ring/cuda/cuda_backend.hpp"
#include "ring/cuda/resident_kernel.cuh"
#include "ring/resident/resident_grid.hpp"

using namespace cingulum;
using namespace cingulum::ring;

struct Number {
  static constexpr const char* message_name = "Number";
  double value = 0;
};

// The same body could be given to Runtime::launch and would run as a CPU thread. Its members come with it.
struct Line {
  double slope = 1;
  double offset = 0;

  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const double x = payload<Number>(message).value;
      context.send(make_reply(message, Number{slope * x + offset}));
    }
    return 0;
  }
};

Status run() {
  CGL_TRY_ASSIGN(const DeviceRegistry registry, DeviceRegistry::probe());
  CGL_TRY_ASSIGN(Device* const device, registry.select_one("cuda"));
  // The bodies of one kernel and the names by which they are launched.
  CGL_TRY_ASSIGN(auto backend, make_cuda_backend(*device, make_cuda_program<Line>("my actors", {"line"})));
  CGL_TRY_ASSIGN(const auto runtime, Runtime::create());
  CGL_TRY_ASSIGN(const auto grid, ResidentGrid::open(std::move(backend), {.seats = 2, .lanes = 32}));
  CGL_TRY_ASSIGN(const ActorHandle line, grid->launch(*runtime, "my line", "line", Line{2, 1}));
  CGL_TRY(line->activate());
  for (const double x : {5.0, 10.0, 20.5}) {
    CGL_TRY_ASSIGN(const Message answer, runtime->request(*line, make_message(Number{x}), std::chrono::seconds(5)));
    std::printf("%g\n", payload<Number>(answer).value);
  }
  runtime->shutdown();
  return grid->close();
}

int main() {
  const Status status = run();
  if (!status) std::fprintf(stderr, "gpu_actor: %s\n", status.error().message().c_str());
  return status ? 0 : 1;
}
