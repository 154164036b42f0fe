# The arithmetic of the bit contract, warnings, and sanitizers, each as an interface target.

# No contraction, no fast-math: tests/check_contraction.py reads these back from the compile commands. Without errno a
# square root is one instruction; its value is the same. The SLP vectoriser of GCC 12.2 leaves out the rounding when two
# neighbouring doubles go to float and back.
add_library(cingulum_contract INTERFACE)
target_compile_options(cingulum_contract INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-ffp-contract=off -fno-math-errno -fno-tree-slp-vectorize>
  $<$<COMPILE_LANGUAGE:CUDA>:-fmad=false -prec-div=true -prec-sqrt=true -ftz=false -Xcompiler=-ffp-contract=off,-fno-tree-slp-vectorize>)

# -Wrestrict is wrong about std::string in GCC 12 (bug 105651). -Wpsabi speaks of passing wide vectors between functions,
# which numerics/pack.hpp never does: all of it is inlined.
add_library(cingulum_warnings INTERFACE)
target_compile_options(cingulum_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion
  -Wno-restrict -Wno-psabi>
  $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra -Xcudafe=--display_error_number>)
if(CINGULUM_UNITY)
  # A class of a .cpp file with members from its unnamed namespace: GCC takes every included file for a header.
  target_compile_options(cingulum_warnings INTERFACE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
endif()
if(CINGULUM_WERROR)
  target_compile_options(cingulum_warnings INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Werror> $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings -Xcompiler=-Werror>)
endif()

# What only waits or only asks: requests, the command line, tests. It compiles a third faster so, and in half the time
# under sanitizers; the work is done by the library.
add_library(cingulum_optimised_little INTERFACE)
target_compile_options(cingulum_optimised_little INTERFACE
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Release>>:-O1> $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Debug>>:-O0>)

if(CINGULUM_SANITIZE)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${CINGULUM_SANITIZE}>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-omit-frame-pointer>
                      $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize-recover=all>
                      # Kernels on packs of lanes are some forty times slower at -O0; asserts stay on.
                      $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:Debug>>:-O1>)
  if(CINGULUM_SANITIZE_LEFT_OUT)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=${CINGULUM_SANITIZE_LEFT_OUT}>)
  endif()
  add_link_options(-fsanitize=${CINGULUM_SANITIZE})
endif()
