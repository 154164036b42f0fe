#include "ring/resident_cuda_programs.hpp"

#include "ring/ability_bodies.hpp"
#include "ring/cuda/resident_kernel.cuh"
#include "ring/resident_bodies.hpp"

namespace cingulum::ring::testing {

// Ends the context at its first message.
struct Trap {
  template <class Context>
  __device__ int operator()(Context& context) const {
    Message message;
    while (context.receive(message)) __trap();
    return 0;
  }
};

CudaProgram cuda_test_program() {
  return make_cuda_program<Echo, BatchEcho, Add, Bounce, Sum, FailEvery, Busy, LookUp, Three, Flood, Swallow, Parts,
                           Repeat, PartsThenFail, Beating, TypedEcho>(
      "test actors", {"echo", "batch_echo", "add", "bounce", "sum", "fail_every", "busy", "look_up", "three", "flood",
                      "swallow", "parts", "repeat", "parts_then_fail", "beating", "typed_echo"});
}

CudaProgram cuda_ability_program(std::vector<std::string> names) {
  return make_cuda_program<Peeker, NewestWins, LargeAnswers, BlockDigest, Spread>("abilities", std::move(names));
}

CudaProgram cuda_trapping_program() {
  return make_cuda_program<Echo, Trap, Busy>("trapping actors", {"echo", "trap", "busy"});
}

}  // namespace cingulum::ring::testing
