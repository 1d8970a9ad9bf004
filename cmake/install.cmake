# What `cmake --install` brings: headers, libraries, and how CMake finds them.
# The peers' sources, in the layout that cli/bench/peers.cpp looks for.
set(peers_dir ${CMAKE_INSTALL_DATADIR}/trireme)
install(DIRECTORY bench/peers DESTINATION ${peers_dir}/bench)
install(DIRECTORY src/trireme/base DESTINATION ${peers_dir}/src/trireme)
install(DIRECTORY src/trireme/cli/bench DESTINATION ${peers_dir}/src/trireme/cli)
install(FILES src/trireme/collective/schedule.h DESTINATION ${peers_dir}/src/trireme/collective)
install(TARGETS trireme_everything EXPORT trireme)
include(cmake/public_headers.cmake)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/trireme)
install(EXPORT trireme NAMESPACE trireme:: DESTINATION ${package_dir} FILE trireme-targets.cmake)
if(TRIREME_TORCH)
  install(TARGETS trireme_torch EXPORT trireme-torch)
  install(EXPORT trireme-torch NAMESPACE trireme:: DESTINATION ${package_dir} FILE trireme-torch-targets.cmake)
endif()
configure_package_config_file(cmake/trireme-config.cmake.in trireme-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(trireme-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES cmake/torch.cmake ${PROJECT_BINARY_DIR}/trireme-config.cmake ${PROJECT_BINARY_DIR}/trireme-config-version.cmake
        DESTINATION ${package_dir})
