#include "ring/cuda/user_program.hpp"

#include <algorithm>
#include <utility>

#include "device/cuda/cuda_kernel.hpp"

namespace cingulum {
std::string_view embedded_ring_header(std::string_view file_name);
}

namespace cingulum::ring {
namespace {

// What the headers use of the standard library; NVRTC brings none.
constexpr std::string_view standard_library = R"(
namespace std {
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long;
using size_t = decltype(sizeof(0));
template <class T> inline constexpr bool is_trivially_copyable_v = __is_trivially_copyable(T);
template <class T> inline constexpr bool is_default_constructible_v = __is_constructible(T);
template <class T> inline constexpr bool is_empty_v = __is_empty(T);
template <bool yes, class A, class B> struct conditional { using type = A; };
template <class A, class B> struct conditional<false, A, B> { using type = B; };
template <bool yes, class A, class B> using conditional_t = typename conditional<yes, A, B>::type;
template <class A, class B> inline constexpr bool is_same_v = false;
template <class A> inline constexpr bool is_same_v<A, A> = true;
template <class T> inline constexpr bool is_void_v = is_same_v<T, void>;
template <class A, class B> concept same_as = is_same_v<A, B> && is_same_v<B, A>;
template <class A, class B> concept convertible_to = __is_convertible_to(A, B);
}
namespace cingulum::ring { struct HostAtomics; }
)";

constexpr const char* header_order[] = {
    "portable.hpp",       "message.hpp",    "ring_types.hpp",   "buffer_handle.hpp", "actor_context.hpp",
    "actor_counters.hpp", "fast_ring.hpp",  "seat_layout.hpp",  "seat_rings.hpp",    "seat_shared.hpp",
    "seat_core.hpp",      "seat_calls.hpp", "seat_input.hpp",   "seat_output.hpp",   "seat_team.hpp",
    "seat_host.hpp",      "seat_life.hpp",  "seat_context.hpp", "seat_loop.hpp",     "cuda_machine.cuh"};

// Without the lines that speak to other files.
std::string without_includes(std::string_view text) {
  std::string kept;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    if (!line.starts_with("#include") && !line.starts_with("#pragma once")) kept += line;
    kept += '\n';
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return kept;
}

constexpr const char* entry_point = "resident_user_actors";

}  // namespace

std::string user_program_text(const std::string& name, const std::string& text, const std::vector<UserActor>& actors) {
  std::string whole(standard_library);
  for (const char* header : header_order) {
    whole += fmt::format("#line 1 \"{}\"\n", header);
    whole += without_includes(embedded_ring_header(header));
  }
  std::string file;
  for (const char c : name) file += c == '"' || c == '\\' || c == '\n' ? '_' : c;
  whole +=
      fmt::format("namespace cingulum::ring {{\n#line 1 \"{}\"\n{}\n}}\n#line 1 \"the end of {}\"\n", file, text, file);
  std::string bodies;
  std::uint32_t block_bytes = 0;
  for (const UserActor& actor : actors) {
    bodies += (bodies.empty() ? "" : ", ") + actor.body;
    block_bytes = std::max(block_bytes, actor.block_bytes);
  }
  whole += fmt::format(R"(
extern "C" __global__ void __launch_bounds__(256, 1) {}(const cingulum::ring::GridPlan* plan) {{
  using namespace cingulum::ring;
  static_assert(BodyList<{}>::block_bytes == ({} + 127) / 128 * 128,
                "UserActor::block_bytes is not what the bodies ask for");
  extern __shared__ __align__(128) unsigned char shared_bytes[];
  const GridPlan grid = *plan;
  run_seat<CudaMachine, BodyList<{}>>(grid, blockIdx.x, *reinterpret_cast<SeatShared*>(shared_bytes));
}}
)",
                       entry_point, bodies, block_bytes, bodies);
  return whole;
}

Result<CudaProgram> compile_cuda_program(Device& device, std::string name, const std::string& text,
                                         const std::vector<UserActor>& actors) {
  if (actors.empty()) return fail(ErrorKind::invalid_argument, "compiling actors '{}': none is named", name);
  KernelSource source;
  source.name = entry_point;
  source.language = KernelLanguage::cuda_cpp;
  source.text = user_program_text(name, text, actors);
  source.parameters = {{"plan", ParameterKind::buffer_in}};
  CGL_TRY_ASSIGN(std::shared_ptr<Kernel> kernel, add_context(device.compile(source), "compiling actors '{}'", name));
  const auto* const cuda = dynamic_cast<const CudaKernel*>(kernel.get());
  if (cuda == nullptr) {
    return fail(ErrorKind::invalid_argument, "compiling actors '{}': {} is not a CUDA device", name, device.id());
  }
  CudaProgram program;
  program.name = std::move(name);
  for (const UserActor& actor : actors) {
    program.actors.push_back(actor.name);
    program.block_bytes = std::max(program.block_bytes, (actor.block_bytes + 127) / 128 * 128);
  }
  program.kernel = cuda->handle();
  program.compiled_code = std::move(kernel);
  return program;
}

}  // namespace cingulum::ring
