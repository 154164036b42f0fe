# The host part of tracking for pages without a server (web/host): our C++, compiled to WebAssembly by emscripten where that
# is installed (tools/bootstrap, part `web`). Without it the program is built all the same, and `cingulum view --export`
# says that the module was left out.

# Files of src/ that are compiled together, folder by folder, as in cmake/Unity.cmake. What of them is not called is left out
# by the linker.
set(browser_host_base result argument_name option_name shell_word quantity bulk_memory cancel json_text json_view settings log interrupt thread_pool element_type
    atomic_file file_layer partial_file mapped_growth disk_space)
set(browser_host_formats image_geometry sidecar tractogram tractogram_batch trx_writer trx_header zip_writer spool crc32 folder_output)
set(browser_host_streamlines regions sphere_text lengths linearise)
set(browser_host_tract plan/tracking_plan seeds/sphere_seeds seeds/seed_order paged/device_tables cpu/tables cpu/cpu_tracker
    run/finisher run/selection run/tracker run/tracking_batches)
set(browser_host_tract_cpu track_kernels track_kernels_portable)
set(browser_host_tract_webgpu webgpu_shader shader_constants shader_form probe_words page_store driven_tracking)
set(browser_host_dmri series/signal_floor models/harmonic_fit models/spherical_function models/peaks sphere/sphere sphere/convex_hull
    phantom/phantom_curve phantom/phantom_bundle phantom/phantom_description score/score_streamline)
set(browser_host_device shader_library)
set(browser_host_runs argument_value layout_parameters response_parameters machine stored_request track/field_limits track/track_options track/track_fields
    track/track_defaults track/track_seeds track/track_sidecar track/track_result)
set(browser_host_view view_messages field_slice field_glyphs field_peaks field_bytes memory_files page_request exported_tracks)

# cingulum_browser_host(FILES): sets FILES to the module and the script that loads it; to nothing where they cannot be made.
function(cingulum_browser_host files)
  set(${files} "" PARENT_SCOPE)
  find_program(CINGULUM_EMXX em++)
  if(NOT CINGULUM_EMXX OR NOT CINGULUM_VIEW OR NOT CINGULUM_WEBGPU OR CINGULUM_SANITIZE OR CINGULUM_FOLDERS)
    message(STATUS "cingulum view --export: its module for browsers is left out (em++: ${CINGULUM_EMXX})")
    return()
  endif()
  set(folder ${CMAKE_BINARY_DIR}/web/host)
  # Headers of libraries without code of their own, and no others of the machine.
  file(MAKE_DIRECTORY ${folder}/include)
  foreach(header tl/expected.hpp fmt/format.h nlohmann/json.hpp isa-l/crc.h)
    get_filename_component(library ${header} DIRECTORY)
    find_path(found_${library} ${header} NO_CACHE REQUIRED)
    file(CREATE_LINK ${found_${library}}/${library} ${folder}/include/${library} SYMBOLIC)
  endforeach()
  get_target_property(eigen Eigen3::Eigen INTERFACE_INCLUDE_DIRECTORIES)
  set(host ${PROJECT_SOURCE_DIR}/web/host)
  # The contract's arithmetic: WebAssembly has no fused products, and nothing may be rearranged. Its registers of four numbers
  # hold lanes where the processor tracks.
  set(flags -std=c++20 -msimd128 -ffp-contract=off -DNDEBUG -DFMT_HEADER_ONLY -DCINGULUM_VERSION_TEXT=\"${PROJECT_VERSION}\"
      -include ${host}/missing_library.hpp -I${PROJECT_SOURCE_DIR}/src -isystem ${folder}/include -isystem ${eigen})
  set(sources ${host}/browser_host.cpp ${host}/absent_parts.cpp ${CMAKE_BINARY_DIR}/generated/embedded_shaders.cpp
      ${CMAKE_BINARY_DIR}/generated/sphere_tables.cpp)
  foreach(part base formats streamlines tract tract/cpu tract/webgpu dmri device runs view)
    string(REPLACE / _ name ${part})
    set(text "")
    foreach(file IN LISTS browser_host_${name})
      string(APPEND text "#include \"${part}/${file}.cpp\"\n")
    endforeach()
    file(CONFIGURE OUTPUT ${folder}/all_of_${name}.cpp CONTENT "${text}")
    list(APPEND sources ${folder}/all_of_${name}.cpp)
  endforeach()
  set(objects)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    # Every program and wheel carries the module, so it is small, but for what tracks and scores by the processor.
    set(optimised -Os)
    if(name MATCHES "^all_of_(tract_cpu|dmri)$")
      set(optimised -O2)
    endif()
    add_custom_command(
      OUTPUT ${folder}/${name}.o
      COMMAND ${CINGULUM_EMXX} ${flags} ${optimised} -MMD -MF ${folder}/${name}.d -c ${source} -o ${folder}/${name}.o
      DEPENDS ${source} ${host}/missing_library.hpp
      DEPFILE ${folder}/${name}.d
      COMMENT "compiling ${name} for browsers" VERBATIM)
    list(APPEND objects ${folder}/${name}.o)
  endforeach()
  # Nothing that a strict Content-Security-Policy refuses; Debian's modules for Node lie where only its own Node looks.
  add_custom_command(
    OUTPUT ${folder}/browser_host.js ${folder}/browser_host.wasm
    COMMAND ${CMAKE_COMMAND} -E env NODE_PATH=/usr/share/nodejs
            ${CINGULUM_EMXX} -Os ${objects} -o ${folder}/browser_host.js -s MODULARIZE=1 -s EXPORT_ES6=1 -s ENVIRONMENT=web,worker
            -s ALLOW_MEMORY_GROWTH=1 -s DYNAMIC_EXECUTION=0 -s FILESYSTEM=0 -s EXPORTED_FUNCTIONS=_malloc,_free
    DEPENDS ${objects}
    COMMENT "linking the module for browsers" VERBATIM)
  set(${files} ${folder}/browser_host.js ${folder}/browser_host.wasm PARENT_SCOPE)
endfunction()
