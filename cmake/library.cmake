# glasshead_library(<folder> <what it links>...): src/<folder> is the target glasshead_<folder>. Its link
# line is its row in the table of layers (docs/architecture.md); tests/layering reads the includes.
function(glasshead_library folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*.cc)
  add_library(glasshead_${folder} STATIC ${sources})
  target_include_directories(glasshead_${folder} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                             PRIVATE ${PROJECT_SOURCE_DIR}/src
                             INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
  target_compile_features(glasshead_${folder} PUBLIC cxx_std_20)
  target_link_libraries(glasshead_${folder} PUBLIC ${ARGN})
endfunction()

# glasshead_test(<folder> <what it links>...): tests/<folder>/*_test.cc, one program, label fast.
function(glasshead_test folder)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${folder}/*_test.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${folder} ${sources})
  target_include_directories(test_${folder} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(test_${folder} PRIVATE ${ARGN} GTest::gtest_main rapidcheck)
  target_compile_definitions(test_${folder} PRIVATE
    GLASSHEAD_SOURCE_DIR="${PROJECT_SOURCE_DIR}" GLASSHEAD_BINARY_DIR="${PROJECT_BINARY_DIR}")
  gtest_discover_tests(test_${folder} PROPERTIES LABELS fast DISCOVERY_MODE PRE_TEST
    DISCOVERY_TIMEOUT 60 WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
endfunction()
