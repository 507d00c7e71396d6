# diopi_describe_compiler(): what programs that dicp compiles need of this build, beside the vendor's libraries.
#
# In <build>/lib/compiler, operators.json and patterns.json are what the generator knows, target.json says which compiler, flags,
# headers and libraries make a program.
function(diopi_describe_compiler name)
  cmake_parse_arguments(PARSE_ARGV 1 vendor "KERNELS_APART" "LAUNCHER;LANGUAGE;OUT" "LINK")
  set(folder "${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/compiler")
  set(kernels_by "")
  if(vendor_LANGUAGE STREQUAL "CUDA")
    set(compiler "${CMAKE_CUDA_COMPILER}")
    set(suffix ".cu")
    # -O is of host code alone, which starts kernels: all of device code's optimizations are on, whatever it says. Device code that
    # calls a host function is taken otherwise, and gives anything.
    set(flags -std=c++17 -O1 --extended-lambda -diag-error=20011,20013,20014 -shared -Xcompiler=-fPIC)
    foreach(architecture IN LISTS CMAKE_CUDA_ARCHITECTURES)
      list(APPEND flags "-arch=${architecture}")
    endforeach()
    list(TRANSFORM flags REPLACE "^-arch=([0-9]+).*$" "-gencode=arch=compute_\\1,code=sm_\\1")
    if(vendor_KERNELS_APART AND CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.8)  # which can look kernels up by name
      list(FILTER flags EXCLUDE REGEX "-shared|-Xcompiler")
      set(kernels_by "${compiler}" ${flags} -x cu -fatbin)
      set(compiler "${CMAKE_CXX_COMPILER}")
      set(suffix ".cpp")
      list(TRANSFORM CUDAToolkit_INCLUDE_DIRS PREPEND "-isystem" OUTPUT_VARIABLE headers)
      set(flags -std=c++17 -O1 -fPIC ${headers} -DDIOPI_KERNELS_APART)
    endif()
  else()
    set(compiler "${CMAKE_CXX_COMPILER}")
    set(suffix ".cpp")
    set(flags -std=c++17 -O3 -shared -fPIC -fvisibility=hidden ${DIOPI_CPU_OPTIONS} -fwrapv -fno-math-errno
              -fno-trapping-math -ffp-contract=off ${DIOPI_SANITIZE_OPTIONS})  # programs are sanitized as the vendor's library is
  endif()
  set(links "@FOLDER@/$<TARGET_FILE_NAME:diopi_impl>")
  foreach(library IN LISTS vendor_LINK)
    if(NOT TARGET ${library})
      list(APPEND links "${library}")
      continue()
    endif()
    get_target_property(type ${library} TYPE)
    get_target_property(imported ${library} IMPORTED)
    if(type STREQUAL "INTERFACE_LIBRARY")
      continue()
    elseif(imported)
      list(APPEND links "$<TARGET_FILE:${library}>")
    else()
      set(in_folder "@FOLDER@/$<TARGET_FILE_NAME:${library}>")
      set(is_beside "$<STREQUAL:$<TARGET_FILE_DIR:${library}>,${CMAKE_LIBRARY_OUTPUT_DIRECTORY}>")
      list(APPEND links "$<IF:${is_beside},${in_folder},$<TARGET_FILE:${library}>>")
    endif()
  endforeach()

  # A checkout's programs include its headers; an installed package brings copies of them along.
  get_filename_component(vendor_folder "${vendor_LAUNCHER}" DIRECTORY)
  get_filename_component(launcher "${vendor_LAUNCHER}" NAME)
  set(kernels "${DIOPI_HOME}/runtime_cpp/kernels")
  set(programs "${DIOPI_HOME}/runtime_cpp/compiler")
  diopi_write_target("${folder}/target.json" "${vendor_LAUNCHER}" "${DIOPI_CONTRACT_DIR}" "${kernels}" "${programs}")
  if(NOT vendor_LANGUAGE OR kernels_by)  # where it is installed programs are compiled by that machine's compiler, for it
    set(compiler c++)
    list(TRANSFORM flags REPLACE "^-march=.*" "-march=native")
  endif()
  set(own "@FOLDER@/compiler/include")
  diopi_write_target("${DIOPI_BINARY_DIR}/installed/target.json" "${own}/vendor/${launcher}" "${own}/contract" "${own}/kernels"
                     "${own}/programs")
  set(package torch_dipu_${name})
  set(place ${package}/compiler)
  install(FILES "${DIOPI_BINARY_DIR}/installed/target.json" "${folder}/operators.json" "${folder}/patterns.json" DESTINATION ${place}
          COMPONENT ${package} EXCLUDE_FROM_ALL)
  foreach(pair "contract=${DIOPI_CONTRACT_DIR}" "kernels=${kernels}" "programs=${programs}" "vendor=${vendor_folder}")
    string(REPLACE "=" ";" pair "${pair}")
    list(POP_FRONT pair into from)
    install(DIRECTORY "${from}/" DESTINATION "${place}/include/${into}" COMPONENT ${package} EXCLUDE_FROM_ALL
            FILES_MATCHING PATTERN "*.h" PATTERN "*.cuh" PATTERN "build*" EXCLUDE PATTERN "generated" EXCLUDE PATTERN ".*" EXCLUDE)
  endforeach()

  set(tables "${folder}/operators.json" "${folder}/patterns.json")
  foreach(table operators patterns)
    add_custom_command(
      OUTPUT "${folder}/${table}.json"
      COMMAND ${CMAKE_COMMAND} -E copy_if_different "${vendor_OUT}/compiler/${table}.json" "${folder}/${table}.json"
      DEPENDS "${vendor_OUT}/.stamp"
      COMMENT "Putting the compiler's ${table} beside the libraries"
      VERBATIM)
  endforeach()
  add_custom_target(diopi_compiler_table ALL DEPENDS ${tables})
  add_dependencies(diopi_compiler_table diopi_generated)
endfunction()

# Writes a target.json: the compiler, with the launcher's header and the folders of other headers. "@FOLDER@" stands for
# the folder of the libraries. Takes compiler, suffix, flags, links and name from who calls.
macro(diopi_write_target path launcher_header)
  set(include ${ARGN})
  set(header_flag "-DDIOPI_LAUNCHER_HEADER=\"${launcher_header}\"")
  set(all_flags ${flags} "${header_flag}")
  set(all_kernels "")
  if(kernels_by)
    set(all_kernels ${kernels_by} -DDIOPI_KERNELS_APART "${header_flag}")
  endif()
  set(text "{\n  \"vendor\": \"${name}\",\n  \"compiler\": \"${compiler}\",\n  \"suffix\": \"${suffix}\"")
  foreach(pair "flags=all_flags" "include=include" "link=links" "kernels=all_kernels")
    string(REPLACE "=" ";" pair "${pair}")
    list(POP_FRONT pair key list)
    set(items "")
    foreach(item IN LISTS ${list})
      string(REPLACE "\\" "\\\\" item "${item}")
      string(REPLACE "\"" "\\\"" item "${item}")
      list(APPEND items "\"${item}\"")
    endforeach()
    list(JOIN items ", " items)
    string(APPEND text ",\n  \"${key}\": [${items}]")
  endforeach()
  file(GENERATE OUTPUT "${path}" CONTENT "${text}\n}\n")
endmacro()
