# SPDX-License-Identifier: MIT
# What makes a mistake in memory harder to use against the program. All of it hangs on muster_build,
# so that it holds for targets of this tree and for nobody who includes or links them;
# tests/system/elf.py looks for it in what was built.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)
include(CheckPIESupported)

if(NOT MUSTER_FIXED_ADDRESSES)
	check_pie_supported(LANGUAGES C) # else some compilers link position independent code as fixed
endif()

# muster_harden(FLAG ...): each for the compilers that have it.
function(muster_harden)
	foreach(flag ${ARGN})
		string(MAKE_C_IDENTIFIER "MUSTER_HAS${flag}" has)
		set(CMAKE_REQUIRED_FLAGS -Werror) # of a flag that it ignores clang only warns
		check_c_compiler_flag(${flag} ${has})
		if(${has})
			target_compile_options(muster_build INTERFACE ${flag})
		endif()
	endforeach()
endfunction()

muster_harden(-fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
	muster_harden(-fcf-protection)
elseif(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
	muster_harden(-mbranch-protection=standard)
endif()
target_link_options(muster_build INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)

# The C library's checked calls want an optimising compiler, so that a debug build and one without a
# type go without; and sanitizers look at the same calls themselves. Level 3 also checks buffers
# whose size is known only when the program runs.
if(NOT MUSTER_SANITIZE)
	set(CMAKE_REQUIRED_FLAGS "-O2 -Werror -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
	check_c_source_compiles("
		#include <string.h>
		int main(int argc, char **argv) { return (int)strlen(argv[argc - 1]); }" MUSTER_HAS_FORTIFY_3)
	unset(CMAKE_REQUIRED_FLAGS)
	set(level 2)
	if(MUSTER_HAS_FORTIFY_3)
		set(level 3)
	endif()
	target_compile_options(muster_build INTERFACE
		$<$<CONFIG:Release,RelWithDebInfo,MinSizeRel>:-U_FORTIFY_SOURCE$<SEMICOLON>-D_FORTIFY_SOURCE=${level}>)
endif()
