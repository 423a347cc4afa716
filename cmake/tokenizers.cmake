# glasshead_words: the static library of rust/ (docs/tokenizers.md), made by cargo when the build first needs it.
# GLASSHEAD_TOKENIZERS: ON needs cargo; AUTO takes it where a new enough one is found; OFF does without.
# The crates are fetched by tools/setup.sh, or by cargo itself in the first build; never at configure time.
set(GLASSHEAD_CARGO_DIR ${PROJECT_BINARY_DIR}/cargo CACHE PATH "Where cargo builds; build trees may share it")
set(GLASSHEAD_CARGO_NEEDS 1.85)  # rust-version of rust/Cargo.toml

function(glasshead_find_cargo)
  set(GLASSHEAD_HAS_TOKENIZERS OFF PARENT_SCOPE)
  if(NOT GLASSHEAD_TOKENIZERS OR CMAKE_CROSSCOMPILING OR WASI)
    return()
  endif()
  find_program(GLASSHEAD_CARGO cargo PATHS $ENV{HOME}/.cargo/bin DOC "cargo, for the tokenizers")
  set(found "no cargo")
  if(GLASSHEAD_CARGO)
    execute_process(COMMAND ${GLASSHEAD_CARGO} --version OUTPUT_VARIABLE said ERROR_QUIET)
    if(said MATCHES "^cargo ([0-9.]+)" AND NOT CMAKE_MATCH_1 VERSION_LESS GLASSHEAD_CARGO_NEEDS)
      set(GLASSHEAD_HAS_TOKENIZERS ON PARENT_SCOPE)
      return()
    endif()
    set(found "${GLASSHEAD_CARGO} is ${CMAKE_MATCH_1}")
  endif()
  set(message "tokenizers need cargo ${GLASSHEAD_CARGO_NEEDS} or newer; ${found}. On Debian 12: apt-get install cargo-web rustc-web")
  if(GLASSHEAD_TOKENIZERS STREQUAL "AUTO")
    message(STATUS "Without tokenizers, models take token ids: ${message}")
  else()
    message(FATAL_ERROR "${message}, or configure with -DGLASSHEAD_TOKENIZERS=OFF")
  endif()
endfunction()

# glasshead_link_tokenizers(<target>): the crate, as part of the static library <target>.
function(glasshead_link_tokenizers target)
  set(folder ${PROJECT_SOURCE_DIR}/rust)
  set(library ${PROJECT_BINARY_DIR}/lib/libglasshead_words.a)
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/src/*.rs)
  add_custom_command(OUTPUT ${library}
    COMMAND ${GLASSHEAD_CARGO} build --quiet --release --locked --lib --manifest-path ${folder}/Cargo.toml
            --target-dir ${GLASSHEAD_CARGO_DIR}
    COMMAND ${CMAKE_COMMAND} -E copy ${GLASSHEAD_CARGO_DIR}/release/libglasshead_tokenizers.a ${library}
    DEPENDS ${sources} ${folder}/Cargo.toml ${folder}/Cargo.lock
    COMMENT "Building the tokenizers (rust/): minutes the first time" VERBATIM)
  add_custom_target(glasshead_words DEPENDS ${library})
  add_dependencies(${target} glasshead_words)
  target_compile_definitions(${target} PRIVATE GLASSHEAD_HAS_TOKENIZERS)
  include(GNUInstallDirs)
  # A static library's users link it: here from the build tree, there from where it was installed.
  target_link_libraries(${target} PRIVATE
    $<BUILD_INTERFACE:${library}> $<INSTALL_INTERFACE:$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/libglasshead_words.a>
    Threads::Threads ${CMAKE_DL_LIBS} m)
endfunction()
