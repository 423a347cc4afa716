# For our own folders: options of a folder reach those below it, never a project that has us inside.
# Nothing is fused behind our back: equal bits on every compiler depend on -ffp-contract=off
# (docs/architecture.md, "The same bits").
add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                    -ffp-contract=off)
if(GLASSHEAD_WERROR)
  add_compile_options(-Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
  # g++-12 reports overflows inside std::string and std::vector that its own inlining invents.
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-stringop-overread)
endif()
