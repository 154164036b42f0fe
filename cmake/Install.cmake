# `make install PREFIX=...`: program, library (with wgpu-native beside it), headers and the CMake package.
include(CMakePackageConfigHelpers)
install(TARGETS cingulum_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(TARGETS cingulum EXPORT cingulumTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY src/base src/numerics src/device src/ring src/formats src/images src/streamlines src/dmri src/tract src/report DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/cingulum
        FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cuh" PATTERN "cuda" EXCLUDE PATTERN "webgpu" EXCLUDE)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/cingulum)
install(EXPORT cingulumTargets NAMESPACE cingulum:: DESTINATION ${package_dir})
configure_package_config_file(cmake/cingulumConfig.cmake.in ${CMAKE_BINARY_DIR}/generated/cingulumConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/generated/cingulumConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/generated/cingulumConfig.cmake
        ${CMAKE_BINARY_DIR}/generated/cingulumConfigVersion.cmake DESTINATION ${package_dir})
install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
