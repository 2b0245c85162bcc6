# Install and export: find_package(baregrad) gives baregrad::baregrad.
include(CMakePackageConfigHelpers)

install(TARGETS baregrad EXPORT baregrad-targets)
install(DIRECTORY include/baregrad DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT baregrad-targets NAMESPACE baregrad:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/baregrad)
install(TARGETS baregrad_sim LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET baregrad_cli)
  install(TARGETS baregrad_cli)
endif()

configure_package_config_file(cmake/baregrad-config.cmake.in baregrad-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/baregrad)
write_basic_package_version_file(baregrad-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/baregrad-config.cmake
  ${PROJECT_BINARY_DIR}/baregrad-config-version.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/baregrad)
