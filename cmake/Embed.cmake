# Text that becomes part of the library: shaders, tables of numbers, and the facts that --version prints.

# cingulum_embed_text(OUTPUT_NAME FUNCTION FILES...): adds ${OUTPUT_NAME}.cpp to the list in the caller's variable
# `embedded_sources`; it defines `std::string_view cingulum::FUNCTION(std::string_view file_name)`.
function(cingulum_embed_text output_name function)
  set(output ${CMAKE_BINARY_DIR}/generated/${output_name}.cpp)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CINGULUM_PYTHON} ${PROJECT_SOURCE_DIR}/tools/embed_text.py --function ${function} --out ${output} ${ARGN}
    DEPENDS ${ARGN} ${PROJECT_SOURCE_DIR}/tools/embed_text.py
    COMMENT "embedding ${output_name}" VERBATIM)
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(embedded_sources ${embedded_sources} ${output} PARENT_SCOPE)
endfunction()

# cingulum_embed_spheres(FILE): adds a file with the tables of dmri/sphere/sphere_tables.hpp to `embedded_sources`.
function(cingulum_embed_spheres file)
  set(output ${CMAKE_BINARY_DIR}/generated/sphere_tables.cpp)
  get_filename_component(file ${file} ABSOLUTE)
  add_custom_command(
    OUTPUT ${output}
    COMMAND ${CINGULUM_PYTHON} ${PROJECT_SOURCE_DIR}/tools/embed_spheres.py --out ${output} ${file}
    DEPENDS ${file} ${PROJECT_SOURCE_DIR}/tools/embed_spheres.py
    COMMENT "embedding spheres" VERBATIM)
  set_source_files_properties(${output} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(embedded_sources ${embedded_sources} ${output} PARENT_SCOPE)
endfunction()

# The commit is a fact of the checkout, read at configure time.
execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} rev-parse --short=12 HEAD
                OUTPUT_VARIABLE CINGULUM_COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT CINGULUM_COMMIT)
  set(CINGULUM_COMMIT "unknown")
endif()
