# What `cmake --install` copies.
#
# Without --component it is an SDK: lib/ with the vendor's libraries, include/diopi, lib/pkgconfig/diopi.pc, and the package
# Diopi in lib/cmake/Diopi with the targets Diopi::<vendor> and Diopi::diopirt. From a checkout share/diopi is added, which
# diopi_add_vendor needs. The SDK may be moved. --component torch_dipu_<vendor> gives the Python package's part.

# diopi_install(<vendor> <target>...): libraries, for both. FOLDER is one below that of the other libraries.
function(diopi_install vendor)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "FOLDER" "")
  set(package torch_dipu_${vendor})
  install(TARGETS ${arg_UNPARSED_ARGUMENTS} LIBRARY DESTINATION ${package}/${arg_FOLDER} COMPONENT ${package} EXCLUDE_FROM_ALL)
  if(DIOPI_INSTALL)
    include(GNUInstallDirs)
    install(TARGETS ${arg_UNPARSED_ARGUMENTS} EXPORT DiopiTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/${arg_FOLDER} COMPONENT diopi
            INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  endif()
endfunction()

# The headers, pkg-config's file and CMake's package, beside the libraries that diopi_install() has named.
function(diopi_install_sdk vendor headers)
  if(NOT DIOPI_INSTALL)
    return()
  endif()
  include(GNUInstallDirs)
  include(CMakePackageConfigHelpers)
  set(source "${DIOPI_HOME}/runtime_cpp/cmake")
  set(made "${DIOPI_BINARY_DIR}/installed")
  set(place "${CMAKE_INSTALL_LIBDIR}/cmake/Diopi")
  install(DIRECTORY "${DIOPI_CONTRACT_DIR}/" "${headers}/" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT diopi
          FILES_MATCHING PATTERN "*.h")
  install(FILES "${DIOPI_HOME}/runtime_cpp/standalone/standalone.h" DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/diopi COMPONENT diopi)

  diopi_version(DIOPI_VERSION)
  configure_package_config_file("${source}/installed/DiopiConfig.cmake.in" "${made}/DiopiConfig.cmake" INSTALL_DESTINATION ${place}
                                NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
  write_basic_package_version_file("${made}/DiopiConfigVersion.cmake" VERSION "${DIOPI_VERSION}" COMPATIBILITY SameMinorVersion)
  install(FILES "${made}/DiopiConfig.cmake" "${made}/DiopiConfigVersion.cmake" DESTINATION ${place} COMPONENT diopi)
  install(EXPORT DiopiTargets NAMESPACE Diopi:: DESTINATION ${place} COMPONENT diopi)

  # pkg-config finds the libraries from where its file lies.
  set(pkgconfig "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  file(RELATIVE_PATH libraries "/${pkgconfig}" "/${CMAKE_INSTALL_LIBDIR}")
  file(RELATIVE_PATH includes "/${pkgconfig}" "/${CMAKE_INSTALL_INCLUDEDIR}")
  configure_file("${source}/installed/diopi.pc.in" "${made}/diopi.pc" @ONLY)
  install(FILES "${made}/diopi.pc" DESTINATION ${pkgconfig} COMPONENT diopi)
endfunction()

# What diopi_add_vendor, the generator and `pip install` need of a checkout: the files of its source distribution.
function(diopi_install_kit)
  if(NOT DIOPI_INSTALL)
    return()
  endif()
  set(kit share/diopi)
  install(DIRECTORY schemas templates runtime_cpp vendors generators DESTINATION ${kit} COMPONENT diopi PATTERN __pycache__ EXCLUDE)
  install(DIRECTORY conformance/diopi_conformance DESTINATION ${kit}/conformance COMPONENT diopi PATTERN __pycache__ EXCLUDE)
  install(DIRECTORY python/op_tools python/dicp DESTINATION ${kit}/python COMPONENT diopi PATTERN __pycache__ EXCLUDE)
  install(FILES docs/diagnostics.yaml DESTINATION ${kit}/docs COMPONENT diopi)
  install(FILES CMakeLists.txt LICENSE MANIFEST.in README.md pyproject.toml setup.py DESTINATION ${kit} COMPONENT diopi)
endfunction()
