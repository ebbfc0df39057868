# Rules for cpack: the Debian packages libkeel<version> (libraries), libkeel-dev (headers, CMake
# package), keel (programs) and python3-keel, and an archive of all of them. They can also contain
# the libraries of other build folders, for other processors.
set(KEEL_PACKAGE_LIBRARIES_OF "" CACHE PATH "Build folders whose libraries are packed too")

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_NAME keel)
set(CPACK_PACKAGE_CONTACT "The Keel developers <keel@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Neural networks for recommendation models, in the manner of Keras")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGE_FILE_NAME keel-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL library development programs python)
set(CPACK_INSTALL_CMAKE_PROJECTS ${PROJECT_BINARY_DIR} keel ALL /)
foreach(build ${KEEL_PACKAGE_LIBRARIES_OF})
  list(APPEND CPACK_INSTALL_CMAKE_PROJECTS ${build} keel library /)
endforeach()
set(CPACK_ARCHIVE_COMPONENT_INSTALL OFF)

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
cmake_host_system_information(RESULT debian QUERY DISTRIB_VERSION_ID)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1~deb${debian})  # they need that release's libraries
set(version ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
set(runtime libkeel${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
# Dependencies are read from the binaries, which link the packaged libraries of this build.
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/lib)
file(WRITE ${PROJECT_BINARY_DIR}/package/triggers "activate-noawait ldconfig\n")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME ${runtime})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_CONTROL_EXTRA ${PROJECT_BINARY_DIR}/package/triggers)
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
  "Shared libraries of Keel for C++ and C, for several levels of processors.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libkeel-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "${runtime} (= ${version})")
set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "Headers of Keel and its package for CMake.")

set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME keel)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_DEPENDS "${runtime} (= ${version})")
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_RECOMMENDS openmpi-bin)
set(CPACK_COMPONENT_PROGRAMS_DESCRIPTION
  "keel serves models over HTTP and gRPC with the APIs of TensorFlow Serving and KServe v2, inspects,
converts and compares them and predicts with them; train_ctr trains one of clicks, serve_hdf5 predicts
rows of a file with it.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-keel)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= 3.10), ${runtime} (= ${version})")
set(CPACK_DEBIAN_PYTHON_PACKAGE_RECOMMENDS python3-numpy)
file(WRITE ${PROJECT_BINARY_DIR}/package/postinst
  "#!/bin/sh\nset -e\n[ \"$1\" != configure ] || py3compile -p python3-keel\n")
file(WRITE ${PROJECT_BINARY_DIR}/package/prerm "#!/bin/sh\nset -e\npy3clean -p python3-keel\n")
set(scripts ${PROJECT_BINARY_DIR}/package/postinst ${PROJECT_BINARY_DIR}/package/prerm)
file(CHMOD ${scripts} PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${scripts})
set(CPACK_COMPONENT_PYTHON_DESCRIPTION
  "Python package that serves Keel's models, and a client of model servers.")
include(CPack)
