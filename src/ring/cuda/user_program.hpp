// Actors from CUDA C++ text, compiled when the program runs. The text defines bodies as ring/actor/actor_context.hpp
// describes them; the headers of the rings are put before it, so it includes nothing:
//   struct Twice {
//     template <class Context>
//     __device__ int operator()(Context& context) const {
//       Message message;
//       while (context.receive(message)) { message.payload[0] *= 2; context.send(message); }
//       return 0;
//     }
//   };
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "device/device.hpp"
#include "ring/cuda/cuda_program.hpp"

namespace cingulum::ring {

struct UserActor {
  std::string name;               // by which it is launched
  std::string body;               // the C++ type
  std::uint32_t block_bytes = 0;  // as in the type (block_bytes_of), which text cannot tell
};

// Failures carry the compiler's message with the lines of `text`. Compiled code is kept in the kernel cache. To be done
// before a grid runs on the device: loading code would wait for it.
[[nodiscard]] Result<CudaProgram> compile_cuda_program(Device& device, std::string name, const std::string& text,
                                                       const std::vector<UserActor>& actors);

// The whole text that is compiled; for tests.
[[nodiscard]] std::string user_program_text(const std::string& name, const std::string& text,
                                            const std::vector<UserActor>& actors);

}  // namespace cingulum::ring
