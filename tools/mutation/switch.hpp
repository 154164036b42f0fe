// The run-time switch of mutants: every mutant of a build is compiled, and one of them is on by its number. Put before
// every translation unit of a mutated tree by the compiler's option -include; the variables are in switch.cpp, a small
// shared library of its own, so that a process has them once and they are set before any other code runs.
#pragma once

extern "C" {
extern unsigned cingulum_mutant_on;           // 0: none
extern unsigned char* cingulum_mutants_seen;  // a byte for each number, or null when nothing is recorded
}

namespace cingulum_mutation {

// False where the compiler evaluates. A number that is left in the code is noted in a section of the object: mutants
// without a note are in code that is not compiled or that the compiler evaluates, and no test could find them.
template <unsigned number>
[[gnu::always_inline]] constexpr bool is_on() {
  if (__builtin_is_constant_evaluated()) return false;
  asm volatile(".pushsection .cgl_mutants,\"\",@progbits\n\t.long %c0\n\t.popsection" : : "i"(number));
  if (cingulum_mutants_seen != nullptr) [[unlikely]]
    cingulum_mutants_seen[number] = 1;
  return cingulum_mutant_on == number;
}

}  // namespace cingulum_mutation

#define CGL_MUTANT(number) (::cingulum_mutation::is_on<number>())
