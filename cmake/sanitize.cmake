# SPDX-License-Identifier: MIT
# Programs with a sanitizer. The tests start them by the thousand, and some hundred are linked, so
# both are made quick: the faster linker where there is one, and with gcc's address sanitizer its
# run-time library inside the program, at fixed addresses. Such a program has less to relocate when
# it starts and less to search for leaks when it ends. It exports the run-time library, because
# libmuster calls it there.
include(CheckCSourceCompiles)
include(CheckLinkerFlag)

check_linker_flag(C -fuse-ld=lld MUSTER_HAS_LLD)
if(MUSTER_HAS_LLD)
	target_link_options(muster_build INTERFACE -fuse-ld=lld)
endif()

if(CMAKE_C_COMPILER_ID STREQUAL GNU AND MUSTER_SANITIZE MATCHES "(^|,)address(,|$)")
	set(static -static-libasan -static-libubsan)
	set(CMAKE_REQUIRED_FLAGS -fsanitize=${MUSTER_SANITIZE})
	set(CMAKE_REQUIRED_LINK_OPTIONS ${static} -no-pie) # some distributions pack these libraries apart
	check_c_source_compiles("int main(void) { return 0; }" MUSTER_HAS_STATIC_SANITIZERS)
	unset(CMAKE_REQUIRED_FLAGS)
	unset(CMAKE_REQUIRED_LINK_OPTIONS)
	if(MUSTER_HAS_STATIC_SANITIZERS)
		set(MUSTER_FIXED_ADDRESSES ON) # harden.cmake
		unset(CMAKE_C_LINK_PIE_SUPPORTED CACHE) # of a build folder from before
		target_link_options(muster_build INTERFACE ${static}
			$<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie$<SEMICOLON>-rdynamic>)
	endif()
endif()
