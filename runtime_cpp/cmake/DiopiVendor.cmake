# diopi_add_vendor(): builds libdiopi_impl.so, the operators of one vendor behind the generated adaptor.
# diopi_add_profile(): the same operators behind the adaptor of a variant of the chip.

# Ends when vendors/<name> is not there, and says which are.
function(diopi_require_vendor name)
  if(NOT name STREQUAL "" AND EXISTS "${DIOPI_HOME}/vendors/${name}/CMakeLists.txt")
    return()
  endif()
  file(GLOB manifests RELATIVE "${DIOPI_HOME}/vendors" "${DIOPI_HOME}/vendors/*/CMakeLists.txt")
  list(TRANSFORM manifests REPLACE "/CMakeLists.txt$" "")
  list(JOIN manifests ", " known)
  message(FATAL_ERROR "There is no vendor '${name}': choose one of ${known}.")
endfunction()

# Where the generator writes: the contract's headers, and the folder of one vendor. What follows from another
# configuration than the vendor's own stays apart.
if(DIOPI_CONVERT_CONFIG AND NOT DIOPI_OUT)
  set(DIOPI_OUT "${DIOPI_BINARY_DIR}/generated")
endif()
if(DIOPI_OUT)
  get_filename_component(DIOPI_OUT "${DIOPI_OUT}" ABSOLUTE)
  set(DIOPI_CONTRACT_DIR "${DIOPI_OUT}/include")
else()
  set(DIOPI_CONTRACT_DIR "${DIOPI_ROOT}/generated/include")
endif()
set(DIOPI_INCLUDE_DIRS "${DIOPI_CONTRACT_DIR}")

function(diopi_vendor_folder name variable)
  if(DIOPI_OUT)
    set(${variable} "${DIOPI_OUT}/${name}" PARENT_SCOPE)
  else()
    set(${variable} "${DIOPI_ROOT}/generated/${name}" PARENT_SCOPE)
  endif()
endfunction()

