# The Python that runs the generator, and the command that it is run with.

# Sets Python_EXECUTABLE, DIOPI_PYTHON and DIOPI_GENERATOR in the scope of the caller, once.
macro(diopi_find_python)
  if(NOT DIOPI_PYTHON)
    set(Python_FIND_VIRTUALENV FIRST)
    # A checkout has an environment beside its sources, an installed Python package is in one.
    set(pythons "${DIOPI_HOME}/.venv/bin/python")
    if(DIOPI_HOME MATCHES "^(.*)/lib/[^/]+/site-packages/diopigen/share$")
      list(APPEND pythons "${CMAKE_MATCH_1}/bin/python")
    endif()
    foreach(python IN LISTS pythons)
      if(NOT Python_EXECUTABLE AND EXISTS "${python}")
        set(Python_EXECUTABLE "${python}")
      endif()
    endforeach()
    find_package(Python 3.11 COMPONENTS Interpreter QUIET)
    if(NOT Python_Interpreter_FOUND)
      message(FATAL_ERROR "There is no Python 3.11 or newer: install it, or name one with -DPython_EXECUTABLE=<path>.")
    endif()

    # A half-built backend must not be loaded by a python that is only building it: no autoload of torch's backends. The
    # folders that PYTHONPATH names already may hold the generator's packages.
    set(python_path "$ENV{PYTHONPATH}")
    set(DIOPI_REQUIREMENT diopigen)
    if(EXISTS "${DIOPI_HOME}/generators/diopigen")
      string(PREPEND python_path "${DIOPI_HOME}/generators:")
      set(DIOPI_REQUIREMENT "-e ${DIOPI_HOME}")
    endif()
    string(REGEX REPLACE ":$" "" python_path "${python_path}")
    set(DIOPI_PYTHON "${CMAKE_COMMAND}" -E env TORCH_DEVICE_BACKEND_AUTOLOAD=0 "PYTHONPATH=${python_path}" "${Python_EXECUTABLE}")
    # A folder that another Python configured takes this one's; a command that somebody named stays.
    if(NOT DIOPI_GENERATOR OR DIOPI_GENERATOR STREQUAL "${DIOPI_PYTHON_GENERATOR}")
      set(DIOPI_GENERATOR ${DIOPI_PYTHON} -m diopigen CACHE STRING "The command that runs diopigen" FORCE)
      set(DIOPI_PYTHON_GENERATOR "${DIOPI_GENERATOR}" CACHE INTERNAL "The same, unless somebody named another")
    endif()
  endif()
endmacro()

# Ends with the command that installs what is missing. Arguments: package on the index, module to import.
function(diopi_require_python_package package module)
  diopi_find_python()
  execute_process(COMMAND ${DIOPI_PYTHON} -c "import ${module}" RESULT_VARIABLE status OUTPUT_QUIET ERROR_QUIET)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "The Python package '${package}' is missing: run '${Python_EXECUTABLE} -m pip install ${package}'.")
  endif()
endfunction()
