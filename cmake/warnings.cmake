# Warnings are errors. Nothing is fused behind our back: equal bits on every compiler depend on
# -ffp-contract=off (docs/architecture.md, "The same bits").
add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wnon-virtual-dtor -Wold-style-cast
                    -Werror -ffp-contract=off)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
  # g++-12 reports overflows inside std::string and std::vector that its own inlining invents.
  add_compile_options(-Wno-restrict -Wno-stringop-overflow -Wno-array-bounds -Wno-stringop-overread)
endif()
