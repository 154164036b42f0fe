// An actor from text: CUDA C++ that is compiled when the program runs, by a program that nvcc never saw.
#include <chrono>
#include <cstdio>

#include "device/registry.hpp"
#include "ring/cuda/cuda_backend.hpp"
#include "ring/cuda/user_program.hpp"
#include "ring/resident/resident_grid.hpp"

using namespace cingulum;
using namespace cingulum::ring;

// The headers of the rings stand before it; it includes nothing.
constexpr const char* text = R"(
struct Number {
  static constexpr const char* message_name = "Number";
  double value = 0;
};
struct Power {
  std::uint32_t exponent;
  template <class Context>
  __device__ int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      double power = 1;
      for (std::uint32_t i = 0; i < exponent; ++i) power *= payload<Number>(message).value;
      context.send(make_reply(message, Number{power}));
    }
    return 0;
  }
};
)";

// The same structs as this program sees them: messages are told apart by their names.
struct Number {
  static constexpr const char* message_name = "Number";
  double value = 0;
};
struct PowerMembers {
  std::uint32_t exponent;
};

Status run() {
  CGL_TRY_ASSIGN(const DeviceRegistry registry, DeviceRegistry::probe());
  CGL_TRY_ASSIGN(Device* const device, registry.select_one("cuda"));
  // Before a grid stays on the device. Compiled code is kept: the next run loads it.
  CGL_TRY_ASSIGN(CudaProgram program, compile_cuda_program(*device, "powers", text, {{"power", "Power"}}));
  CGL_TRY_ASSIGN(auto backend, make_cuda_backend(*device, std::move(program)));
  CGL_TRY_ASSIGN(const auto runtime, Runtime::create());
  CGL_TRY_ASSIGN(const auto grid, ResidentGrid::open(std::move(backend), {.seats = 1, .lanes = 32}));
  CGL_TRY_ASSIGN(const ActorHandle cube, grid->launch(*runtime, "cube", "power", PowerMembers{3}));
  CGL_TRY(cube->activate());
  CGL_TRY_ASSIGN(const Message answer, runtime->request(*cube, make_message(Number{7}), std::chrono::seconds(5)));
  std::printf("%g\n", payload<Number>(answer).value);
  runtime->shutdown();
  return grid->close();
}

int main() {
  const Status status = run();
  if (!status) std::fprintf(stderr, "gpu_text: %s\n", status.error().message().c_str());
  return status ? 0 : 1;
}
