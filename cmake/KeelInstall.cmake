# cmake --install: headers, libraries and a package for find_package(keel).
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

foreach(folder ${KEEL_FOLDERS})
  install(TARGETS keel_${folder} EXPORT keelTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  set_target_properties(keel_${folder} PROPERTIES EXPORT_NAME ${folder})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/keel
          FILES_MATCHING PATTERN "*.h" PATTERN "*internal.h" EXCLUDE
          PATTERN "savedmodel/tool" EXCLUDE)
endforeach()

# What users link: keel::keel is everything.
add_library(keel INTERFACE)
add_library(keel::keel ALIAS keel)
target_link_libraries(keel INTERFACE keel_savedmodel)
install(TARGETS keel EXPORT keelTargets)

# keel::c is for programs in C, and other languages load it; `keel` is the tool.
install(TARGETS keel_c EXPORT keelTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
set_target_properties(keel_c PROPERTIES EXPORT_NAME c)
add_library(keel::c ALIAS keel_c)
install(TARGETS keel_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

install(EXPORT keelTargets NAMESPACE keel:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/keel)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/keelConfig.cmake.in
  ${PROJECT_BINARY_DIR}/keelConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/keel)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/keelConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/keelConfig.cmake ${PROJECT_BINARY_DIR}/keelConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/keel)