# Ends with the generator's own words.
function(diopi_generate_now command)
  execute_process(COMMAND ${command} WORKING_DIRECTORY "${DIOPI_ROOT}" RESULT_VARIABLE status
                  OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(status EQUAL 0)
    return()
  endif()
  if(text MATCHES "No module named '?([A-Za-z0-9_]+)")
    message(FATAL_ERROR "The Python module '${CMAKE_MATCH_1}' is missing: run '${Python_EXECUTABLE} -m pip install ${DIOPI_REQUIREMENT}'.")
  endif()
  message(NOTICE "${text}")
  message(FATAL_ERROR "The generator found the mistakes above; correct them and configure again.")
endfunction()

# CMake runs again whenever one of the files and folders of the generator's depfile has changed.
function(diopi_configure_after depfile)
  file(READ "${depfile}" inputs)
  string(STRIP "${inputs}" inputs)
  string(REPLACE " \\\n  " ";" inputs "${inputs}")
  list(POP_FRONT inputs)  # the stamp
  string(REGEX REPLACE "\\\\([ #])" "\\1" inputs "${inputs}")
  string(REPLACE "$$" "$" inputs "${inputs}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${inputs})
endfunction()

# Includes <out>/sources.cmake, the list of what <command> generates there. The command runs now, if it never ran, and
# later in the build; Ninja configures again within the same build when the list changes. Other generators do not: there
# it runs whenever CMake does, which is whenever an input has changed.
macro(diopi_generated_list out command)
  if(NOT CMAKE_GENERATOR MATCHES "Ninja" OR NOT EXISTS "${out}/sources.cmake" OR NOT EXISTS "${out}/.stamp")
    diopi_generate_now("${command}")
  endif()
  include("${out}/sources.cmake")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${out}/sources.cmake")
  if(NOT CMAKE_GENERATOR MATCHES "Ninja")
    diopi_configure_after("${out}/.depfile")
  endif()
endmacro()

# diopi_take_backend(<build folder>): the libraries of the PyTorch backend that were built there, beside the vendor's,
# which they look for in their own folder.
function(diopi_take_backend from)
  get_filename_component(from "${from}" ABSOLUTE BASE_DIR "${DIOPI_ROOT}")
  file(GLOB libraries CONFIGURE_DEPENDS RELATIVE "${from}/lib"
       "${from}/lib/libtorch_dipu.so" "${from}/lib/_C.*.so" "${from}/lib/client/*")
  list(LENGTH libraries count)
  if(NOT count EQUAL 4)
    message(FATAL_ERROR "There is no PyTorch backend in ${from}/lib: build it first, by 'make build' or with -DDIOPI_TORCH=ONLY, or let DIOPI_TORCH be ON, OFF or such a folder.")
  endif()
  set(taken "")
  file(MAKE_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/client")
  foreach(name IN LISTS libraries)
    set(library "${from}/lib/${name}")
    set(copy "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${name}")
    add_custom_command(OUTPUT "${copy}" COMMAND ${CMAKE_COMMAND} -E copy "${library}" "${copy}" DEPENDS "${library}"
                       COMMENT "Taking ${name}" VERBATIM)
    list(APPEND taken "${copy}")
  endforeach()
  add_custom_target(torch_dipu ALL DEPENDS ${taken})
endfunction()

# Runs `diopigen all` for a vendor whenever one of its inputs has changed.
function(diopi_generate name out)
  set(command ${DIOPI_GENERATOR} all --vendor ${name})
  if(DIOPI_CONVERT_CONFIG)
    list(APPEND command --convert-config "${DIOPI_CONVERT_CONFIG}")
  endif()
  if(DIOPI_OUT)
    list(APPEND command --out "${DIOPI_OUT}")
  endif()
  diopi_generated_list("${out}" "${command}")
  file(GLOB headers "${DIOPI_CONTRACT_DIR}/diopi/*.h" "${out}/declarations/*/*.hpp")
  add_custom_command(
    OUTPUT "${out}/.stamp"
    BYPRODUCTS ${DIOPI_GENERATED_SOURCES} ${headers} "${out}/sources.cmake"
    COMMAND ${command}
    DEPFILE "${out}/.depfile"
    WORKING_DIRECTORY "${DIOPI_ROOT}"
    COMMENT "Generating the sources of ${name}"
    VERBATIM)
  add_custom_target(diopi_generated DEPENDS "${out}/.stamp")
  set(DIOPI_GENERATED_SOURCES ${DIOPI_GENERATED_SOURCES} PARENT_SCOPE)
  set(DIOPI_VENDOR_SOURCES ${DIOPI_VENDOR_SOURCES} PARENT_SCOPE)
  set(DIOPI_PORTABLE_SOURCES ${DIOPI_PORTABLE_SOURCES} PARENT_SCOPE)
  set(DIOPI_BASES ${DIOPI_BASES} PARENT_SCOPE)
  foreach(base IN LISTS DIOPI_BASES)
    foreach(list SOURCES INCLUDE_DIRS DEFINES)
      set(DIOPI_BASE_${base}_${list} "${DIOPI_BASE_${base}_${list}}" PARENT_SCOPE)
    endforeach()
  endforeach()
endfunction()

# What sources that are written for the established run time need comes with headers of its names, which are found before
# those of the contract, by vendors' own sources alone.
set(DIOPI_ESTABLISHED_DIR "${DIOPI_HOME}/runtime_cpp/established")

# diopi_base_<name>: the objects of another vendor whose functions fill gaps, with the headers and macros of its own
# vendor.yaml. What they need beside them the deriving vendor gives to this target after diopi_add_vendor.
function(diopi_add_base name)
  cmake_parse_arguments(PARSE_ARGV 1 base "STRICT" "" "LINK;INCLUDE")
  set(target diopi_base_${name})
  add_library(${target} OBJECT ${DIOPI_BASE_${name}_SOURCES})
  add_dependencies(${target} diopi_generated)
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} PRIVATE "${DIOPI_ESTABLISHED_DIR}" "${DIOPI_CONTRACT_DIR}" "${DIOPI_HOME}/runtime_cpp"
                                               "${DIOPI_HOME}/runtime_cpp/kernels" ${DIOPI_BASE_${name}_INCLUDE_DIRS})
  target_include_directories(${target} SYSTEM PRIVATE ${base_INCLUDE})
  target_compile_definitions(${target} PRIVATE ${DIOPI_BASE_${name}_DEFINES})
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  target_link_libraries(${target} PRIVATE ${base_LINK})
  if(base_STRICT)
    diopi_compile_strictly(${target})
  endif()
endfunction()

# The parts of the portable kernels that the files need: sources without functions of the contract that stand behind a
# header which the files include, or which such a part includes. A source without a header of its own in its folder, e.g.
# pooling_average.cpp, stands behind that of the first words of its name.
function(diopi_kernel_parts variable)
  set(kernels "${DIOPI_HOME}/runtime_cpp/kernels")
  file(GLOB sources CONFIGURE_DEPENDS "${kernels}/*/*.cpp")
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" functions LIMIT_COUNT 1 REGEX "^namespace impl::portable")
    if(functions)
      continue()
    endif()
    string(REGEX REPLACE "\\.cpp$" "" name "${source}")
    while(name MATCHES "_[^_/]*$" AND NOT EXISTS "${name}.h")
      string(REGEX REPLACE "_[^_]*$" "" name "${name}")
    endwhile()
    if(NOT EXISTS "${name}.h")
      message(FATAL_ERROR "${source} has no function of impl::portable, and stands behind no header of its folder.")
    endif()
    list(APPEND "behind_${name}.h" "${source}")
  endforeach()
  set(left ${ARGN})
  set(seen)
  set(needed)
  while(left)
    list(POP_FRONT left file)
    get_filename_component(file "${file}" ABSOLUTE)
    if(file IN_LIST seen)
      continue()
    endif()
    list(APPEND seen "${file}")
    get_filename_component(folder "${file}" DIRECTORY)
    file(STRINGS "${file}" lines REGEX "^#include \"")
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^#include \"([^\"]*)\".*" "\\1" included "${line}")
      foreach(place "${folder}" "${DIOPI_HOME}/runtime_cpp" "${kernels}" "${CMAKE_CURRENT_SOURCE_DIR}")
        if(EXISTS "${place}/${included}")
          list(APPEND left "${place}/${included}")
          break()
        endif()
      endforeach()
    endforeach()
    list(APPEND left ${behind_${file}})
    list(APPEND needed ${behind_${file}})
  endwhile()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${seen})
  list(SORT needed)
  set(${variable} ${needed} PARENT_SCOPE)
