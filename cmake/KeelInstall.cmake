# Rules for cmake --install: headers, libraries, programs and a package for find_package(keel), in
# the components library, development, programs and python. cpack creates Debian packages and an archive
# from them.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

# glibc loads the library of the highest level that the processor supports, from one folder per
# level. No library is installed outside these folders, so an older processor gets a loader error
# that names the library instead of an illegal instruction.
set(library_folder ${CMAKE_INSTALL_LIBDIR})
if(KEEL_HWCAPS)
  string(APPEND library_folder /glibc-hwcaps/${KEEL_HWCAPS})
endif()
set(soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})

# Headers that users include: not those in folders called internal or in these folders.
# tests/lint/public_headers.py reads this list.
set(private_folders
  distribute/embedding framework/kernels optimizers/step savedmodel/hdf5 savedmodel/keras/dialect
  savedmodel/serving savedmodel/tool)
foreach(folder ${private_folders})
  list(APPEND excluded PATTERN ${folder} EXCLUDE)
endforeach()
foreach(folder ${KEEL_FOLDERS})
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/keel
          COMPONENT development
          FILES_MATCHING PATTERN "*.h" PATTERN "*_internal.h" EXCLUDE PATTERN "internal" EXCLUDE
          PATTERN "savedmodel/umbrella" EXCLUDE ${excluded})
endforeach()
file(GLOB umbrella_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/savedmodel/umbrella/*.h)
install(FILES ${umbrella_headers} ${PROJECT_BINARY_DIR}/include/framework/keel/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/keel COMPONENT development)

# Targets for users: keel::keel contains everything; keel::c is for C programs, and other languages
# load it.
if(BUILD_SHARED_LIBS)
  add_library(keel SHARED)
  foreach(folder ${KEEL_FOLDERS})
    target_include_directories(keel INTERFACE $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include/${folder}>)
  endforeach()
  foreach(library ${KEEL_FOLDERS} ${KEEL_EXTENSIONS})
    target_sources(keel PRIVATE $<TARGET_OBJECTS:keel_${library}>)
    if(TARGET keel_${library}_full)
      target_sources(keel PRIVATE $<TARGET_OBJECTS:keel_${library}_full>)
    endif()
  endforeach()
  target_compile_features(keel INTERFACE cxx_std_20)
  target_link_libraries(keel
    PUBLIC Threads::Threads PRIVATE keel_catalog keel_compat keel_serving INTERFACE ${KEEL_CXX_RUNTIME})
  set(map ${PROJECT_SOURCE_DIR}/cmake/keel.map)
  target_link_options(keel PRIVATE LINKER:--version-script=${map})
  set_target_properties(keel PROPERTIES
    LINKER_LANGUAGE CXX LINK_DEPENDS ${map} LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib
    VERSION ${PROJECT_VERSION} SOVERSION ${soversion})
  foreach(library keel keel_c)
    install(TARGETS ${library} LIBRARY DESTINATION ${library_folder} COMPONENT library NAMELINK_SKIP)
    # The linker does not search the glibc-hwcaps folders.
    set(link ${PROJECT_BINARY_DIR}/links/lib${library}.so)
    file(RELATIVE_PATH target /${CMAKE_INSTALL_LIBDIR} /${library_folder}/lib${library}.so.${soversion})
    file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/links)
    file(CREATE_LINK ${target} ${link} SYMBOLIC)
    install(FILES ${link} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
  endforeach()
else()
  add_library(keel INTERFACE)
  target_link_libraries(keel INTERFACE ${KEEL_LIBRARY})
  foreach(library ${KEEL_FOLDERS} ${KEEL_EXTENSIONS})
    install(TARGETS keel_${library} EXPORT keelTargets
            ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development)
    set_target_properties(keel_${library} PROPERTIES EXPORT_NAME ${library})
  endforeach()
  install(TARGETS keel EXPORT keelTargets)
  install(TARGETS keel_c EXPORT keelTargets
          LIBRARY DESTINATION ${library_folder} COMPONENT library NAMELINK_COMPONENT development)
  set_target_properties(keel_c PROPERTIES EXPORT_NAME c)
  install(EXPORT keelTargets NAMESPACE keel:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/keel
          COMPONENT development)
endif()
add_library(keel::keel ALIAS keel)
add_library(keel::c ALIAS keel_c)

install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/keel COMPONENT library)

set(programs keel_tool)
if(BUILD_SHARED_LIBS AND KEEL_BUILD_EXAMPLES)
  list(APPEND programs train_ctr serve_hdf5)
endif()
install(TARGETS ${programs} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT programs)
if(BUILD_SHARED_LIBS)
  file(RELATIVE_PATH to_libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${programs} PROPERTIES INSTALL_RPATH $ORIGIN/${to_libraries})
endif()

# The Python package, where Debian's python3 finds it if the prefix is /usr. Elsewhere, `pip install
# ./python` installs it.
set(python_folder lib/python3/dist-packages)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/keel DESTINATION ${python_folder} COMPONENT python
        FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
set(metadata ${PROJECT_BINARY_DIR}/keel-${PROJECT_VERSION}.dist-info)
file(CONFIGURE OUTPUT ${metadata}/METADATA
  CONTENT "Metadata-Version: 2.1\nName: keel\nVersion: @PROJECT_VERSION@\n" @ONLY)
install(DIRECTORY ${metadata} DESTINATION ${python_folder} COMPONENT python)

# keel.pc, for builds that use pkg-config. A program that links the static libraries links what they use.
if(BUILD_SHARED_LIBS)
  set(pc_libraries -lkeel)
else()
  set(pc_requires "Requires: absl_str_format absl_strings absl_time libzip protobuf zlib")
  foreach(library ${KEEL_FOLDERS} ${KEEL_EXTENSIONS})
    list(PREPEND pc_libraries -lkeel_${library})
  endforeach()
  list(PREPEND pc_libraries -Wl,--undefined=keel_catalog_is_linked,--undefined=keel_compat_is_linked)
  list(APPEND pc_libraries ${HDF5_C_LIBRARIES} ${MPI_C_LIBRARIES} ${FarmHash_LIBRARY} -pthread)
endif()
list(JOIN pc_libraries " " pc_libraries)
configure_file(${PROJECT_SOURCE_DIR}/cmake/keel.pc.in ${PROJECT_BINARY_DIR}/keel.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/keel.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/keelConfig.cmake.in
  ${PROJECT_BINARY_DIR}/keelConfig.cmake INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/keel
  PATH_VARS CMAKE_INSTALL_LIBDIR CMAKE_INSTALL_INCLUDEDIR)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/keelConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/keelConfig.cmake ${PROJECT_BINARY_DIR}/keelConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindFarmHash.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/keel COMPONENT development)
