# cmake --install build --prefix P: the library as find_package(glasshead) finds it, and the command with its
# cases, man page and completions. The conformance program is a test program and stays in the build tree.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/glasshead)
set(layers "")
foreach(folder base kernels core formats nn wire doctor audit model port text)
  list(APPEND layers glasshead_${folder})
endforeach()
install(TARGETS glasshead ${layers} EXPORT glasshead INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
if(TARGET glasshead_words)  # what glasshead_text links
  install(FILES ${PROJECT_BINARY_DIR}/lib/libglasshead_words.a TYPE LIB)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/glasshead TYPE INCLUDE)
install(EXPORT glasshead NAMESPACE glasshead:: FILE glassheadTargets.cmake DESTINATION ${package})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/glassheadConfig.cmake.in
  ${PROJECT_BINARY_DIR}/glassheadConfig.cmake INSTALL_DESTINATION ${package})
# Before 1.0 a minor version may change what is public.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/glassheadConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/glassheadConfig.cmake ${PROJECT_BINARY_DIR}/glassheadConfigVersion.cmake
  DESTINATION ${package})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/glasshead)

if(TARGET glasshead_cli)
  install(TARGETS glasshead_cli RUNTIME)
  # Beside the program: <prefix>/share/glasshead/cases is where it looks first.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/cases DESTINATION share/glasshead FILES_MATCHING PATTERN "*.json")
  if(TARGET glasshead_view)
    install(TARGETS glasshead_view RUNTIME DESTINATION libexec/glasshead)  # the command looks there
  endif()
  # The page, where it has been built (make web): glasshead view serves it.
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/build/web DESTINATION share/glasshead OPTIONAL)

  # Written by the command itself, which knows its options, when it is installed.
  set(written ${PROJECT_BINARY_DIR}/written)
  function(glasshead_written file folder)
    install(CODE "
      file(MAKE_DIRECTORY \"${written}\")
      execute_process(COMMAND \"$<TARGET_FILE:glasshead_cli>\" ${ARGN}
        OUTPUT_FILE \"${written}/${file}\" COMMAND_ERROR_IS_FATAL ANY)")
    install(FILES ${written}/${file} DESTINATION ${folder})
  endfunction()
  glasshead_written(glasshead.1 ${CMAKE_INSTALL_MANDIR}/man1 man)
  glasshead_written(glasshead ${CMAKE_INSTALL_DATADIR}/bash-completion/completions completion bash)
  glasshead_written(_glasshead ${CMAKE_INSTALL_DATADIR}/zsh/site-functions completion zsh)
  glasshead_written(glasshead.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d completion fish)
endif()
