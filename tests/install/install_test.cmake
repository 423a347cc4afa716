# Installs BUILD under WORK/prefix, then configures, builds and runs against it the project that docs/cpp.md shows:
# CONSUMER's CMakeLists.txt with EXAMPLE as main.cc.
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE output)
  set(output "${output}" PARENT_SCOPE)
endfunction()

set(prefix ${WORK}/prefix)
file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})

foreach(file bin/glasshead include/glasshead/attention.h include/glasshead/testing.h share/man/man1/glasshead.1 share/doc/glasshead/LICENSE
    share/glasshead/cases/cat-chases-mouse-next.json share/bash-completion/completions/glasshead
    share/zsh/site-functions/_glasshead share/fish/vendor_completions.d/glasshead.fish)
  if(NOT EXISTS ${prefix}/${file})
    message(FATAL_ERROR "not installed: ${file}")
  endif()
  file(SIZE ${prefix}/${file} size)
  if(size EQUAL 0)
    message(FATAL_ERROR "empty: ${file}")
  endif()
endforeach()
if(EXISTS ${BUILD}/bin/glasshead-view AND NOT EXISTS ${prefix}/libexec/glasshead/glasshead-view)
  message(FATAL_ERROR "not installed: glasshead-view")
endif()
file(GLOB programs RELATIVE ${prefix}/bin ${prefix}/bin/*)
if(NOT programs STREQUAL "glasshead")
  message(FATAL_ERROR "programs: ${programs}")
endif()
run(${prefix}/bin/glasshead trace cat-chases-mouse-next)

file(COPY ${CONSUMER}/CMakeLists.txt DESTINATION ${WORK}/project)
configure_file(${EXAMPLE} ${WORK}/project/main.cc COPYONLY)
run(${CMAKE_COMMAND} -S ${WORK}/project -B ${WORK}/consumer -G ${GENERATOR} -DCMAKE_CXX_COMPILER=${COMPILER}
  -DCMAKE_PREFIX_PATH=${prefix})
run(${CMAKE_COMMAND} --build ${WORK}/consumer)
run(${WORK}/consumer/consumer)
if(NOT output STREQUAL "2.5\n")
  message(FATAL_ERROR "the consumer printed: ${output}")
endif()