endfunction()

# diopi_kernels: the objects of the portable kernels, those that are generated among them.
function(diopi_add_kernels language generated)
  add_library(diopi_kernels OBJECT ${ARGN})
  set_target_properties(diopi_kernels PROPERTIES POSITION_INDEPENDENT_CODE ON)
  if(language)
    set_source_files_properties(${ARGN} PROPERTIES LANGUAGE ${language})
    target_compile_options(diopi_kernels PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:--extended-lambda;-diag-error=20011,20013,20014>")
    return()
  endif()
  # What most of them read is read once; a vendor that calls none has only the few files that its own sources include.
  list(LENGTH ARGN count)
  if(count GREATER 3)
    diopi_precompile_headers(diopi_kernels "${DIOPI_HOME}/runtime_cpp/kernels/elementwise/elementwise.h" <algorithm> <limits>)
  endif()
  if(DIOPI_SANITIZE)
    return()
  endif()
  target_compile_options(diopi_kernels PRIVATE $<$<NOT:$<CONFIG:Debug>>:-O3> -fwrapv -fno-math-errno -fno-trapping-math -ffp-contract=off ${DIOPI_CPU_OPTIONS}
    "$<$<CXX_COMPILER_ID:Clang>:-Wno-pass-failed>")  # some forms of a loop that DIOPI_VECTOR_LOOP marks are none for vectors
  # Sums of products as matrix libraries compute them: a product is not rounded before it is added.
  set_source_files_properties("${DIOPI_HOME}/runtime_cpp/kernels/convolution/direct_convolution.cpp" PROPERTIES
                              COMPILE_OPTIONS -ffp-contract=fast SKIP_PRECOMPILE_HEADERS ON)
  # A choice that is the same for all elements, as gelu's, is made outside of the loop, whatever its length.
  set_property(SOURCE ${generated} APPEND PROPERTY COMPILE_OPTIONS "$<$<CXX_COMPILER_ID:GNU>:--param=max-unswitch-insns=300>")
  # Their runs are long: the widest vectors that the processor has, where compilers choose narrower ones for most code.
  if(DIOPI_CAN_WIDEN)
    set(wide ${ARGN})
    list(FILTER wide INCLUDE REGEX "/kernels/(normalization|reduction)/")
    list(APPEND wide ${generated})
    set_property(SOURCE ${wide} APPEND PROPERTY COMPILE_OPTIONS -mprefer-vector-width=512)
    set_source_files_properties(${wide} PROPERTIES SKIP_PRECOMPILE_HEADERS ON)  # g++ compares such options
  endif()
endfunction()

# Warns of sources with functions that the adaptor calls, but which are not among these.
function(diopi_require_sources name)
  foreach(source IN LISTS ARGN)
    get_filename_component(source "${source}" ABSOLUTE)
    list(APPEND compiled "${source}")
  endforeach()
  foreach(source IN LISTS DIOPI_VENDOR_SOURCES)
    if(NOT source IN_LIST compiled)
      file(RELATIVE_PATH shown "${DIOPI_ROOT}" "${source}")
      message(WARNING "The adaptor of ${name} calls functions of ${shown}, which SOURCES of diopi_add_vendor lacks.")
    endif()
  endforeach()
endfunction()

# diopi_add_vendor(NAME <vendor> [STRICT] [LAUNCHER <header> [KERNELS_APART]] [LANGUAGE <language>] SOURCES <file>...
#                  [LINK <target or library>...] [INCLUDE <directory of a package>...])
#   NAME      the folder in vendors/
#   STRICT    warnings of -Wall and -Wextra are errors in the vendor's own sources and its bases', as they are in all others
#   LAUNCHER  the header that the portable kernels are compiled against (parallel_for, gemm ...); a vendor
#             without `base: portable` has none
#   KERNELS_APART  the launcher is launch/cuda.h's: kernels of programs are compiled by nvcc, all else beside them
#   LANGUAGE  what compiles the portable kernels, e.g. CUDA; CXX unless said
#   SOURCES   the vendor's own sources: device.cpp and functions/*.cpp
#   LINK      its runtime; linked although weak references alone would not keep it
function(diopi_add_vendor)
  cmake_parse_arguments(PARSE_ARGV 0 vendor "STRICT;KERNELS_APART" "NAME;LAUNCHER;LANGUAGE" "SOURCES;LINK;INCLUDE")
  foreach(required NAME SOURCES)
    if(NOT vendor_${required})
      message(FATAL_ERROR "diopi_add_vendor lacks ${required}.")
    endif()
  endforeach()
  diopi_use_settings()
  diopi_find_python()
  set(runtime "${DIOPI_HOME}/runtime_cpp")
  diopi_vendor_folder(${vendor_NAME} out)
  diopi_generate(${vendor_NAME} "${out}")
  diopi_require_sources(${vendor_NAME} ${vendor_SOURCES})
  # The run time without a framework, which the conformance suite needs beside the library.
  add_subdirectory("${runtime}/standalone" "${DIOPI_BINARY_DIR}/standalone")
  add_dependencies(diopirt diopi_generated)
  file(GLOB adaptor CONFIGURE_DEPENDS "${runtime}/adaptor/*.cpp")
  set(kernels ${DIOPI_GENERATED_SOURCES})
  list(FILTER kernels INCLUDE REGEX "/kernels/")
  set(others ${DIOPI_GENERATED_SOURCES})
  list(FILTER others EXCLUDE REGEX "/kernels/")
  if(vendor_LAUNCHER)
    get_filename_component(launcher "${vendor_LAUNCHER}" ABSOLUTE)
    set(users ${kernels} ${DIOPI_PORTABLE_SOURCES} ${vendor_SOURCES})
    foreach(base IN LISTS DIOPI_BASES)
      list(APPEND users ${DIOPI_BASE_${base}_SOURCES})
    endforeach()
    diopi_kernel_parts(parts ${users})
  elseif(DIOPI_PORTABLE_SOURCES)
    message(FATAL_ERROR "The portable kernels of ${vendor_NAME} need a launcher: give diopi_add_vendor LAUNCHER.")
  endif()

  # What takes longest is compiled first: the vendor's own sources, the expressions, what the families share.
  add_library(diopi_impl SHARED ${vendor_SOURCES} ${others} ${adaptor})
  set_property(SOURCE ${vendor_SOURCES} APPEND PROPERTY INCLUDE_DIRECTORIES "${DIOPI_ESTABLISHED_DIR}")
  set(portable ${kernels} ${parts} ${DIOPI_PORTABLE_SOURCES})
  if(portable)
    diopi_add_kernels("${vendor_LANGUAGE}" "${kernels}" ${portable})
    target_sources(diopi_impl PRIVATE $<TARGET_OBJECTS:diopi_kernels>)
  endif()
  foreach(target diopi_impl diopi_kernels)
    if(NOT TARGET ${target})
      continue()
    endif()
    add_dependencies(${target} diopi_generated)
    target_include_directories(${target} PRIVATE "${DIOPI_CONTRACT_DIR}" "${out}/include" "${out}" "${runtime}" "${runtime}/kernels"
                                                 "${CMAKE_CURRENT_SOURCE_DIR}" "${out}/declarations/${vendor_NAME}")
    target_include_directories(${target} SYSTEM PRIVATE ${vendor_INCLUDE})
    if(vendor_LAUNCHER)
      target_compile_definitions(${target} PRIVATE "DIOPI_LAUNCHER_HEADER=\"${launcher}\"")
    endif()
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
    target_link_libraries(${target} PRIVATE ${vendor_LINK} Threads::Threads)
    if(vendor_STRICT OR target STREQUAL "diopi_kernels")
      diopi_compile_strictly(${target})
    else()
      set_property(SOURCE ${others} ${adaptor} APPEND PROPERTY COMPILE_OPTIONS ${DIOPI_STRICT_OPTIONS})
    endif()
  endforeach()
  diopi_export(diopi_impl "${runtime}/cmake/contract.map")
  # The functions of diopirt.h stay undefined by contract, so not every symbol can be found here.
  target_link_options(diopi_impl PRIVATE -Wl,--no-as-needed)
  if(vendor_STRICT)
    set(strict STRICT)
  endif()
  foreach(base IN LISTS DIOPI_BASES)
    diopi_add_base(${base} ${strict} LINK ${vendor_LINK} INCLUDE ${vendor_INCLUDE})
    target_link_libraries(diopi_impl PRIVATE diopi_base_${base})
  endforeach()
  if(NOT SKBUILD)
    set_target_properties(diopi_impl PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  endif()
  if(vendor_LAUNCHER)
    if(vendor_KERNELS_APART)
      set(apart KERNELS_APART)
    endif()
    diopi_describe_compiler(${vendor_NAME} ${apart} LAUNCHER "${launcher}" LANGUAGE "${vendor_LANGUAGE}" OUT "${out}" LINK ${vendor_LINK})
  endif()
  if(DIOPI_CPU_LEVELS)
    if(NOT TARGET diopi_kernels OR vendor_LANGUAGE OR DIOPI_SANITIZE)
      message(FATAL_ERROR "DIOPI_CPU_LEVELS has no effect here: it is for portable kernels that run on the host, without DIOPI_SANITIZE.")
    endif()
    # When the vendor's file has given diopi_impl all it needs; the name is not known any more then.
    cmake_language(EVAL CODE "cmake_language(DEFER CALL diopi_add_levels ${vendor_NAME})")
  endif()
  # What torch_dipu makes operators of torch of lies beside the library, also in the vendor's Python package.
  set(package torch_dipu_${vendor_NAME})
  set(described "${out}/torch/own_operators.json")
  set(copy "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/own_operators.json")
  if(EXISTS "${described}")
    add_custom_command(OUTPUT "${copy}" COMMAND ${CMAKE_COMMAND} -E copy_if_different "${described}" "${copy}"
                       DEPENDS "${out}/.stamp" COMMENT "Putting the vendor's own operators beside the library" VERBATIM)
    add_custom_target(diopi_own_operators ALL DEPENDS "${copy}")
    install(FILES "${described}" DESTINATION ${package} COMPONENT ${package} EXCLUDE_FROM_ALL)
  else()
    file(REMOVE "${copy}")
  endif()
  install(FILES "${out}/conformance/plan.json" DESTINATION ${package}/conformance COMPONENT ${package} EXCLUDE_FROM_ALL)
  target_include_directories(diopi_impl INTERFACE "$<BUILD_INTERFACE:${DIOPI_CONTRACT_DIR};${out}/include>")
  set_target_properties(diopi_impl PROPERTIES EXPORT_NAME ${vendor_NAME})
  diopi_install(${vendor_NAME} diopi_impl diopirt)
  diopi_install_sdk(${vendor_NAME} "${out}/include")
  foreach(alias "${vendor_NAME}=diopi_impl" "diopirt=diopirt")  # as an SDK calls them; one that is used here has its own
    string(REPLACE "=" ";" alias "${alias}")
    list(POP_FRONT alias name target)
    if(NOT TARGET Diopi::${name})
      add_library(Diopi::${name} ALIAS ${target})
    endif()
  endforeach()
endfunction()

# The library again for each of DIOPI_CPU_LEVELS, in glibc-hwcaps/<level> beside the first. They are called
# libdiopi_impl_cpu.so; libdiopi_impl.so has no code and needs one of them, which glibc's loader chooses.
function(diopi_add_levels vendor)
  diopi_use_settings()
  set_target_properties(diopi_impl PROPERTIES OUTPUT_NAME diopi_impl_cpu EXPORT_NAME ${vendor}_cpu)
  foreach(level IN LISTS DIOPI_CPU_LEVELS)
    set(kernels diopi_kernels_${level})
    get_target_property(sources diopi_kernels SOURCES)
    add_library(${kernels} OBJECT ${sources})
    add_dependencies(${kernels} diopi_generated)
    diopi_copy_properties(diopi_kernels ${kernels} COMPILE_DEFINITIONS COMPILE_OPTIONS INCLUDE_DIRECTORIES LINK_LIBRARIES PRECOMPILE_HEADERS)
    target_compile_options(${kernels} PRIVATE "-march=${level}")

    set(impl diopi_impl_${level})
    set(place glibc-hwcaps/${level})
    add_library(${impl} SHARED $<TARGET_OBJECTS:diopi_impl> $<TARGET_OBJECTS:${kernels}>)
    diopi_copy_properties(diopi_impl ${impl} LINK_LIBRARIES LINK_OPTIONS LINK_DEPENDS BUILD_RPATH INSTALL_RPATH)
    get_target_property(rpath ${impl} INSTALL_RPATH)
    list(TRANSFORM rpath REPLACE "^[$]ORIGIN" "$ORIGIN/../..")
    set_target_properties(${impl} PROPERTIES LINKER_LANGUAGE CXX OUTPUT_NAME diopi_impl_cpu INSTALL_RPATH "${rpath}"
                          LIBRARY_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${place}")
    set_property(TARGET ${impl} APPEND PROPERTY BUILD_RPATH "$ORIGIN/../..")
    diopi_install(${vendor} ${impl} FOLDER ${place})
  endforeach()
  file(CONFIGURE OUTPUT chosen.cpp CONTENT "\n")
  add_library(diopi_impl_chosen SHARED "${CMAKE_CURRENT_BINARY_DIR}/chosen.cpp")
  set_target_properties(diopi_impl_chosen PROPERTIES OUTPUT_NAME diopi_impl EXPORT_NAME ${vendor} INSTALL_RPATH "$ORIGIN")
  target_link_libraries(diopi_impl_chosen PRIVATE diopi_impl)
  target_link_options(diopi_impl_chosen PRIVATE -Wl,--no-as-needed)
  diopi_install(${vendor} diopi_impl_chosen)
endfunction()

function(diopi_copy_properties from to)
  foreach(property IN LISTS ARGN)
    get_target_property(value ${from} ${property})
    if(value)
      set_property(TARGET ${to} PROPERTY ${property} ${value})
    endif()
  endforeach()
endfunction()

# diopi_add_profile(<vendor> <file>): lib/<name of the file>/libdiopi_impl.so, with the adaptor that follows from <file>.
# Only the adaptor and the functions that <file> has composed are compiled: the operators are the objects of diopi_impl.
function(diopi_add_profile vendor config)
  get_filename_component(config "${config}" ABSOLUTE BASE_DIR "${DIOPI_ROOT}")
  get_filename_component(profile "${config}" NAME_WE)
  set(root "${DIOPI_BINARY_DIR}/profiles/${profile}")
  set(out "${root}/${vendor}")
  set(command ${DIOPI_GENERATOR} all --vendor ${vendor} --convert-config "${config}" --out "${root}")
  diopi_generated_list("${out}" "${command}")
  set(adaptor ${DIOPI_GENERATED_SOURCES})
  list(FILTER adaptor INCLUDE REGEX "/(adaptor|composites)/")
  add_custom_command(
    OUTPUT "${out}/.stamp"
    BYPRODUCTS ${adaptor} "${out}/sources.cmake"
    COMMAND ${command}
    DEPFILE "${out}/.depfile"
    WORKING_DIRECTORY "${DIOPI_ROOT}"
    COMMENT "Generating the adaptor of ${vendor} for ${profile}"
    VERBATIM)
  add_custom_target(diopi_generated_${profile} DEPENDS "${out}/.stamp")

  set(impl diopi_impl_${profile})
  set(operators "$<FILTER:$<TARGET_OBJECTS:diopi_impl>,EXCLUDE,/${vendor}/(adaptor|composites)/>")
  if(TARGET diopi_kernels)
    list(APPEND operators $<TARGET_OBJECTS:diopi_kernels>)
  endif()
  add_library(${impl} SHARED ${adaptor} ${operators})
  add_dependencies(${impl} diopi_generated diopi_generated_${profile})
  get_target_property(rpath diopi_impl BUILD_RPATH)
  set_target_properties(${impl} PROPERTIES
    OUTPUT_NAME diopi_impl LIBRARY_OUTPUT_DIRECTORY "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${profile}" BUILD_RPATH "$ORIGIN/..;${rpath}")
  target_include_directories(${impl} PRIVATE "${DIOPI_CONTRACT_DIR}" "${DIOPI_HOME}/runtime_cpp")
  target_compile_options(${impl} PRIVATE -fno-semantic-interposition)
  diopi_compile_strictly(${impl})
  diopi_export(${impl} "${DIOPI_HOME}/runtime_cpp/cmake/contract.map")
  target_link_options(${impl} PRIVATE -Wl,--no-as-needed)
  target_link_libraries(${impl} PRIVATE $<TARGET_PROPERTY:diopi_impl,LINK_LIBRARIES>)
endfunction()
