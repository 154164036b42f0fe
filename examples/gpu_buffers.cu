// An actor on a GPU that works on a buffer with all of its lanes: messages are 64 bytes, so what is larger lies in
// memory that host and device both see, and its handle travels.
#include <chrono>
#include <cstdio>

#include "device/registry.hpp"
#include "ring/cuda/cuda_backend.hpp"
#include "ring/cuda/resident_kernel.cuh"
#include "ring/resident/resident_grid.hpp"

using namespace cingulum;
using namespace cingulum::ring;

struct Values {
  static constexpr const char* message_name = "Values";
  BufferHandle floats;  // the first member of a payload that hands a buffer over
};

struct SquareAll {
  CGL_HD_GENERIC template <class Context>
  CGL_HD int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) {
      const BufferHandle handle = payload<Values>(message).floats;
      auto* const values = static_cast<float*>(context.buffer(handle));
      if (values == nullptr) return 1;  // released meanwhile: a failure, not zeros
      for (std::uint32_t i = context.lane(); i < handle.bytes / sizeof(float); i += context.lanes()) {
        values[i] *= values[i];
      }
      context.sync();         // all lanes have written
      context.send(message);  // the mark for handles, which it still carries, hands the buffer back
    }
    return 0;
  }
};

Status run() {
  CGL_TRY_ASSIGN(const DeviceRegistry registry, DeviceRegistry::probe());
  CGL_TRY_ASSIGN(Device* const device, registry.select_one("cuda"));
  CGL_TRY_ASSIGN(auto backend, make_cuda_backend(*device, make_cuda_program<SquareAll>("my actors", {"square"})));
  CGL_TRY_ASSIGN(const auto runtime, Runtime::create());
  CGL_TRY_ASSIGN(const auto grid, ResidentGrid::open(std::move(backend), {.seats = 1, .lanes = 128}));
  CGL_TRY_ASSIGN(const ActorHandle square, grid->launch(*runtime, "square", "square", SquareAll{}));
  CGL_TRY(square->activate());
  // Taken while the kernel stays: from memory that the grid allocated when it was opened.
  constexpr std::uint32_t count = 1000;
  CGL_TRY_ASSIGN(const MappedMemory memory, grid->scratch(count * sizeof(float)));
  auto* const values = reinterpret_cast<float*>(memory.host);
  for (std::uint32_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  CGL_TRY_ASSIGN(const BufferHandle handle, grid->buffers().add_borrowed(memory.device, count * sizeof(float), 0, {}));
  CGL_TRY(runtime->request(*square, make_message(Values{handle}), std::chrono::seconds(5)).map([](const Message&) {}));
  std::printf("%g %g %g\n", values[2], values[30], values[999]);
  runtime->shutdown();
  return grid->close();
}

int main() {
  const Status status = run();
  if (!status) std::fprintf(stderr, "gpu_buffers: %s\n", status.error().message().c_str());
  return status ? 0 : 1;
}
