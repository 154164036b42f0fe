// The lane cases on AVX2. Compiled with -mavx2 where the compiler has it; called only where the CPU has it.
#include <utility>

#include "numerics/lanes_avx2.hpp"
#include "parity/lane_cases.hpp"

namespace cingulum::parity {

#if defined(__AVX2__)

namespace {

template <std::size_t... index>
LaneCaseRun run_of(int case_index, std::index_sequence<index...>) {
  constexpr LaneCaseRun all[] = {
      &run_lane_case_on_words<std::tuple_element_t<index, LaneCases>, numerics::Avx2Lanes>...};
  return all[case_index];
}

}  // namespace

LaneCaseRun avx2_lane_case(int case_index) {
  return run_of(case_index, std::make_index_sequence<lane_case_count>());
}

#else

LaneCaseRun avx2_lane_case(int) {
  return nullptr;
}

#endif

}  // namespace cingulum::parity
