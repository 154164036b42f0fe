// A GPU in a process of its own: a body that destroys the device's context takes that process with it and not this one,
// which starts another and goes on. The program is its own child, started again with the word "child".
#include <chrono>
#include <cstdio>
#include <filesystem>

#include "device/registry.hpp"
#include "ring/child/child_host.hpp"
#include "ring/child/child_service.hpp"
#include "ring/cuda/cuda_backend.hpp"
#include "ring/cuda/resident_kernel.cuh"
#include "ring/resident/resident_grid.hpp"

using namespace cingulum;
using namespace cingulum::ring;

struct Number {
  static constexpr const char* message_name = "Number";
  double value = 0;
};

struct Inverse {
  template <class Context>
  __device__ int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const double x = payload<Number>(message).value;
      if (x == 0) __trap();  // what an access outside of memory does, too: the context is lost
      context.send(make_reply(message, Number{1 / x}));
    }
    return 0;
  }
};

Result<std::unique_ptr<ChildWork>> open_device() {
  static DeviceRegistry registry = DeviceRegistry::probe().value();  // outlives the grid
  CGL_TRY_ASSIGN(Device* const device, registry.select_one("cuda"));
  CGL_TRY_ASSIGN(auto backend, make_cuda_backend(*device, make_cuda_program<Inverse>("my actors", {"inverse"})));
  CGL_TRY_ASSIGN(auto grid, ResidentGrid::open(std::move(backend), {.seats = 1, .lanes = 32}));
  return child_work_of(std::move(grid));
}

Status run() {
  CGL_TRY_ASSIGN(const auto runtime, Runtime::create());
  const std::string program = std::filesystem::read_symlink("/proc/self/exe").string();
  CGL_TRY_ASSIGN(const auto child, ChildHost::start({.command = {program, "child"}}));
  ActorOptions options;
  options.restart.kind = RestartKind::limited;
  CGL_TRY_ASSIGN(const ActorHandle inverse,
                 child->launch(*runtime, "inverse", "inverse", Inverse{}, RingKind::fast, options));
  CGL_TRY(inverse->activate());
  for (const double x : {4.0, 0.0, 8.0}) {
    // What is sent while the child opens its device anew waits for it.
    const auto answer = runtime->request(*inverse, make_message(Number{x}), std::chrono::seconds(30));
    if (answer) std::printf("1 / %g = %g\n", x, payload<Number>(*answer).value);
    if (!answer) std::printf("1 / %g: no answer\n", x);
  }
  std::printf("children: %d\n", static_cast<int>(child->starts()));
  return {};
}

int main(int count, char** words) {
  if (count == 2 && std::string_view(words[1]) == "child") return serve_parent(open_device);
  const Status status = run();
  if (!status) std::fprintf(stderr, "gpu_child: %s\n", status.error().message().c_str());
  return status ? 0 : 1;
}
