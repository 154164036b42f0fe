#include "ring/resident_programs.hpp"

#include "ring/ability_bodies.hpp"
#include "ring/lanes/live_lanes.hpp"
#include "ring/resident/emulated_backend.hpp"
#include "ring/resident_bodies.hpp"
#include "support/each_device.hpp"
#if CINGULUM_HAS_CUDA
#include "ring/cuda/cuda_backend.hpp"
#include "ring/resident_cuda_programs.hpp"
#endif

namespace cingulum::ring::testing {

Result<std::unique_ptr<ResidentBackend>> make_test_backend(std::string_view kind) {
  if (kind.starts_with("emulated")) {
    return std::unique_ptr<ResidentBackend>(
        std::make_unique<EmulatedBackend<Echo, BatchEcho, Add, Bounce, Sum, FailEvery, Busy, LookUp, Three, Flood,
                                         Swallow, Parts, Repeat, PartsThenFail, Beating, TypedEcho>>(
            std::vector<std::string>{"echo", "batch_echo", "add", "bounce", "sum", "fail_every", "busy", "look_up",
                                     "three", "flood", "swallow", "parts", "repeat", "parts_then_fail", "beating",
                                     "typed_echo"},
            kind == "emulated-display"));
  }
#if CINGULUM_HAS_CUDA
  CGL_TRY_ASSIGN(Device* const device, cingulum::testing::registry().select_one("cuda"));
  return make_cuda_backend(*device, cuda_test_program());
#else
  return fail(ErrorKind::unavailable, "CUDA is not compiled in");
#endif
}

Result<std::unique_ptr<ResidentBackend>> make_ability_backend(std::string_view kind) {
  const std::vector<std::string> names = {"peeker", "newest_wins", "large_answers", "block_digest", "spread"};
  if (kind == "emulated") {
    return std::unique_ptr<ResidentBackend>(
        std::make_unique<EmulatedBackend<Peeker, NewestWins, LargeAnswers, BlockDigest, Spread>>(names));
  }
  if (kind == "lanes") {
    return std::unique_ptr<ResidentBackend>(
        std::make_unique<ThreadBackend<LiveLaneMachine, Peeker, NewestWins, LargeAnswers, BlockDigest, Spread>>(names));
  }
#if CINGULUM_HAS_CUDA
  CGL_TRY_ASSIGN(Device* const device, cingulum::testing::registry().select_one("cuda"));
  return make_cuda_backend(*device, cuda_ability_program(names));
#else
  return fail(ErrorKind::unavailable, "CUDA is not compiled in");
#endif
}

Result<std::unique_ptr<ResidentBackend>> make_trapping_backend() {
#if CINGULUM_HAS_CUDA
  CGL_TRY_ASSIGN(Device* const device, cingulum::testing::registry().select_one("cuda"));
  return make_cuda_backend(*device, cuda_trapping_program());
#else
  return fail(ErrorKind::unavailable, "CUDA is not compiled in");
#endif
}

}  // namespace cingulum::ring::testing
