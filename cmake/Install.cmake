# `make install PREFIX=...`: program, library (with wgpu-native beside it), headers and the CMake package.
include(CMakePackageConfigHelpers)
install(TARGETS cingulum_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS cingulum EXPORT cingulumTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(header_folder ${CMAKE_INSTALL_INCLUDEDIR}/cingulum)
install(DIRECTORY src/base src/numerics src/device src/formats src/images src/streamlines src/zarr src/dmri src/tract src/oct src/runs src/report DESTINATION ${header_folder}
        FILES_MATCHING PATTERN "*.hpp" PATTERN "cuda" EXCLUDE PATTERN "webgpu" EXCLUDE)
# Of the rings the public headers (docs/ring-gpu.md lists them) and what they include, that of which a kernel of actors is
# made among it; tests/install holds it to that.
set(cuda_actors)
if(NOT CINGULUM_CUDA)
  set(cuda_actors PATTERN "cuda" EXCLUDE)
endif()
install(DIRECTORY src/ring DESTINATION ${header_folder} FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" ${cuda_actors}
        PATTERN "workloads" EXCLUDE PATTERN "resident_actor.hpp" EXCLUDE PATTERN "child_actor.hpp" EXCLUDE
        PATTERN "remote_actor.hpp" EXCLUDE
        PATTERN "request_latency.hpp" EXCLUDE PATTERN "topic.hpp" EXCLUDE PATTERN "drain_order.hpp" EXCLUDE
        PATTERN "emulated_*.hpp" EXCLUDE)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cingulum)
install(EXPORT cingulumTargets NAMESPACE cingulum:: DESTINATION ${package_dir})
configure_package_config_file(cmake/cingulumConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/cingulumConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/cingulumConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/cingulumConfig.cmake
        ${CMAKE_BINARY_DIR}/generated/cingulumConfigVersion.cmake DESTINATION ${package_dir})
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
