# glasshead_add_isa(<set> "<flags>"): src/kernels/isa/<set>.cc becomes part of glasshead_kernels, compiled with
# <flags>, and is known to src/kernels/select.cc, which takes the first set that the processor has: a new set
# is one line of glasshead_kernel_sets() below, best first.
function(glasshead_add_isa set flags)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/kernels/isa/${set}.cc)
  # No flag here lets the compiler change a value: -ffp-contract=off holds for every folder (warnings.cmake).
  set(options ${flags} -fno-exceptions -fno-math-errno -fno-trapping-math)
  if(NOT GLASSHEAD_SANITIZE)
    # At -O0 each intrinsic is a call that passes through memory, and at -O1 clang inlines nothing it isn't
    # told to: the tests of an unoptimised build would take minutes. Sanitizers keep their own level.
    list(APPEND options $<$<CONFIG:Debug>:-O2>)
  elseif(GLASSHEAD_SANITIZE MATCHES undefined AND NOT set STREQUAL scalar)
    # Where a pointer goes is the shared code's affair, which the scalar set runs under every check. In the wider
    # sets these three are most of a compiler's time: for avx512 twelve minutes, beside other compilers on two cores.
    list(APPEND options -fno-sanitize=pointer-overflow,alignment,null)
  endif()
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS "${options}")
  target_sources(glasshead_kernels PRIVATE ${source})
  set_property(TARGET glasshead_kernels APPEND_STRING PROPERTY GLASSHEAD_SETS "GLASSHEAD_KERNEL_SET(${set})\n")
endfunction()

function(glasshead_kernel_sets)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
      # clang's generic tuning spills: 53 % of an AVX2 core's peak, 81 % with this (a schedule, no instructions).
      set(tune -mtune=znver3)
    endif()
    glasshead_add_isa(avx512 "-mavx512f;-mavx512dq;-mavx512bw;-mavx512vl")
    glasshead_add_isa(avx512_bf16 "-mavx512f;-mavx512dq;-mavx512bw;-mavx512vl;-mavx512bf16")  # rounds: never the first
    glasshead_add_isa(avx2 "-mavx2;-mfma;-mf16c;${tune}")
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
    glasshead_add_isa(neon "")
  endif()
  if(WASI)
    glasshead_add_isa(scalar_f64 "")  # small: the module is downloaded, and a trace is f64
  else()
    glasshead_add_isa(scalar "")
  endif()

  get_target_property(GLASSHEAD_SETS glasshead_kernels GLASSHEAD_SETS)
  set(generated ${PROJECT_BINARY_DIR}/generated)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/kernel_sets.inc.in ${generated}/kernels/kernel_sets.inc @ONLY)
  target_include_directories(glasshead_kernels PRIVATE ${generated})
endfunction()
